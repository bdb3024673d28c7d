"""Members that rejoin their group near the rebalance timeout, or after it."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.rejoined_late
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="poll-near-limit",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Members that are late in rebalances",
    why="A consumer joins a rebalance when the application polls. All members wait for the latest one, and "
    "the broker removes a member that exceeds the timeout.",
    citation=Citation(
        where="KafkaConsumer, Detecting Consumer Failures",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="The drawback is that increasing this value may delay a group rebalance since the consumer will "
        "only join the rebalance inside the call to poll.",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms, or pause() and poll() while processing",
        aiokafka="larger rebalance_timeout_ms, and no blocking code in the rebalance listener",
        franz_go="larger kgo.RebalanceTimeout",
        kafkajs="larger rebalanceTimeout, and heartbeat() while processing",
    ),
    silent="If the group does not rebalance while the application processes records, or the member joins in less"
    " than half of its rebalance timeout.",
    check=_check,
)
