"""One request for each use of each API that names a topic, by name and by id, in its old and new forms.

`USES` is checked against the schema (tests/unit/broker/test_topic_names.py): a new API, or a new field with a topic,
fails there until it has a use.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from sluice.broker.exchange.advertised_versions import advertised_by
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sluice.protocol.apis.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from sluice.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sluice.protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sluice.protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.consumer_group_heartbeat import TopicPartitions as OwnedPartitions
from sluice.protocol.apis.create_acls import AclCreation, CreateAclsRequest
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sluice.protocol.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from sluice.protocol.apis.describe_producers import DescribeProducersRequest
from sluice.protocol.apis.describe_producers import TopicRequest as ProducersTopic
from sluice.protocol.apis.describe_quorum import DescribeQuorumRequest
from sluice.protocol.apis.describe_quorum import PartitionData as QuorumPartition
from sluice.protocol.apis.describe_quorum import TopicData as QuorumTopic
from sluice.protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest
from sluice.protocol.apis.describe_topic_partitions import TopicRequest as DescribedTopic
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest
from sluice.protocol.apis.elect_leaders import TopicPartitions as ElectedPartitions
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.incremental_alter_configs import AlterableConfig as IncrementalConfig
from sluice.protocol.apis.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from sluice.protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from sluice.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.share_acknowledge import AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest
from sluice.protocol.apis.share_fetch import FetchPartition as ShareFetchPartition
from sluice.protocol.apis.share_fetch import FetchTopic as ShareFetchTopic
from sluice.protocol.apis.share_fetch import ForgottenTopic as ShareForgottenTopic
from sluice.protocol.apis.share_fetch import ShareFetchRequest
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from sluice.protocol.apis.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sluice.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid
from tests.support.records import records_for

RELEASE = "kafka-4.4"
ENTITIES = ("topicName", "topicId")
TIMEOUT_MS = 30_000
TOPIC = 2  # as resource type of configs and ACLs
_ANY, _LITERAL, _READ, _ALLOW = 1, 3, 3, 3
# In place of ids: a Java client's UUIDs, as Kafka parses some of them.
_MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Target(NamedTuple):
    """The topic of a request, and what else it needs.

    `key` is unique: groups and transactional ids contain it.
    """

    name: str
    topic_id: bytes
    key: str
    log_dir: str = "/nowhere"
    producer_id: int = 0
    producer_epoch: int = 0


Build = Callable[[int, Target], Message]


class Use(NamedTuple):
    """One use of an API.

    Args:
        api: The name of the API.
        title: What it does, if the API has several uses.
        build: Returns the request, for a version and a target.
        creates: Whether it creates a missing topic.
        destroys: Whether it deletes the topic.
        in_transaction: Whether it needs a producer id of the target's transactional id.
        loads: Whether a first request starts to load state, so that its response depends on the time.
        is_answered: False for Produce with acks=0.
        versions: The versions with a different form; by default all in which fields with topics change.
    """

    api: str
    title: str
    build: Build
    creates: bool = False
    destroys: bool = False
    in_transaction: bool = False
    loads: bool = False
    is_answered: bool = True
    versions: tuple[int, ...] = ()

    def forms(self) -> tuple[int, ...]:
        """Return the oldest and newest versions of each form of the request."""
        return self.versions or _forms(self.api)

    def label(self, version: int) -> str:
        return f"{self.api} v{version}" + (f" {self.title}" if self.title else "")


USES: list[Use] = []


def _use(title: str = "", **options: Any) -> Callable[[Build], Build]:
    """Register a function `<api>` or `<api>__<words>` as a use."""

    def register(build: Build) -> Build:
        module = build.__name__.partition("__")[0]
        (api,) = (api.name for api in API_KEYS.values() if api.module == module)
        USES.append(Use(api, title, build, **options))
        return build

    return register


def topic_fields(message: type[Message], path: str = "") -> Iterator[tuple[str, int, int]]:
    """Iterate over the fields with a topic's name or id: path, first and last version."""
    for field in fields_of(message):
        if field.struct is not None:
            yield from topic_fields(field.struct, f"{path}{field.name}.")
        elif field.meaning.entity in ENTITIES:
            yield path + field.name, field.versions.first, field.versions.last


@cache
def _forms(api_name: str) -> tuple[int, ...]:
    (api,) = (api for api in API_KEYS.values() if api.name == api_name)
    first, last = advertised_by(RELEASE).get(api.key, (api.min_version, api.max_version))
    edges = {first, last}
    for _, begin, end in topic_fields(api.request):
        edges |= {begin - 1, begin, end, end + 1}
    return tuple(sorted(edge for edge in edges if first <= edge <= last))


# Topics


@_use("of partitions and replicas", creates=True)
def create_topics(_version: int, to: Target) -> Message:
    topic = CreatableTopic(name=to.name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use("of an assignment", creates=True, versions=(7,))
def create_topics__of_an_assignment(_version: int, to: Target) -> Message:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
    topic = CreatableTopic(name=to.name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use("that validates only")
def create_topics__validate_only(_version: int, to: Target) -> Message:
    topic = CreatableTopic(name=to.name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=True)


@_use("twice in one request", versions=(7,))
def create_topics__twice(_version: int, to: Target) -> Message:
    topic = CreatableTopic(name=to.name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic, topic], timeout_ms=TIMEOUT_MS)


@_use("with automatic creation", creates=True, versions=(0, 1, 3, 4, 8, 9, 11, 12, 13))
def metadata__creating(_version: int, to: Target) -> Message:
    return MetadataRequest(topics=[MetadataRequestTopic(name=to.name)])


@_use("by name", versions=(4, 9, 13))
def metadata__by_name(_version: int, to: Target) -> Message:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=to.name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


@_use("by id", versions=(12, 13))
def metadata__by_id(_version: int, to: Target) -> Message:
    topic = MetadataRequestTopic(name=None, topic_id=to.topic_id)
    return MetadataRequest(topics=[topic], allow_auto_topic_creation=True)


@_use()
def describe_topic_partitions(_version: int, to: Target) -> Message:
    return DescribeTopicPartitionsRequest(topics=[DescribedTopic(name=to.name)])


@_use("by validation")
def create_partitions__validate_only(_version: int, to: Target) -> Message:
    topic = CreatePartitionsTopic(name=to.name, count=3, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=True)


@_use("to the same number")
def create_partitions(_version: int, to: Target) -> Message:
    topic = CreatePartitionsTopic(name=to.name, count=1, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use("by name", destroys=True)
def delete_topics__by_name(_version: int, to: Target) -> Message:
    state = DeleteTopicState(name=to.name)
    return DeleteTopicsRequest(topics=[state], topic_names=[to.name], timeout_ms=TIMEOUT_MS)


@_use("by id", destroys=True, versions=(6,))
def delete_topics__by_id(_version: int, to: Target) -> Message:
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=to.topic_id)], timeout_ms=TIMEOUT_MS)


@_use("by name and id", versions=(6,))
def delete_topics__by_both(_version: int, to: Target) -> Message:
    state = DeleteTopicState(name=to.name, topic_id=to.topic_id)
    return DeleteTopicsRequest(topics=[state], timeout_ms=TIMEOUT_MS)


# Records


def _produce(version: int, to: Target, acks: int) -> Message:
    data = PartitionProduceData(index=0, records=records_for(max(version, 3)))
    topic = TopicProduceData(name=to.name, topic_id=to.topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])


@_use("acks=0", is_answered=False, versions=(3, 12, 13))
def produce__acks_0(version: int, to: Target) -> Message:
    return _produce(version, to, 0)


@_use("acks=1", versions=(3, 12, 13))
def produce__acks_1(version: int, to: Target) -> Message:
    return _produce(version, to, 1)


@_use("acks=all", versions=(3, 12, 13))
def produce__acks_all(version: int, to: Target) -> Message:
    return _produce(version, to, -1)


@_use()
def fetch(_version: int, to: Target) -> Message:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=to.name, topic_id=to.topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])


@_use("of the end")
def list_offsets(_version: int, to: Target) -> Message:
    topic = ListOffsetsTopic(name=to.name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    return ListOffsetsRequest(replica_id=-1, topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def delete_records(_version: int, to: Target) -> Message:
    topic = DeleteRecordsTopic(name=to.name, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def offset_for_leader_epoch(_version: int, to: Target) -> Message:
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=to.name, partitions=[partition])]
    )


@_use()
def describe_producers(_version: int, to: Target) -> Message:
    return DescribeProducersRequest(topics=[ProducersTopic(name=to.name, partition_indexes=[0])])


# Configs and ACLs


@_use()
def describe_configs(_version: int, to: Target) -> Message:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=to.name, configuration_keys=["file.delete.delay.ms"]
    )
    return DescribeConfigsRequest(resources=[resource])


@_use()
def alter_configs(_version: int, to: Target) -> Message:
    config = AlterableConfig(name="file.delete.delay.ms", value="60001")
    return AlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=TOPIC, resource_name=to.name, configs=[config])],
        validate_only=to.name.startswith("__"),  # it would reset the settings of the coordinators' topics
    )


@_use()
def incremental_alter_configs(_version: int, to: Target) -> Message:
    config = IncrementalConfig(name="file.delete.delay.ms", config_operation=0, value="60002")
    resource = IncrementalResource(resource_type=TOPIC, resource_name=to.name, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


@_use()
def create_acls(_version: int, to: Target) -> Message:
    acl = AclCreation(
        resource_type=TOPIC,
        resource_name=to.name,
        principal="User:reader",
        host="*",
        operation=_READ,
        permission_type=_ALLOW,
    )
    return CreateAclsRequest(creations=[acl])


@_use()
def describe_acls(_version: int, to: Target) -> Message:
    return DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=to.name,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


@_use()
def delete_acls(_version: int, to: Target) -> Message:
    acls = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=to.name,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    return DeleteAclsRequest(filters=[acls])


# Offsets of groups


@_use()
def offset_commit(_version: int, to: Target) -> Message:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topic = OffsetCommitRequestTopic(name=to.name, topic_id=to.topic_id, partitions=[partition])
    return OffsetCommitRequest(group_id=f"offsets-{to.key}", topics=[topic])


@_use()
def offset_fetch(_version: int, to: Target) -> Message:
    group_id = f"offsets-{to.key}"
    topics = OffsetFetchRequestTopics(name=to.name, topic_id=to.topic_id, partition_indexes=[0])
    return OffsetFetchRequest(
        group_id=group_id,
        topics=[OffsetFetchRequestTopic(name=to.name, partition_indexes=[0])],
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[topics])],
    )


@_use()
def offset_delete(_version: int, to: Target) -> Message:
    topic = OffsetDeleteRequestTopic(name=to.name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    return OffsetDeleteRequest(group_id=f"offsets-{to.key}", topics=[topic])


# Groups


@_use("with a subscription")
def consumer_group_heartbeat(version: int, to: Target) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=f"consumer-{version}-{to.key}",
        member_id=_MEMBER_ID if version else "",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[to.name],
        topic_partitions=[],
    )


@_use("with owned partitions", versions=(1,))
def consumer_group_heartbeat__owner(version: int, to: Target) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=f"consumer-{version}-{to.key}",
        member_id=_MEMBER_ID,
        member_epoch=1,
        topic_partitions=[OwnedPartitions(topic_id=to.topic_id, partitions=[0])],
    )


@_use()
def share_group_heartbeat(_version: int, to: Target) -> Message:
    return ShareGroupHeartbeatRequest(
        group_id=f"share-{to.key}", member_id=_MEMBER_ID, member_epoch=0, subscribed_topic_names=[to.name]
    )


def _topology(version: int, to: Target, use: str, *subtopologies: Subtopology) -> Message:
    return StreamsGroupHeartbeatRequest(
        group_id=f"streams-{use}-{version}-{to.key}",
        member_id=_MEMBER_ID,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        process_id="process",
        topology=Topology(epoch=0, subtopologies=list(subtopologies)),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        client_tags=[],
    )


# A topic of this name has to exist: the topology reads it.
SOURCE = "names-source"


@_use("of a source")
def streams_group_heartbeat__source(version: int, to: Target) -> Message:
    return _topology(version, to, "source", Subtopology(subtopology_id="0", source_topics=[to.name]))


@_use("of a changelog", creates=True)
def streams_group_heartbeat__changelog(version: int, to: Target) -> Message:
    changelog = TopicInfo(name=to.name, replication_factor=1)
    one = Subtopology(subtopology_id="0", source_topics=[SOURCE], state_changelog_topics=[changelog])
    return _topology(version, to, "changelog", one)


@_use("of a repartition topic", creates=True)
def streams_group_heartbeat__repartition(version: int, to: Target) -> Message:
    sink = Subtopology(subtopology_id="0", source_topics=[SOURCE], repartition_sink_topics=[to.name])
    source = Subtopology(
        subtopology_id="1", repartition_source_topics=[TopicInfo(name=to.name, partitions=1, replication_factor=1)]
    )
    return _topology(version, to, "repartition", sink, source)


@_use()
def streams_group_topology_description_update(_version: int, to: Target) -> Message:
    node = TopologyDescriptionNode(name="node", source_topics=[to.name], sink_topic=to.name)
    return StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=f"description-{to.key}",
        member_id=_MEMBER_ID,
        topology_epoch=0,
        topology_description=TopologyDescription(
            subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])],
            global_stores=[TopologyDescriptionGlobalStore(source=node, processor=node)],
        ),
    )


# Transactions


@_use("of a client", in_transaction=True, versions=(0, 3))
def add_partitions_to_txn(_version: int, to: Target) -> Message:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=to.key,
        v3_and_below_producer_id=to.producer_id,
        v3_and_below_producer_epoch=to.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=to.name, partitions=[0])],
    )


@_use("of a broker", in_transaction=True, versions=(4, 5))
def add_partitions_to_txn__of_a_broker(_version: int, to: Target) -> Message:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=to.key,
        producer_id=to.producer_id,
        producer_epoch=to.producer_epoch,
        topics=[AddPartitionsToTxnTopic(name=to.name, partitions=[0])],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


@_use(in_transaction=True)
def txn_offset_commit(_version: int, to: Target) -> Message:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return TxnOffsetCommitRequest(
        transactional_id=to.key,
        group_id=f"transaction-{to.key}",
        producer_id=to.producer_id,
        producer_epoch=to.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name=to.name, topic_id=to.topic_id, partitions=[partition])],
    )


@_use()
def write_txn_markers(_version: int, to: Target) -> Message:
    topic = WritableTxnMarkerTopic(name=to.name, partition_indexes=[0])
    marker = WritableTxnMarker(producer_id=1_000_000, producer_epoch=0, transaction_result=False, topics=[topic])
    return WriteTxnMarkersRequest(markers=[marker])


# Replicas


@_use("to no directory of the broker")
def alter_replica_log_dirs__nowhere(_version: int, to: Target) -> Message:
    topic = AlterReplicaLogDirTopic(name=to.name, partitions=[0])
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=[topic])])


@_use("to its directory")
def alter_replica_log_dirs(_version: int, to: Target) -> Message:
    topic = AlterReplicaLogDirTopic(name=to.name, partitions=[0])
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=to.log_dir, topics=[topic])])


@_use()
def describe_log_dirs(_version: int, to: Target) -> Message:
    return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=to.name, partitions=[0])])


@_use()
def alter_partition_reassignments(_version: int, to: Target) -> Message:
    topic = ReassignableTopic(name=to.name, partitions=[ReassignablePartition(partition_index=0, replicas=[1])])
    return AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use("that cancels")
def alter_partition_reassignments__cancel(_version: int, to: Target) -> Message:
    topic = ReassignableTopic(name=to.name, partitions=[ReassignablePartition(partition_index=0, replicas=None)])
    return AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def list_partition_reassignments(_version: int, to: Target) -> Message:
    topic = ListPartitionReassignmentsTopics(name=to.name, partition_indexes=[0])
    return ListPartitionReassignmentsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def elect_leaders(_version: int, to: Target) -> Message:
    return ElectLeadersRequest(
        election_type=0, topic_partitions=[ElectedPartitions(topic=to.name, partitions=[0])], timeout_ms=TIMEOUT_MS
    )


@_use("of an unclean election", versions=(2,))
def elect_leaders__unclean(_version: int, to: Target) -> Message:
    return ElectLeadersRequest(
        election_type=1, topic_partitions=[ElectedPartitions(topic=to.name, partitions=[0])], timeout_ms=TIMEOUT_MS
    )


@_use()
def describe_quorum(_version: int, to: Target) -> Message:
    topic = QuorumTopic(topic_name=to.name, partitions=[QuorumPartition(partition_index=0)])
    return DescribeQuorumRequest(topics=[topic])


# Share groups


@_use(loads=True)
def share_fetch(_version: int, to: Target) -> Message:
    return ShareFetchRequest(
        group_id=f"share-{to.key}",
        member_id=_MEMBER_ID,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_records=10,
        batch_size=10,
        topics=[ShareFetchTopic(topic_id=to.topic_id, partitions=[ShareFetchPartition(partition_index=0)])],
    )


@_use("that forgets", versions=(2,))
def share_fetch__forget(_version: int, to: Target) -> Message:
    return ShareFetchRequest(
        group_id=f"share-{to.key}",
        member_id=_MEMBER_ID,
        share_session_epoch=1,
        max_wait_ms=0,
        min_bytes=0,
        forgotten_topics_data=[ShareForgottenTopic(topic_id=to.topic_id, partitions=[0])],
    )


@_use()
def share_acknowledge(_version: int, to: Target) -> Message:
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[])
    return ShareAcknowledgeRequest(
        group_id=f"share-{to.key}",
        member_id=_MEMBER_ID,
        share_session_epoch=2,
        topics=[AcknowledgeTopic(topic_id=to.topic_id, partitions=[partition])],
    )


@_use()
def describe_share_group_offsets(_version: int, to: Target) -> Message:
    topic = DescribeShareGroupOffsetsRequestTopic(topic_name=to.name, partitions=[0])
    group = DescribeShareGroupOffsetsRequestGroup(group_id=f"share-offsets-{to.key}", topics=[topic])
    return DescribeShareGroupOffsetsRequest(groups=[group])


@_use()
def alter_share_group_offsets(_version: int, to: Target) -> Message:
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name=to.name, partitions=[partition])
    return AlterShareGroupOffsetsRequest(group_id=f"share-offsets-{to.key}", topics=[topic])


@_use()
def delete_share_group_offsets(_version: int, to: Target) -> Message:
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name=to.name)
    return DeleteShareGroupOffsetsRequest(group_id=f"share-offsets-{to.key}", topics=[topic])


@_use("of a share partition", versions=(6,))
def find_coordinator(_version: int, to: Target) -> Message:
    return FindCoordinatorRequest(key_type=2, coordinator_keys=[f"fetching:{printed_uuid(to.topic_id)}:0"])


# For the uses in a transaction.


def add_offsets_to_txn(to: Target) -> Message:
    """Return the request that precedes TxnOffsetCommit of old clients."""
    return AddOffsetsToTxnRequest(
        transactional_id=to.key,
        producer_id=to.producer_id,
        producer_epoch=to.producer_epoch,
        group_id=f"transaction-{to.key}",
    )


UNKNOWN_ID = ZERO_UUID[:-1] + b"\x63"
