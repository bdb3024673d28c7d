"""Clients that retry without a growing backoff (KIP-580)."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Kafka's default maximum (retry.backoff.max.ms: 1000) less its jitter. A client that always waits as
# long does no harm.
_HARMLESS_MS = 800


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for api, waits in facts.retries.waits.items():
        found = waits.constant()
        if found is not None and found.base_ms < _HARMLESS_MS:
            yield Evidence(
                f"waits about {found.base_ms:,.0f} ms each time before it retries {api} ({found.waits:,} waits)",
                waits.examples,
            )


RULE = Rule(
    id="retries-without-growing-waits",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that retry without a growing backoff",
    why="When a broker is overloaded, all such clients keep it overloaded by retries at the same high rate.",
    citation=Citation(
        where="Producer Configs, retry.backoff.max.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_retry.backoff.max.ms",
        words="If provided, the backoff per client will increase exponentially for each failed request, up to this "
        "maximum.",
    ),
    remedy=Remedy(
        java="kafka-clients 3.7 or later with retry.backoff.ms=100, retry.backoff.max.ms=1000, the defaults",
        librdkafka="retry.backoff.ms=100, retry.backoff.max.ms=1000, the defaults since 2.3",
        aiokafka="a larger retry_backoff_ms; its waits do not grow",
        franz_go="without kgo.RetryBackoffFn, waits grow from 250 ms to 2.5 s; a retry of a batch also waits for new "
        "metadata: kgo.MetadataMinAge(5*time.Second), the default",
        kafkajs="retry: {initialRetryTime: 300, multiplier: 2}, the defaults",
    ),
    silent="If fewer than three retries of a request followed each other, waits are 0.8 s or longer, the first "
    "attempts are not in the journal, or retries cannot be recognized (requests for several partitions).",
    check=_check,
)
