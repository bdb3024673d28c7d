"""Groups with more members than partitions."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    members = facts.membership.assignment()
    idle = [each for each in members if not each.partitions]
    total = sum(len(each.partitions) for each in members)
    if idle and 0 < total < len(members):
        yield Evidence(
            f"{len(idle):,} of {len(members):,} members have no partition of {total:,}, such as client "
            f"{idle[0].client_id} on connection {idle[0].connection}"
        )


RULE = Rule(
    id="idle-members",
    scope=Scope.GROUP,
    severity=Severity.INFO,
    title="Members without a partition",
    why="A partition has one reader in a group. Members above the number of partitions only wait; this is "
    "fine as a standby.",
    citation=Citation(
        where="KafkaConsumer, One Consumer Per Thread",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="The number of total threads across all processes will be limited by the total number of partitions.",
    ),
    remedy=Remedy(
        java="fewer members, or more partitions",
        librdkafka="fewer members, or more partitions",
        aiokafka="fewer members, or more partitions",
        franz_go="fewer members, or more partitions",
        kafkajs="fewer members, or more partitions",
    ),
    silent="If the assignment lasted less than 5 s, or is not one of the consumer protocol.",
    check=_check,
)
