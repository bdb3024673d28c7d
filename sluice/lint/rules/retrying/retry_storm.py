"""Clients whose failing requests come at a high rate."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for api, failures in facts.retries.failures.items():
        if failures.fastest_ns:
            what = "failed retries of batches" if api == "Produce" else f"failed {api} requests"
            yield Evidence(f"{failures.count:,} {what}, {failures.in_words}", failures.examples)


RULE = Rule(
    id="retry-storm",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Clients that retry failed requests in a tight loop",
    why="The load comes on top of whatever made the first request fail, and other clients share the broker.",
    citation=Citation(
        where="Producer Configs, retry.backoff.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_retry.backoff.ms",
        words="This avoids repeatedly sending requests in a tight loop under some failure scenarios.",
    ),
    remedy=Remedy(
        java="retry.backoff.ms=100, the default; a pause where the application retries",
        librdkafka="retry.backoff.ms=100, the default; a pause where the application retries",
        aiokafka="retry_backoff_ms=100, the default; a pause where the application retries",
        franz_go="without kgo.RetryBackoffFn; kgo.MetadataMinAge(5*time.Second), the default, for batches",
        kafkajs="retry: {initialRetryTime: 300}, the default; a pause where the application retries",
    ),
    silent="Below 200 failed requests of an API within 5 s, the threshold of the audit.",
    check=_check,
)
