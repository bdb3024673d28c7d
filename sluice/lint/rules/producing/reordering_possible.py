"""Producers that can reorder records by a retry."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    if producing.unordered:
        yield Evidence(
            f"{producing.unordered:,} of {producing.requests:,} Produce requests without a producer id were sent while "
            f"another one for the same partition was in flight, up to {producing.in_flight} at once",
            producing.examples_of("unordered"),
        )


RULE = Rule(
    id="reordering-possible",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Producers without idempotence and with several requests in flight",
    why="If a batch fails and the next one for the partition succeeds, a retry appends the first after the second. "
    "librdkafka and Sarama have this default; it is harmless only if the order of records does not matter, or retries "
    "are disabled.",
    citation=Citation(
        where="Producer Configs, max.in.flight.requests.per.connection",
        url="https://kafka.apache.org/documentation/#producerconfigs_max.in.flight.requests.per.connection",
        words="Note that if this configuration is set to be greater than 1 and enable.idempotence is set to false, "
        "there is a risk of message reordering after a failed send due to retries (i.e., if retries are enabled)",
    ),
    remedy=Remedy(
        java="enable.idempotence=true, the default",
        librdkafka="enable.idempotence=true, or max.in.flight=1",
        aiokafka="enable_idempotence=True; without it, it has one request in flight",
        franz_go="without kgo.DisableIdempotentWrite(), or kgo.MaxProduceRequestsInflightPerBroker(1)",
        kafkajs="kafka.producer({idempotent: true}), or maxInFlightRequests: 1",
    ),
    silent="If no two requests overlapped at the broker, which reads a connection only between two requests.",
    check=_check,
)
