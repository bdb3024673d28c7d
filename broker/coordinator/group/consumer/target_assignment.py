"""The target assignment of a consumer group. Follows Kafka's TargetAssignmentBuilder."""

from collections.abc import Collection

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.spec import Assign, GroupSpec, MemberSpec

from .group import ConsumerGroup
from .records import target_assignment, target_epoch


def update_target(group: ConsumerGroup, assign: Assign, cluster: Cluster, now_ms: int) -> Collection[KeyValue]:
    spec = GroupSpec(
        members={
            member_id: MemberSpec(
                group.topic_ids_of(member, cluster), group.target.get(member_id, {}), member.instance_id
            )
            for member_id, member in group.members.items()
        },
        partition_counts={topic.topic_id: len(topic.partitions) for topic in group.subscribed_topics(cluster)},
        homogeneous=group.is_homogeneous,
    )
    assigned = assign(spec)
    records = []
    for member_id in group.members:
        target = {topic: partitions for topic, partitions in assigned.get(member_id, {}).items() if partitions}
        if target != group.target.get(member_id):
            records.append(target_assignment(group.group_id, member_id, target))
        group.target[member_id] = target
    group.assignment_epoch = group.group_epoch
    group.assignment_timestamp_ms = now_ms
    records.append(target_epoch(group))
    return records
