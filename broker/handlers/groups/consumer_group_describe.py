"""ConsumerGroupDescribe, key 69, versions 0-1 (KIP-848).

Follows Kafka's GroupMetadataManager.consumerGroupDescribe and ConsumerGroup.asDescribedGroup.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ConsumerMember
from sluice.broker.coordinator.group.group import CONSUMER
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import consumer_group_describe as api

from .described_groups import HIDDEN_TOPICS, Kind, describe_groups

API = served("ConsumerGroupDescribe", "0-1")

_CLASSIC, _CONSUMER = 0, 1


def handle(
    ctx: RequestContext, request: api.ConsumerGroupDescribeRequest, broker: Broker
) -> api.ConsumerGroupDescribeResponse:
    def describe(group: ConsumerGroup) -> api.DescribedGroup:
        return api.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor(broker.groups.consumer.rebalance.default_assignor),
            members=[_member(group, member, broker.cluster) for member in group.members.values()],
        )

    kind = Kind(CONSUMER, broker.serves_groups(CONSUMER), HIDDEN_TOPICS)
    groups = describe_groups(ctx, broker, request, kind, ConsumerGroup, api.DescribedGroup, describe, _topics)
    return api.ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: api.DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def _member(group: ConsumerGroup, member: ConsumerMember, cluster: Cluster) -> api.Member:
    # Partitions that are not given up yet count as assigned.
    assigned: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            assigned.setdefault(topic_id, []).extend(epochs)
    return api.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(assigned, cluster),
        target_assignment=_assignment(group.target.get(member.member_id, {}), cluster),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], cluster: Cluster) -> api.Assignment:
    known = [(cluster.topics_by_id.get(topic_id), indexes) for topic_id, indexes in partitions.items()]
    return api.Assignment(
        topic_partitions=[
            api.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(indexes))
            for topic, indexes in known
            if topic is not None
        ]
    )
