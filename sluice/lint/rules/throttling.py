"""Rules about throttle times."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, rule

_MOST = 0.5


@rule(
    Severity.INFO,
    title="Clients that are throttled most of the time",
    why="The client needs more than its quota: records wait in the producer until delivery.timeout.ms, or consumers "
    "lag.",
    citation=cited(
        "Design, Quotas, Enforcement",
        "the broker first computes the amount of delay needed to bring the violating client under its quota and "
        "returns a response with the delay immediately.",
        "https://kafka.apache.org/documentation/#design_quotas",
    ),
    remedy=Remedy(
        java="a higher quota (kafka-configs), or less traffic: compression.type, fewer consumers per client.id",
        librdkafka="a higher quota (kafka-configs), or less traffic: compression.type",
        aiokafka="a higher quota (kafka-configs), or less traffic: compression_type",
        franz_go="a higher quota (kafka-configs), or less traffic: kgo.ProducerBatchCompression",
        kafkajs="a higher quota (kafka-configs), or less traffic: compression",
    ),
    silent="If no connection was throttled for more than half of the time, over 10 s or more.",
)
def mostly_throttled(facts: ClientFacts) -> Iterator[Evidence]:
    most = facts.throttles.most
    if most is not None and most.throttled_ns > _MOST * most.lasted_ns:
        yield Evidence(
            f"a connection was throttled for {most.throttled_ns / 1e9:,.1f} of {most.lasted_ns / 1e9:,.1f} s",
            facts.throttles.examples,
        )


_SURELY = 2  # early requests, as in the audit


@rule(
    Severity.WARNING,
    title="Clients that do not wait until a throttle time is over",
    why="The broker has to stop reading the connection instead. Then even heartbeats on it are late, and requests time "
    "out that the client did not have to send.",
    citation=cited(
        "Design, Quotas, Enforcement",
        "Upon receiving a response with a non-zero delay duration, the Kafka client will also refrain from sending "
        "further requests to the broker during the delay.",
        "https://kafka.apache.org/documentation/#design_quotas",
    ),
    remedy=Remedy(
        java="kafka-clients 2.0 or later",
        librdkafka="no setting: report it to the library",
        aiokafka="no setting: report it to the library",
        franz_go="no setting: report it to the library",
        kafkajs="kafkajs 1.7 or later",
    ),
    silent="If the broker does not read a throttled connection, as Kafka does: only journals of a proxy, or of fault "
    "rules that return throttle times, show early requests.",
)
def throttle_ignored(facts: ClientFacts) -> Iterator[Evidence]:
    throttles = facts.throttles
    if throttles.early >= _SURELY:
        yield Evidence(
            f"{throttles.early:,} requests were sent before the throttle time was over, after {throttles.ignored:,} of "
            f"{throttles.responses:,} responses with one",
            throttles.early_examples,
        )
