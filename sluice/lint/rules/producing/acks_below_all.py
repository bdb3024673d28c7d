"""Producers that request an acknowledgment of the leader only."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    sent = facts.producing.acks[1]
    if sent:
        requests = facts.producing.acks.total()
        yield Evidence(f"{sent:,} of {requests:,} Produce requests have acks=1", facts.producing.examples_of("acks=1"))


RULE = Rule(
    id="acks-below-all",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Producers that request an acknowledgment of the leader only",
    why="Acknowledged records are lost if the leader fails before its followers have them. Some libraries have this "
    "default, such as aiokafka and Sarama; Kafka's own default is acks=all since 3.0.",
    citation=Citation(
        where="Producer Configs, acks",
        url="https://kafka.apache.org/documentation/#producerconfigs_acks",
        words="In this case should the leader fail immediately after acknowledging the record but before the followers "
        "have replicated it then the record will be lost.",
    ),
    remedy=Remedy(
        java="acks=all",
        librdkafka="acks=all",
        aiokafka="acks='all', or enable_idempotence=True",
        franz_go="kgo.RequiredAcks(kgo.AllISRAcks()), the default",
        kafkajs="producer.send({acks: -1}), the default",
    ),
    silent="If the journal has no fields of Produce requests, because an older version wrote it.",
    check=_check,
)
