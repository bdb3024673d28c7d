"""Members without a common assignor or protocol type."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.inconsistent_protocols
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="assignors-differ",
    scope=Scope.GROUP,
    severity=Severity.ERROR,
    title="Members whose assignors the group does not support",
    why="A group needs an assignor that all its members have. The member cannot join.",
    citation=Citation(
        where="INCONSISTENT_GROUP_PROTOCOL",
        url="https://kafka.apache.org/protocol.html#protocol_error_codes",
        words="The group member's supported protocols are incompatible with those of existing members or first "
        "group member tried to join with empty protocol type or empty protocol list.",
    ),
    remedy=Remedy(
        java="the same partition.assignment.strategy in all members; for a change, first both, then the new one",
        librdkafka="the same partition.assignment.strategy in all members; for a change, first both, then the new one",
        aiokafka="the same partition_assignment_strategy in all members; for a change, first both, then the new one",
        franz_go="the same kgo.Balancers in all members; for a change, first both, then the new one",
        kafkajs="the same partitionAssigners in all members; for a change, first both, then the new one",
    ),
    silent="If a fault rule injected the error.",
    check=_check,
)
