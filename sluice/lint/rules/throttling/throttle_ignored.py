"""Clients that do not wait until a throttle time is over (KIP-219)."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_SURELY = 2  # early requests, as in the audit


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    throttles = facts.throttles
    if throttles.early >= _SURELY:
        yield Evidence(
            f"{throttles.early:,} requests were sent before the throttle time was over, after {throttles.ignored:,} of "
            f"{throttles.responses:,} responses with one",
            throttles.early_examples,
        )


RULE = Rule(
    id="throttle-ignored",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that do not wait until a throttle time is over",
    why="The broker has to stop reading the connection instead. Then even heartbeats on it are late, and requests time "
    "out that the client did not have to send.",
    citation=Citation(
        where="Design, Quotas, Enforcement",
        url="https://kafka.apache.org/documentation/#design_quotas",
        words="Upon receiving a response with a non-zero delay duration, the Kafka client will also refrain from "
        "sending further requests to the broker during the delay.",
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
    check=_check,
)
