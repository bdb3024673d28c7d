"""ShareGroupDescribe, key 77, version 1 (KIP-932).

Follows Kafka's KafkaApis.handleShareGroupDescribe, GroupMetadataManager.shareGroupDescribe and
ShareGroup.asDescribedGroup.
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.group.group import SHARE
from sluice.broker.coordinator.group.share.group import ShareGroup, ShareMember
from sluice.broker.coordinator.group.share.simple_assignor import NAME
from sluice.broker.handlers.groups.described_groups import HIDDEN_TOPICS, Kind, describe_groups
from sluice.broker.metadata.features import SHARE_VERSION
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import share_group_describe as api

API = served("ShareGroupDescribe", "1")


def handle(
    ctx: RequestContext, request: api.ShareGroupDescribeRequest, broker: Broker
) -> api.ShareGroupDescribeResponse:
    def describe(group: ShareGroup) -> api.DescribedGroup:
        return api.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=NAME,
            members=[_member(member, broker.cluster) for member in group.members.values()],
        )

    kind = Kind(SHARE, broker.features.level(SHARE_VERSION) > 0, HIDDEN_TOPICS, has_messages=True)
    groups = describe_groups(ctx, broker, request, kind, ShareGroup, api.DescribedGroup, describe, _topics)
    return api.ShareGroupDescribeResponse(groups=groups)


def _topics(group: api.DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


def _member(member: ShareMember, cluster: Cluster) -> api.Member:
    known = [(cluster.topics_by_id.get(topic_id), partitions) for topic_id, partitions in member.assigned.items()]
    return api.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=api.Assignment(
            topic_partitions=[
                api.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(partitions))
                for topic, partitions in known
                if topic is not None
            ]
        ),
    )
