"""Groups that often rebalance with the eager protocol."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# The names of assignors in JoinGroup; RoundRobinAssigner is that of kafkajs.
_EAGER = {"range", "roundrobin", "sticky", "RoundRobinAssigner"}
# Of two members, one waits for the other in any protocol.
_MEMBERS = 3
_REBALANCES = 5


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    membership = facts.membership
    is_eager = membership.protocol_name in _EAGER and membership.group_type == "classic"
    if is_eager and membership.most_members >= _MEMBERS and membership.rebalances >= _REBALANCES:
        yield Evidence(
            f"{membership.rebalances:,} rebalances of up to {membership.most_members:,} members with the assignor "
            f"{membership.protocol_name}",
            membership.rebalance_examples,
        )


RULE = Rule(
    id="eager-rebalances",
    scope=Scope.GROUP,
    severity=Severity.INFO,
    title="Rebalances in which all members stop",
    why="With the assignors range, roundrobin and sticky, every member gives up all its partitions in each "
    "rebalance. The cooperative protocol and KIP-848 stop only partitions that move. The defaults of most"
    " clients are eager.",
    citation=Citation(
        where="ConsumerPartitionAssignor.RebalanceProtocol",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/ConsumerPartitionAssignor.RebalanceProtocol.html",
        words="The EAGER rebalance protocol requires a consumer to always revoke all its owned partitions "
        "before participating in a rebalance event.",
    ),
    remedy=Remedy(
        java="partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor, or "
        "group.protocol=consumer",
        librdkafka="partition.assignment.strategy=cooperative-sticky, or group.protocol=consumer",
        aiokafka="",
        franz_go="kgo.Balancers(kgo.CooperativeStickyBalancer())",
        kafkajs="",
    ),
    silent="If the group never had three members, or rebalanced fewer than five times.",
    check=_check,
)
