"""Members that leave because the application has not polled in time."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.poll_too_late
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="poll-too-late",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Members that exceed max.poll.interval.ms",
    why="The client leaves the group when the application takes longer than max.poll.interval.ms for the "
    "records of one poll. The group rebalances, and another member processes the same records.",
    citation=Citation(
        where="Consumer Configs, max.poll.interval.ms",
        url="https://kafka.apache.org/documentation/#consumerconfigs_max.poll.interval.ms",
        words="If poll() is not called before expiration of this timeout, then the consumer is considered "
        "failed and the group will rebalance in order to reassign the partitions to another member.",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms, or pause() and poll() while processing",
        aiokafka="larger max_poll_interval_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout with kgo.BlockRebalanceOnPoll()",
        kafkajs="larger sessionTimeout, and heartbeat() while processing",
    ),
    silent="If the member does not join again on the same connection, or leaves before its rebalance timeout, "
    "which is not max.poll.interval.ms in aiokafka.",
    check=_check,
)
