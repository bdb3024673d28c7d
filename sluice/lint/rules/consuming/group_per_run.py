"""Clients that use a group with a generated name, and then another one."""

import re
from collections import defaultdict
from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Fewer can be the runs of a developer.
_GROUPS = 5
# A UUID, at least eight hexadecimal digits, or at least five decimal ones.
_GENERATED = re.compile(r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}|[0-9]{5,})$")


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    by_prefix: dict[str, list[str]] = defaultdict(list)
    for group_id in facts.joining.groups:
        generated = _GENERATED.search(group_id)
        if generated is not None:
            by_prefix[group_id[: generated.start()]].append(group_id)
    for names in by_prefix.values():
        if len(names) >= _GROUPS:
            yield Evidence(f"{len(names):,} groups with generated names, such as {names[0]} and {names[1]}")


RULE = Rule(
    id="group-per-run",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Group ids with a generated part",
    why="A new group starts where auto.offset.reset says, so it reads everything or misses what came between "
    "two runs. Its committed offsets are kept for days, although no client uses them again. Tests do this"
    " on purpose.",
    citation=Citation(
        where="Broker Configs, offsets.retention.minutes",
        url="https://kafka.apache.org/documentation/#brokerconfigs_offsets.retention.minutes",
        words="For subscribed consumers, committed offset of a specific partition will be expired and discarded"
        " when 1) this retention period has elapsed after the consumer group loses all its consumers "
        "(i.e. becomes empty)",
    ),
    remedy=Remedy(
        java="a constant group.id; assign() without a group.id if each instance reads everything",
        librdkafka="a constant group.id; assign() with enable.auto.commit=false if each instance reads everything",
        aiokafka="a constant group_id; group_id=None with assign() if each instance reads everything",
        franz_go="a constant kgo.ConsumerGroup; none if each instance reads everything",
        kafkajs="a constant groupId",
    ),
    silent="If the client joined fewer than five such groups.",
    check=_check,
)
