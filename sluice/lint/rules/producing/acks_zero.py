"""Producers that request no acknowledgment."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    sent = facts.producing.acks[0]
    if sent:
        requests = facts.producing.acks.total()
        yield Evidence(f"{sent:,} of {requests:,} Produce requests have acks=0", facts.producing.examples_of("acks=0"))


RULE = Rule(
    id="acks-zero",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Producers that request no acknowledgment",
    why="The broker sends no response, so the producer does not learn of errors, throttle times or a new leader. "
    "Records are lost without a trace.",
    citation=Citation(
        where="Producer Configs, acks",
        url="https://kafka.apache.org/documentation/#producerconfigs_acks",
        words="No guarantee can be made that the server has received the record in this case, and the retries "
        "configuration will not take effect (as the client won't generally know of any failures).",
    ),
    remedy=Remedy(
        java="acks=all",
        librdkafka="acks=all",
        aiokafka="acks='all'",
        franz_go="kgo.RequiredAcks(kgo.AllISRAcks()), the default",
        kafkajs="producer.send({acks: -1}), the default",
    ),
    silent="If the journal has no fields of Produce requests, because an older version wrote it.",
    check=_check,
)
