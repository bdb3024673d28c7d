"""Groups in which the range assignor gives some members much more than others."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# One partition more is what division with a remainder needs.
_MORE = 2
_TIMES = 2


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    members = facts.membership.assignment()
    if facts.membership.protocol_name != "range" or not members:
        return
    most, least = len(members[0].partitions), len(members[-1].partitions)
    topics = {each.rpartition("-")[0] for each in members[0].partitions}
    total = sum(len(each.partitions) for each in members)
    if len(topics) > 1 and total >= len(members) and most - least >= _MORE and most >= _TIMES * least:
        yield Evidence(
            f"client {members[0].client_id} has {most:,} partitions of {len(topics):,} topics, client "
            f"{members[-1].client_id} has {least:,}"
        )


RULE = Rule(
    id="uneven-assignment",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Partitions spread unevenly by the range assignor",
    why="The range assignor divides each topic on its own and starts with the same members. With several "
    "small topics, these get most of the partitions, and others few or none.",
    citation=Citation(
        where="RangeAssignor",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/RangeAssignor.html",
        words="If it does not evenly divide, then the first few consumers will have one extra partition.",
    ),
    remedy=Remedy(
        java="partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        librdkafka="partition.assignment.strategy=cooperative-sticky",
        aiokafka="partition_assignment_strategy=(RoundRobinPartitionAssignor,)",
        franz_go="kgo.Balancers(kgo.CooperativeStickyBalancer())",
        kafkajs="partitionAssigners: [PartitionAssigners.roundRobin]",
    ),
    silent="If the difference is below two partitions or a factor of two, the assignment lasted less than 5 s, "
    "or another assignor is used. Subscriptions that differ are not known.",
    check=_check,
)
