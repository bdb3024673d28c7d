"""Two members with the same group instance id."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.instance_fenced
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="instance-id-twice",
    scope=Scope.GROUP,
    severity=Severity.ERROR,
    title="A group.instance.id that two consumers use",
    why="The broker fences one of them, which stops with an error. If both are restarted, they take turns, "
    "and the group makes no progress.",
    citation=Citation(
        where="Consumer Configs, group.instance.id",
        url="https://kafka.apache.org/documentation/#consumerconfigs_group.instance.id",
        words="If set, the consumer is treated as a static member, which means that only one instance with this"
        " ID is allowed in the consumer group at any time.",
    ),
    remedy=Remedy(
        java="a group.instance.id per process, such as the name of its pod",
        librdkafka="a group.instance.id per process, such as the name of its pod",
        aiokafka="a group_instance_id per process, such as the name of its pod",
        franz_go="a kgo.InstanceID per process, such as the name of its pod",
        kafkajs="",
    ),
    silent="If a fault rule injected the error.",
    check=_check,
)
