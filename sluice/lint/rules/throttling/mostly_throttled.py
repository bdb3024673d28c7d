"""Clients that are throttled most of the time."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.5


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    most = facts.throttles.most
    if most is not None and most.throttled_ns > _MOST * most.lasted_ns:
        yield Evidence(
            f"a connection was throttled for {most.throttled_ns / 1e9:,.1f} of {most.lasted_ns / 1e9:,.1f} s",
            facts.throttles.examples,
        )


RULE = Rule(
    id="mostly-throttled",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Clients that are throttled most of the time",
    why="The client needs more than its quota: records wait in the producer until delivery.timeout.ms, or consumers "
    "lag.",
    citation=Citation(
        where="Design, Quotas, Enforcement",
        url="https://kafka.apache.org/documentation/#design_quotas",
        words="the broker first computes the amount of delay needed to bring the violating client under its quota and "
        "returns a response with the delay immediately.",
    ),
    remedy=Remedy(
        java="a higher quota (kafka-configs), or less traffic: compression.type, fewer consumers per client.id",
        librdkafka="a higher quota (kafka-configs), or less traffic: compression.type",
        aiokafka="a higher quota (kafka-configs), or less traffic: compression_type",
        franz_go="a higher quota (kafka-configs), or less traffic: kgo.ProducerBatchCompression",
        kafkajs="a higher quota (kafka-configs), or less traffic: compression",
    ),
    silent="If no connection was throttled for more than half of the time, over 10 s or more.",
    check=_check,
)
