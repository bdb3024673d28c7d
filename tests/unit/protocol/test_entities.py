"""The topics, partitions, groups and transactional ids named in requests."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS, api_of
from sluice.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sluice.protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from sluice.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from sluice.protocol.entities import NamedTopic, all_topics_selector, entities_of, reader_of
from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import GROUP_ID, PARTITION, TOPIC_ID, TOPIC_NAME, TRANSACTIONAL_ID
from tests.support.streams_groups import word_count

KEYS = {api.name: api.key for api in API_KEYS.values()}
SERVED = [pytest.param(API_KEYS[key].request, id=API_KEYS[key].name) for key in HANDLERS]


class Known(NamedTuple):
    """A topic with an id."""

    name: str


TOPICS: Mapping[bytes, NamedTopic] = {b"i" * 16: Known("known")}
NODES = [TopologyDescriptionNode(source_topics=["t", "u"]), TopologyDescriptionNode(sink_topic="v")]
TOPOLOGY = TopologyDescription(subtopologies=[TopologyDescriptionSubtopology(nodes=NODES)])
Found = tuple[list[tuple[str, int]], list[str], list[str]]
CASES: dict[str, tuple[Message, Found]] = {
    "StreamsGroupHeartbeat": (
        StreamsGroupHeartbeatRequest(group_id="g", topology=word_count()),
        ([("t", -1), ("words", -1), ("counts", -1), ("words", -1)], ["g"], []),
    ),
    "StreamsGroupHeartbeat without topology": (StreamsGroupHeartbeatRequest(group_id="g"), ([], ["g"], [])),
    "StreamsGroupTopologyDescriptionUpdate": (
        StreamsGroupTopologyDescriptionUpdateRequest(topology_description=TOPOLOGY),
        ([("t", -1), ("u", -1), ("v", -1)], [], []),
    ),
    "Produce": (
        ProduceRequest(
            transactional_id="tx",
            topic_data=[
                TopicProduceData(
                    name="t", partition_data=[PartitionProduceData(index=1), PartitionProduceData(index=0)]
                ),
                TopicProduceData(topic_id=b"i" * 16, partition_data=[PartitionProduceData(index=2)]),
            ],
        ),
        ([("t", 1), ("t", 0), ("known", 2)], [], ["tx"]),
    ),
    "Fetch, without forgotten topics": (
        FetchRequest(
            topics=[FetchTopic(topic_id=b"j" * 16, partitions=[FetchPartition(partition=3)])],
            forgotten_topics_data=[ForgottenTopic(topic="f", partitions=[0])],
        ),
        ([("6a" * 16, 3)], [], []),
    ),
    "Metadata by name and by id": (
        MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name=None, topic_id=b"i" * 16)]),
        ([("t", -1), ("known", -1)], [], []),
    ),
    "Metadata of all topics": (MetadataRequest(topics=None), ([], [], [])),
    "OffsetFetch of one group": (
        OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]),
        ([("t", 0), ("t", 1)], ["g"], []),
    ),
    "OffsetFetch of two groups": (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
                ),
                OffsetFetchRequestGroup(group_id="h", topics=None),
            ]
        ),
        ([("t", 0)], ["g", "h"], []),
    ),
    "FindCoordinator of a group": (FindCoordinatorRequest(key="g"), ([], ["g"], [])),
    "FindCoordinator of transactions": (
        FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"]),
        ([], [], ["a", "b"]),
    ),
    "FindCoordinator of a share partition": (
        FindCoordinatorRequest(key_type=2, coordinator_keys=["g:id:0"]),
        ([], [], []),
    ),
    "Heartbeat": (HeartbeatRequest(group_id="g"), ([], ["g"], [])),
    "InitProducerId of an idempotent producer": (InitProducerIdRequest(transactional_id=None), ([], [], [])),
    "DeleteGroups": (DeleteGroupsRequest(groups_names=["g", "", "h"]), ([], ["g", "h"], [])),
    "CreateTopics with assignments": (
        CreateTopicsRequest(topics=[CreatableTopic(name="t", assignments=[CreatableReplicaAssignment()])]),
        ([("t", -1)], [], []),
    ),
    "DeleteTopics by name and by id": (
        DeleteTopicsRequest(
            topic_names=["old"],
            topics=[DeleteTopicState(name="t"), DeleteTopicState(topic_id=b"i" * 16)],
            timeout_ms=1000,
        ),
        ([("t", -1), ("known", -1), ("old", -1)], [], []),
    ),
    "AddPartitionsToTxn v3": (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx", v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[3])]
        ),
        ([("t", 3)], [], ["tx"]),
    ),
    "AddPartitionsToTxn v4": (
        AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name, topics=[AddPartitionsToTxnTopic(name="t", partitions=[index])]
                )
                for index, name in enumerate(["a", "b"])
            ]
        ),
        ([("t", 0), ("t", 1)], [], ["a", "b"]),
    ),
    "AlterReplicaLogDirs": (
        AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path="/d", topics=[AlterReplicaLogDirTopic(name="t", partitions=[1])])]
        ),
        ([("t", 1)], [], []),
    ),
    "ConsumerGroupHeartbeat": (
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            subscribed_topic_names=["t"],
            topic_partitions=[TopicPartitions(topic_id=b"i" * 16, partitions=[5])],
        ),
        ([("t", -1), ("known", 5)], ["g"], []),
    ),
    "ConsumerGroupHeartbeat with unchanged topics": (ConsumerGroupHeartbeatRequest(group_id="g"), ([], ["g"], [])),
    "ListGroups": (ListGroupsRequest(), ([], [], [])),
}


@pytest.mark.parametrize(("request_", "expected"), CASES.values(), ids=CASES)
def test_entities_of_a_request(request_: Message, expected: Found) -> None:
    partitions, groups, transactional_ids = reader_of(api_of(type(request_)).key)(request_, TOPICS)
    assert (list(partitions), list(groups), list(transactional_ids)) == expected


@pytest.mark.parametrize(
    ("request_", "version", "expected"),
    [
        pytest.param(MetadataRequest(topics=None), 1, True, id="Metadata v1, null"),
        pytest.param(MetadataRequest(topics=[]), 1, False, id="Metadata v1, empty"),
        pytest.param(MetadataRequest(topics=[]), 0, True, id="Metadata v0, empty"),
        pytest.param(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 0, False, id="Metadata v0, one"),
        pytest.param(DescribeTopicPartitionsRequest(), 0, True, id="DescribeTopicPartitions, empty"),
        pytest.param(DescribeLogDirsRequest(topics=None), 1, True, id="DescribeLogDirs, null"),
        pytest.param(DescribeLogDirsRequest(topics=[]), 1, False, id="DescribeLogDirs, empty"),
        pytest.param(ElectLeadersRequest(topic_partitions=None), 2, True, id="ElectLeaders, null"),
        pytest.param(ListPartitionReassignmentsRequest(), 0, True, id="ListPartitionReassignments, null"),
        pytest.param(OffsetFetchRequest(topics=None), 5, True, id="OffsetFetch v5, null"),
        pytest.param(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(), OffsetFetchRequestGroup(topics=None)]),
            8,
            True,
            id="OffsetFetch v8, null in one of two groups",
        ),
        pytest.param(ConsumerGroupHeartbeatRequest(), 0, False, id="ConsumerGroupHeartbeat, null means unchanged"),
    ],
)
def test_request_for_all_topics(request_: Message, version: int, expected: bool) -> None:
    assert all_topics_selector(api_of(type(request_)).key)(request_, version) == expected


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        ("Produce", {TOPIC_NAME, PARTITION, TRANSACTIONAL_ID}),
        ("Metadata", {TOPIC_NAME, PARTITION}),
        ("DescribeTopicPartitions", {TOPIC_NAME, PARTITION}),
        ("CreateTopics", {TOPIC_NAME}),
        ("DeleteTopics", {TOPIC_NAME}),
        ("FindCoordinator", {GROUP_ID, TRANSACTIONAL_ID}),
        ("TxnOffsetCommit", {TOPIC_NAME, PARTITION, GROUP_ID, TRANSACTIONAL_ID}),
        ("ConsumerGroupHeartbeat", {TOPIC_NAME, PARTITION, GROUP_ID}),
        ("LeaveGroup", {GROUP_ID}),
        ("DescribeConfigs", set()),
        ("ApiVersions", set()),
    ],
)
def test_differing_fields_of_an_apis_requests(api: str, expected: set[str]) -> None:
    assert entities_of(KEYS[api]) == expected


def check(cls: type[Message]) -> None:
    for field in fields_of(cls):
        meaning = field.meaning
        entities = [*meaning.entity.values()] if isinstance(meaning.entity, Mapping) else [meaning.entity]
        assert {*entities} <= {TOPIC_NAME, TOPIC_ID, PARTITION, GROUP_ID, TRANSACTIONAL_ID, None}, field.name
        assert isinstance(meaning.entity, Mapping) == (meaning.entity_by in {each.name for each in fields_of(cls)})
        if field.struct is not None:
            check(field.struct)


@pytest.mark.parametrize("request_class", SERVED)
def test_every_declared_entity_exists(request_class: type[Message]) -> None:
    check(request_class)
