"""Records that a retry reordered."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    deliveries = facts.deliveries
    if deliveries.reordered:
        yield Evidence(
            f"{deliveries.reordered:,} batches were appended after later records of the same partition, because they "
            "failed first and were retried",
            deliveries.reordered_examples,
        )


RULE = Rule(
    id="reordered-by-retry",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Records that a retry reordered",
    why="The partition does not have the order in which the application sent its records.",
    citation=Citation(
        where="Producer Configs, retries",
        url="https://kafka.apache.org/documentation/#producerconfigs_retries",
        words="if two batches are sent to a single partition, and the first fails and is retried but the second "
        "succeeds, then the records in the second batch may appear first",
    ),
    remedy=Remedy(
        java="enable.idempotence=true, the default",
        librdkafka="enable.idempotence=true",
        aiokafka="enable_idempotence=True",
        franz_go="without kgo.DisableIdempotentWrite()",
        kafkajs="kafka.producer({idempotent: true}), or maxInFlightRequests: 1",
    ),
    silent="If requests have several partitions, or the producer regroups the records of a failed batch.",
    check=_check,
)
