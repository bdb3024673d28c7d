"""Clients that reconnect without a growing backoff (KIP-144)."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Kafka's default maximum (reconnect.backoff.max.ms: 1000) less its jitter. A client that always waits as
# long does no harm.
_HARMLESS_MS = 800


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    connections = facts.connections
    found = connections.reconnects.constant()
    if found is not None and found.base_ms < _HARMLESS_MS:
        yield Evidence(
            f"waits about {found.base_ms:,.0f} ms each time before it connects again ({found.waits:,} waits)",
            connections.reconnects.examples,
        )
    elif connections.storm.fastest_ns:
        yield Evidence(f"{connections.storm.in_words} connections after lost ones", connections.storm.examples)


RULE = Rule(
    id="reconnects-without-growing-waits",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that reconnect without a growing backoff",
    why="When a broker restarts, all such clients connect at the same high rate and delay its recovery.",
    citation=Citation(
        where="Producer Configs, reconnect.backoff.max.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_reconnect.backoff.max.ms",
        words="If provided, the backoff per host will increase exponentially for each consecutive connection failure, "
        "up to this maximum. After calculating the backoff increase, 20% random jitter is added to avoid connection "
        "storms.",
    ),
    remedy=Remedy(
        java="reconnect.backoff.ms=50, reconnect.backoff.max.ms=1000, the defaults",
        librdkafka="reconnect.backoff.ms=100, reconnect.backoff.max.ms=10000, the defaults",
        aiokafka="a larger retry_backoff_ms; its waits do not grow",
        franz_go="without kgo.RetryBackoffFn, waits grow from 250 ms to 2.5 s",
        kafkajs="retry: {initialRetryTime: 300, multiplier: 2}, the defaults",
    ),
    silent="If connections fail before they are accepted, which only the client sees, or if several clients of one "
    "host fail at once. Waits after a response to ApiVersions need not grow.",
    check=_check,
)
