"""Authorized operations in responses (KIP-430): all without an authorizer, otherwise those that the ACLs allow."""

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

ALL_OF_TOPIC, ALL_OF_GROUP, ALL_OF_CLUSTER = 0xDF8, 0xD48, 0x1FA0  # the values of Kafka without an authorizer
READ_AND_DESCRIBE = 1 << 3 | 1 << 8
NOT_REQUESTED = -(2**31)


def topic_operations(client: Client) -> int:
    response = client.call(MetadataRequest(topics=None, include_topic_authorized_operations=True), 10)
    return int(response.topics[0].topic_authorized_operations)


def page_operations(client: Client) -> int:
    return int(client.call(DescribeTopicPartitionsRequest(), 0).topics[0].topic_authorized_operations)


def group_operations(client: Client) -> int:
    response = client.call(DescribeGroupsRequest(groups=["group"], include_authorized_operations=True), 5)
    return int(response.groups[0].authorized_operations)


def consumer_group_operations(client: Client) -> int:
    response = client.call(ConsumerGroupDescribeRequest(group_ids=["members"], include_authorized_operations=True), 1)
    return int(response.groups[0].authorized_operations)


def cluster_operations(client: Client) -> int:
    response = client.call(MetadataRequest(topics=[], include_cluster_authorized_operations=True), 10)
    return int(response.cluster_authorized_operations)


def described_cluster_operations(client: Client) -> int:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    return int(client.call(request, 2).cluster_authorized_operations)


def populated(broker: VirtualBroker) -> VirtualBroker:
    broker.topic()
    stable_group(broker)
    assert not ConsumerMember(broker, group_id="members").join().error_code
    return broker


REQUESTS = {
    "topic, Metadata": (topic_operations, ALL_OF_TOPIC),
    "topic, DescribeTopicPartitions": (page_operations, ALL_OF_TOPIC),
    "group, DescribeGroups": (group_operations, ALL_OF_GROUP),
    "group, ConsumerGroupDescribe": (consumer_group_operations, ALL_OF_GROUP),
    "cluster, Metadata": (cluster_operations, ALL_OF_CLUSTER),
    "cluster, DescribeCluster": (described_cluster_operations, ALL_OF_CLUSTER),
}


@pytest.mark.parametrize(("operations", "all_operations"), REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("broker_of", [VirtualBroker, secured_broker], ids=["without an authorizer", "for super users"])
def test_all_operations_are_allowed(broker_of: Any, operations: Any, all_operations: int) -> None:
    assert operations(populated(broker_of()).client()) == all_operations


PERMISSIONS = {
    "read a topic": (topic_operations, [acl(AclOperation.READ)], READ_AND_DESCRIBE),
    "read a topic, DescribeTopicPartitions": (page_operations, [acl(AclOperation.READ)], READ_AND_DESCRIBE),
    "read a group": (group_operations, [acl(AclOperation.READ, ResourceType.GROUP, "group")], READ_AND_DESCRIBE),
    "read a consumer group": (
        consumer_group_operations,
        [acl(AclOperation.READ, ResourceType.GROUP, "members"), acl(AclOperation.DESCRIBE)],
        READ_AND_DESCRIBE,
    ),
    "no cluster entries, Metadata": (cluster_operations, [], 0),
    "no cluster entries, DescribeCluster": (described_cluster_operations, [], 0),
    "create on the cluster does not imply describe": (
        cluster_operations,
        [acl(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)],
        0,
    ),
    "alter on the cluster implies describe": (
        cluster_operations,
        [acl(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)],
        1 << 7 | 1 << 8,
    ),
}


@pytest.mark.parametrize(("operations", "entries", "expected"), PERMISSIONS.values(), ids=PERMISSIONS)
def test_operations_follow_the_acls_of_the_user(operations: Any, entries: list[Acl], expected: int) -> None:
    broker = populated(secured_broker())
    broker.broker.cluster.acls.create(entries)
    assert operations(alice(broker)) == expected


WITHOUT_OPERATIONS = {"Metadata": (MetadataRequest(topics=[]), 10), "DescribeCluster": (DescribeClusterRequest(), 2)}


@pytest.mark.parametrize(("request_", "version"), WITHOUT_OPERATIONS.values(), ids=WITHOUT_OPERATIONS)
def test_operations_are_absent_unless_requested(request_: Message, version: int) -> None:
    assert alice(secured_broker()).call(request_, version).cluster_authorized_operations == NOT_REQUESTED
