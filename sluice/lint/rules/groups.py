"""Rules about groups: their members and rebalances."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import GroupFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, noted, properties, rule


@rule(
    Severity.ERROR,
    title="Members whose assignors the group does not support",
    why="A group needs an assignor that all its members have. The member cannot join.",
    citation=cited(
        "INCONSISTENT_GROUP_PROTOCOL",
        "The group member's supported protocols are incompatible with those of existing members or first group member "
        "tried to join with empty protocol type or empty protocol list.",
        "https://kafka.apache.org/protocol.html#protocol_error_codes",
    ),
    remedy=properties(
        "the same partition.assignment.strategy in all members; for a change, first both, then the new one",
        franz_go="the same kgo.Balancers in all members; for a change, first both, then the new one",
        kafkajs="the same partitionAssigners in all members; for a change, first both, then the new one",
    ),
    silent="If a fault rule injected the error.",
)
def assignors_differ(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.inconsistent_protocols)


# The names of assignors in JoinGroup; RoundRobinAssigner is that of kafkajs.
_EAGER = {"range", "roundrobin", "sticky", "RoundRobinAssigner"}
# Of two members, one waits for the other in any protocol.
_MEMBERS = 3
# Changed subscriptions, and new partitions of subscribed topics, cause some rebalances, too.
_REBALANCES = 5


@rule(
    Severity.INFO,
    title="Rebalances in which all members stop",
    why="With the assignors range, roundrobin and sticky, every member gives up all its partitions in each rebalance. "
    "The cooperative protocol and KIP-848 stop only partitions that move. The defaults of most clients are eager.",
    citation=cited(
        "ConsumerPartitionAssignor.RebalanceProtocol",
        "The EAGER rebalance protocol requires a consumer to always revoke all its owned partitions before "
        "participating in a rebalance event.",
        "https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/ConsumerPartitionAssignor.RebalanceProtocol.html",
    ),
    remedy=Remedy(
        java="partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor, or "
        "group.protocol=consumer",
        librdkafka="partition.assignment.strategy=cooperative-sticky, or group.protocol=consumer",
        franz_go="kgo.Balancers(kgo.CooperativeStickyBalancer())",
    ),
    silent="If the group never had three members, or rebalanced fewer than five times.",
)
def eager_rebalances(facts: GroupFacts) -> Iterator[Evidence]:
    membership = facts.membership
    is_eager = membership.protocol_name in _EAGER and membership.group_type == "classic"
    if is_eager and membership.most_members >= _MEMBERS and membership.rebalances >= _REBALANCES:
        yield Evidence(
            f"{membership.rebalances:,} rebalances of up to {membership.most_members:,} members with the assignor "
            f"{membership.protocol_name}",
            membership.rebalance_examples,
        )


@rule(
    Severity.INFO,
    title="Members without a partition",
    why="A partition has one reader in a group. Members above the number of partitions only wait; this is fine as a "
    "standby.",
    citation=cited(
        "KafkaConsumer, One Consumer Per Thread",
        "The number of total threads across all processes will be limited by the total number of partitions.",
    ),
    remedy=properties(
        "fewer members, or more partitions",
        franz_go="fewer members, or more partitions",
        kafkajs="fewer members, or more partitions",
    ),
    silent="If the assignment lasted less than 5 s, or is not one of the consumer protocol.",
)
def idle_members(facts: GroupFacts) -> Iterator[Evidence]:
    members = facts.membership.assignment()
    idle = [each for each in members if not each.partitions]
    total = sum(len(each.partitions) for each in members)
    if idle and 0 < total < len(members):
        yield Evidence(
            f"{len(idle):,} of {len(members):,} members have no partition of {total:,}, such as client "
            f"{idle[0].client_id} on connection {idle[0].connection}"
        )


@rule(
    Severity.ERROR,
    title="A group.instance.id that two consumers use",
    why="The broker fences one of them, which stops with an error. If both are restarted, they take turns, and the "
    "group makes no progress.",
    citation=cited(
        "Consumer Configs, group.instance.id",
        "If set, the consumer is treated as a static member, which means that only one instance with this ID is "
        "allowed in the consumer group at any time.",
    ),
    remedy=properties(
        "a group.instance.id per process, such as the name of its pod",
        franz_go="a kgo.InstanceID per process, such as the name of its pod",
    ),
    silent="If a fault rule injected the error.",
)
def instance_id_twice(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.instance_fenced)


@rule(
    Severity.ERROR,
    title="A rebalance loop",
    why="During a rebalance, members do not process records, and afterwards some records are read again. A group in a "
    "loop may never get ahead.",
    citation=cited(
        "KafkaConsumer, Detecting Consumer Failures",
        "Basically if you don't call poll at least as frequently as the configured max interval, then the client will "
        "proactively leave the group so that another consumer can take over its partitions.",
    ),
    remedy=Remedy(
        java="larger max.poll.interval.ms and session.timeout.ms, or smaller max.poll.records",
        librdkafka="larger max.poll.interval.ms and session.timeout.ms",
        aiokafka="larger max_poll_interval_ms and session_timeout_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout and kgo.SessionTimeout",
        kafkajs="larger sessionTimeout and rebalanceTimeout, and heartbeat() while processing",
    ),
    silent="If members that join on new connections, or leave, explain the rebalances.",
)
def rebalance_loop(facts: GroupFacts) -> Iterator[Evidence]:
    membership = facts.membership
    count = membership.unexplained_rebalances()
    if count >= _REBALANCES:
        yield Evidence(
            f"{count:,} rebalances within 5 minutes that no client which joined or left explains, of "
            f"{membership.rebalances:,} in total",
            membership.rebalance_examples,
        )


# One partition more is what division with a remainder needs.
_MORE = 2
_TIMES = 2


@rule(
    Severity.WARNING,
    title="Partitions spread unevenly by the range assignor",
    why="The range assignor divides each topic on its own and starts with the same members. With several small topics, "
    "these get most of the partitions, and others few or none.",
    citation=cited(
        "RangeAssignor",
        "If it does not evenly divide, then the first few consumers will have one extra partition.",
        "https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/RangeAssignor.html",
    ),
    remedy=Remedy(
        java="partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        librdkafka="partition.assignment.strategy=cooperative-sticky",
        aiokafka="partition_assignment_strategy=(RoundRobinPartitionAssignor,)",
        franz_go="kgo.Balancers(kgo.CooperativeStickyBalancer())",
        kafkajs="partitionAssigners: [PartitionAssigners.roundRobin]",
    ),
    silent="If the difference is below two partitions or a factor of two, the assignment lasted less than 5 s, or "
    "another assignor is used. Subscriptions that differ are not known.",
)
def uneven_assignment(facts: GroupFacts) -> Iterator[Evidence]:
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
