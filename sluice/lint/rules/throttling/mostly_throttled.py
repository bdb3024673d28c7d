"""Clients that are throttled most of the time."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST_S = 10.0  # Kafka measures quotas over about as long (quota.window.num, quota.window.size.seconds)
_MOST = 0.5


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    seconds, throttled_s = facts.traffic.seconds, facts.throttles.total_ms / 1e3
    if seconds >= _LEAST_S and throttled_s > _MOST * seconds:
        yield Evidence(
            f"throttle times of {throttled_s:,.0f} s in total within {seconds:,.0f} s, over all connections",
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
        words="The broker first computes the amount of delay needed to bring the violating client under its quota and "
        "returns a response with the delay immediately.",
    ),
    remedy=Remedy(
        java="a higher quota (kafka-configs), or less traffic: compression.type, fewer consumers per client.id",
        librdkafka="a higher quota (kafka-configs), or less traffic: compression.type",
        aiokafka="a higher quota (kafka-configs), or less traffic: compression_type",
        franz_go="a higher quota (kafka-configs), or less traffic: kgo.ProducerBatchCompression",
        kafkajs="a higher quota (kafka-configs), or less traffic: compression",
    ),
    silent="Below 10 s of traffic, or if the throttle times are less than half of the time.",
    check=_check,
)
