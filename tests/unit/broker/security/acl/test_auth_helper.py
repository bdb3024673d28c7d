"""What a client is told that it may do (KIP-430): everything without an authorizer, else what the entries say."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, ResourceType
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.message import Message
from tests.support.acls import acl, alice, secured_broker
from tests.support.consumer_groups import ConsumerMember
from tests.support.groups import stable_group
from tests.support.virtual_broker import Client, VirtualBroker

ALL_OF_TOPIC, ALL_OF_GROUP, ALL_OF_CLUSTER = 0xDF8, 0xD48, 0x1FA0  # what a real broker without an authorizer answers
READ_AND_DESCRIBE = 1 << 3 | 1 << 8
NOT_ASKED = -(2**31)


def topic_operations(client: Client) -> int:
    answer = client.ask(MetadataRequest(topics=None, include_topic_authorized_operations=True), 10)
    return int(answer.topics[0].topic_authorized_operations)


def page_operations(client: Client) -> int:
    return int(client.ask(DescribeTopicPartitionsRequest(), 0).topics[0].topic_authorized_operations)


def group_operations(client: Client) -> int:
    answer = client.ask(DescribeGroupsRequest(groups=["group"], include_authorized_operations=True), 5)
    return int(answer.groups[0].authorized_operations)


def consumer_group_operations(client: Client) -> int:
    answer = client.ask(ConsumerGroupDescribeRequest(group_ids=["members"], include_authorized_operations=True), 1)
    return int(answer.groups[0].authorized_operations)


def cluster_operations(client: Client) -> int:
    answer = client.ask(MetadataRequest(topics=[], include_cluster_authorized_operations=True), 10)
    return int(answer.cluster_authorized_operations)


def described_cluster_operations(client: Client) -> int:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    return int(client.ask(request, 2).cluster_authorized_operations)


def populated(broker: VirtualBroker) -> VirtualBroker:
    broker.topic()
    stable_group(broker)
    assert not ConsumerMember(broker, group_id="members").join().error_code
    return broker


ASKED = [
    pytest.param(topic_operations, ALL_OF_TOPIC, id="of a topic, by Metadata"),
    pytest.param(page_operations, ALL_OF_TOPIC, id="of a topic, by DescribeTopicPartitions"),
    pytest.param(group_operations, ALL_OF_GROUP, id="of a group, by DescribeGroups"),
    pytest.param(consumer_group_operations, ALL_OF_GROUP, id="of a group, by ConsumerGroupDescribe"),
    pytest.param(cluster_operations, ALL_OF_CLUSTER, id="of the cluster, by Metadata"),
    pytest.param(described_cluster_operations, ALL_OF_CLUSTER, id="of the cluster, by DescribeCluster"),
]


@pytest.mark.parametrize(("asked", "everything"), ASKED)
def test_without_an_authorizer_everybody_may_everything(asked: Any, everything: int) -> None:
    assert asked(populated(VirtualBroker()).client()) == everything


@pytest.mark.parametrize(("asked", "everything"), ASKED)
def test_so_may_super_users(asked: Any, everything: int) -> None:
    assert asked(populated(secured_broker()).client()) == everything


@pytest.mark.parametrize(
    ("asked", "entries", "expected"),
    [
        pytest.param(topic_operations, [acl(AclOperation.READ)], READ_AND_DESCRIBE, id="read a topic"),
        pytest.param(page_operations, [acl(AclOperation.READ)], READ_AND_DESCRIBE, id="read a topic, by pages"),
        pytest.param(
            group_operations,
            [acl(AclOperation.READ, ResourceType.GROUP, "group")],
            READ_AND_DESCRIBE,
            id="be in a group",
        ),
        pytest.param(
            consumer_group_operations,
            [acl(AclOperation.READ, ResourceType.GROUP, "members"), acl(AclOperation.DESCRIBE)],
            READ_AND_DESCRIBE,
            id="be in a consumer group",
        ),
        pytest.param(cluster_operations, [], 0, id="not even describe the cluster"),
        pytest.param(described_cluster_operations, [], 0, id="not even describe the cluster, asked on its own"),
        pytest.param(
            cluster_operations,
            [acl(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)],
            0,
            id="create topics, but not describe the cluster",
        ),
        pytest.param(
            cluster_operations,
            [acl(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)],
            1 << 7 | 1 << 8,
            id="alter the cluster, and so describe it",
        ),
    ],
)
def test_alice_is_told_that_she_may(asked: Any, entries: list[Acl], expected: int) -> None:
    broker = populated(secured_broker())
    broker.broker.cluster.acls.create(entries)
    assert asked(alice(broker)) == expected


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        pytest.param(MetadataRequest(topics=[]), "cluster_authorized_operations", id="Metadata"),
        pytest.param(DescribeClusterRequest(), "cluster_authorized_operations", id="DescribeCluster"),
    ],
)
def test_whoever_does_not_ask_is_not_told(request_: Message, field: str) -> None:
    version = 10 if isinstance(request_, MetadataRequest) else 2
    assert getattr(alice(secured_broker()).ask(request_, version), field) == NOT_ASKED
