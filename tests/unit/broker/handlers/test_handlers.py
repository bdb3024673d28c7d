"""Every API in every served version: a valid request gets a readable response without errors."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.broker.controller.configs.client_metrics import DEFAULT_INTERVAL_MS
from sluice.broker.controller.configs.client_metrics_manager import Subscription
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.share.group import ShareGroup
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.network.connection import Connection
from sluice.broker.share.sessions import MemberKey
from sluice.config.property_table import AS_RELEASES
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.alter_configs import AlterConfigsRequest, AlterConfigsResource
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
from sluice.protocol.apis.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.create_acls import CreateAclsRequest
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_acls import DeleteAclsRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.apis.describe_client_quotas import DescribeClientQuotasRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from sluice.protocol.apis.describe_producers import DescribeProducersRequest
from sluice.protocol.apis.describe_producers import TopicRequest as DescribeProducersTopic
from sluice.protocol.apis.describe_quorum import DescribeQuorumRequest
from sluice.protocol.apis.describe_quorum import PartitionData as QuorumPartition
from sluice.protocol.apis.describe_quorum import TopicData as QuorumTopic
from sluice.protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest
from sluice.protocol.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from sluice.protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.join_group import JoinGroupRequest
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.list_config_resources import ListConfigResourcesRequest
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from sluice.protocol.apis.list_transactions import ListTransactionsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_fetch import OffsetFetchRequest
from sluice.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.apis.share_acknowledge import ShareAcknowledgeRequest
from sluice.protocol.apis.share_fetch import ShareFetchRequest
from sluice.protocol.apis.share_group_describe import ShareGroupDescribeRequest
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_describe import StreamsGroupDescribeRequest
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest
from sluice.protocol.apis.sync_group import SyncGroupRequest
from sluice.protocol.apis.unregister_broker import UnregisterBrokerRequest
from sluice.protocol.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from sluice.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message, fields_of
from tests.support.acls import secured_broker
from tests.support.groups import (
    SESSION_MS,
    commit_request,
    delete_offsets_request,
    fetch_request,
    protocol,
    stable_group,
)
from tests.support.records import fetch, produce
from tests.support.sasl import SASL, handshake, plain
from tests.support.slow_handlers import slow_handlers
from tests.support.streams_groups import stateless
from tests.support.transactions import add_request, end_request, initialized, offsets_request
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

Maker = Callable[[int, bytes], Message]  # version, id of the topic "t"


def alter_client_quotas() -> Message:
    entity, op = EntityData(entity_type="user", entity_name="u"), OpData(key="producer_byte_rate", value=5.0)
    return AlterClientQuotasRequest(entries=[EntryData(entity=[entity], ops=[op])])


def alter_partition_reassignments() -> Message:
    partition = ReassignablePartition(partition_index=0, replicas=[1])
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[partition])])


def alter_user_scram_credentials() -> Message:
    upsertion = ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    return AlterUserScramCredentialsRequest(upsertions=[upsertion])


def alter_replica_log_dirs() -> Message:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="memory", topics=topics)])


def create_topics() -> Message:
    # Versions before KIP-464 do not support -1 for the broker's defaults.
    return CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=2, replication_factor=1)])


def delete_records() -> Message:
    partition = DeleteRecordsPartition(partition_index=0, offset=0)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])])


def delete_topics(version: int, topic_id: bytes) -> Message:
    return DeleteTopicsRequest(topic_names=["t"], topics=[DeleteTopicState(topic_id=topic_id)], timeout_ms=1000)


def join_group() -> Message:
    return JoinGroupRequest(
        group_id="group",
        session_timeout_ms=SESSION_MS,
        member_id="member",
        protocol_type="consumer",
        protocols=[protocol()],
    )


def sync_group() -> Message:
    return SyncGroupRequest(
        group_id="group", generation_id=1, member_id="member", protocol_type="consumer", protocol_name="range"
    )


def leave_group() -> Message:
    return LeaveGroupRequest(group_id="group", member_id="member", members=[MemberIdentity(member_id="member")])


def list_offsets() -> Message:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])


def offset_fetch(version: int, topic_id: bytes) -> Message:
    # In version 0, a partition without an offset is unknown.
    return OffsetFetchRequest(group_id="group") if version == 0 else fetch_request(version=version, topic_id=topic_id)


def offset_for_leader_epoch() -> Message:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[partition])])


def txn_offset_commit(version: int, topic_id: bytes) -> Message:
    request = offsets_request(0, 0, "empty")
    request.topics[0].topic_id = topic_id
    return request


def write_txn_markers() -> Message:
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=topics)])


def push_telemetry() -> Message:
    subscription = Subscription(b"i" * 16, [], DEFAULT_INTERVAL_MS)
    return PushTelemetryRequest(client_instance_id=b"i" * 16, subscription_id=subscription.id)


# The requests that depend on the version or on the id of the topic "t", and the others.
VARYING: dict[str, Maker] = {
    "Produce": lambda version, topic_id: produce(version, topic_id=topic_id),
    "Fetch": lambda version, topic_id: fetch(0, topic_id=topic_id),
    "OffsetCommit": lambda version, topic_id: commit_request(group_id="simple", topic_id=topic_id),
    "OffsetFetch": offset_fetch,
    "DescribeGroups": lambda version, topic_id: DescribeGroupsRequest(
        groups=["group"], include_authorized_operations=version >= 3
    ),
    "ListGroups": lambda version, topic_id: ListGroupsRequest(
        states_filter=["Stable"] if version >= 4 else [], types_filter=["classic"] if version >= 5 else []
    ),
    "DeleteTopics": delete_topics,
    "TxnOffsetCommit": txn_offset_commit,
    "AddPartitionsToTxn": lambda version, topic_id: add_request(version, 0, 0),
    "DescribeConfigs": lambda version, topic_id: DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    ),
}
SAME: dict[str, Message] = {
    "ListOffsets": list_offsets(),
    "Metadata": MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
    "FindCoordinator": FindCoordinatorRequest(key="group", coordinator_keys=["group", "other"]),
    "JoinGroup": join_group(),
    "Heartbeat": HeartbeatRequest(group_id="group", generation_id=1, member_id="member"),
    "LeaveGroup": leave_group(),
    "SyncGroup": sync_group(),
    "ApiVersions": ApiVersionsRequest(client_software_name="test", client_software_version="1.0"),
    "SaslHandshake": SaslHandshakeRequest(mechanism="PLAIN"),
    "SaslAuthenticate": SaslAuthenticateRequest(auth_bytes=plain()),
    "CreateTopics": create_topics(),
    "DeleteRecords": delete_records(),
    "InitProducerId": InitProducerIdRequest(transactional_id=None),
    "OffsetForLeaderEpoch": offset_for_leader_epoch(),
    "AddOffsetsToTxn": AddOffsetsToTxnRequest(transactional_id="tx", group_id="empty"),
    "EndTxn": end_request(0, 0),
    "WriteTxnMarkers": write_txn_markers(),
    "DescribeAcls": DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1),
    "CreateAcls": CreateAclsRequest(creations=[]),
    "DeleteAcls": DeleteAclsRequest(filters=[]),
    "AlterConfigs": AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="t")]),
    "AlterReplicaLogDirs": alter_replica_log_dirs(),
    "DescribeLogDirs": DescribeLogDirsRequest(topics=None),
    "CreatePartitions": CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=1000
    ),
    "DeleteGroups": DeleteGroupsRequest(groups_names=["empty"]),
    "ElectLeaders": ElectLeadersRequest(topic_partitions=None),
    "IncrementalAlterConfigs": IncrementalAlterConfigsRequest(
        resources=[IncrementalResource(resource_type=2, resource_name="t")]
    ),
    "AlterPartitionReassignments": alter_partition_reassignments(),
    "ListPartitionReassignments": ListPartitionReassignmentsRequest(topics=None),
    "OffsetDelete": delete_offsets_request(group_id="empty"),
    "DescribeClientQuotas": DescribeClientQuotasRequest(),
    "AlterClientQuotas": alter_client_quotas(),
    "DescribeUserScramCredentials": DescribeUserScramCredentialsRequest(),
    "AlterUserScramCredentials": alter_user_scram_credentials(),
    "DescribeQuorum": DescribeQuorumRequest(
        topics=[QuorumTopic(topic_name="__cluster_metadata", partitions=[QuorumPartition()])]
    ),
    "UpdateFeatures": UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="transaction.version", max_version_level=2)]
    ),
    "UnregisterBroker": UnregisterBrokerRequest(broker_id=1),
    "DescribeCluster": DescribeClusterRequest(),
    "DescribeProducers": DescribeProducersRequest(topics=[DescribeProducersTopic(name="t", partition_indexes=[0])]),
    "DescribeTransactions": DescribeTransactionsRequest(transactional_ids=["tx"]),
    "ListTransactions": ListTransactionsRequest(state_filters=["Ongoing"]),
    "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(
        group_id="consumers",
        member_id="member",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    ),
    "ConsumerGroupDescribe": ConsumerGroupDescribeRequest(group_ids=["consumers"]),
    "StreamsGroupHeartbeat": StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id="member",
        rebalance_timeout_ms=1000,
        topology=stateless(),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    ),
    "StreamsGroupDescribe": StreamsGroupDescribeRequest(group_ids=["streams"]),
    "StreamsGroupTopologyDescriptionUpdate": StreamsGroupTopologyDescriptionUpdateRequest(
        group_id="streams", member_id="member"
    ),
    "ShareGroupHeartbeat": ShareGroupHeartbeatRequest(
        group_id="share", member_id="another", subscribed_topic_names=["t"]
    ),
    "ShareGroupDescribe": ShareGroupDescribeRequest(group_ids=["share"]),
    "ShareFetch": ShareFetchRequest(group_id="share", member_id="fetching"),
    "ShareAcknowledge": ShareAcknowledgeRequest(group_id="share", member_id="acknowledging", share_session_epoch=1),
    "DescribeShareGroupOffsets": DescribeShareGroupOffsetsRequest(
        groups=[
            DescribeShareGroupOffsetsRequestGroup(
                group_id="share", topics=[DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])]
            )
        ]
    ),
    "AlterShareGroupOffsets": AlterShareGroupOffsetsRequest(
        group_id="empty-share",
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name="t", partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0)]
            )
        ],
    ),
    "DeleteShareGroupOffsets": DeleteShareGroupOffsetsRequest(
        group_id="empty-share", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
    ),
    "GetTelemetrySubscriptions": GetTelemetrySubscriptionsRequest(),
    "PushTelemetry": push_telemetry(),
    "ListConfigResources": ListConfigResourcesRequest(),
    "DescribeTopicPartitions": DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]),
}


def valid_request(name: str, version: int, topic_id: bytes) -> Message:
    return VARYING[name](version, topic_id) if name in VARYING else SAME[name]


def served_versions(key: int) -> range:
    """Return the versions of an API that the broker serves."""
    return range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1)


SERVED = [(API_KEYS[key].name, version) for key in HANDLERS for version in served_versions(key)]


def full_broker(*overrides: str) -> VirtualBroker:
    """Return a broker that serves every API."""
    return secured_broker("sluice.telemetry=true", *overrides)


def populated_broker(*overrides: str) -> tuple[VirtualBroker, bytes]:
    """Return a broker that serves every API, with topic "t", groups and a transaction; and the id of the topic.

    The transaction of "tx", by producer 0 in epoch 0, has the offsets of the group "empty".
    """
    broker = full_broker(*overrides)
    topic = broker.topic()
    stable_group(broker)
    groups = broker.broker.groups
    groups.create_classic("empty")
    groups.groups |= {"consumers": ConsumerGroup("consumers"), "streams": StreamsGroup("streams")}
    assert initialized(broker).add_offsets("empty") == 0
    return broker, topic.topic_id


def test_every_served_api_has_a_valid_request() -> None:
    assert sorted([*VARYING, *SAME]) == sorted(API_KEYS[key].name for key in HANDLERS)


each_api = pytest.mark.parametrize("key", HANDLERS, ids=lambda key: API_KEYS[key].name)


@each_api
def test_valid_request_returns_no_error(key: int) -> None:
    name = API_KEYS[key].name
    is_plugin_api = name == "StreamsGroupTopologyDescriptionUpdate"  # as in Kafka, rejected without a plug-in
    for version in served_versions(key):
        expected = [ErrorCode.UNSUPPORTED_VERSION] if is_plugin_api else []
        assert error_codes(response_to_valid_request(name, version)) == expected, f"v{version}"


def response_to_valid_request(name: str, version: int) -> Message:
    """Send a valid request to a new broker."""
    broker, topic_id = populated_broker()
    broker.broker.groups.groups |= {name: ShareGroup(name) for name in ("share", "empty-share")}
    client = broker.client()
    assert isinstance(client.protocol, Connection)
    broker.broker.share_partitions.sessions.open(MemberKey("share", "acknowledging"), client.protocol, [])
    if name.startswith("Sasl"):  # which a PLAINTEXT listener does not support
        client = VirtualBroker(*SASL).client()
        if name == "SaslAuthenticate":
            handshake(client)
    response: Message = client.call(valid_request(name, version, topic_id), version)
    return response


@pytest.mark.parametrize("release", AS_RELEASES)
def test_valid_request_is_answered_as_each_release(release: str) -> None:
    for key in HANDLERS:
        broker = VirtualBroker(f"sluice.kafka.release={release}")
        topic_id, served = broker.topic().topic_id, broker.broker.served.get(key)
        if served is None or API_KEYS[key].name.startswith("Sasl"):
            continue
        for version in {*served}:
            client = broker.client()
            client.send(valid_request(API_KEYS[key].name, version, topic_id), version)
            broker.advance(10_000)  # longer than a group's rebalance
            assert client.is_open, f"{API_KEYS[key].name} v{version}"
            assert client.take_responses(), f"{API_KEYS[key].name} v{version}"


@each_api
def test_empty_request_gets_a_response(key: int) -> None:
    broker = full_broker()
    for version in served_versions(key):
        client = broker.client()
        request = API_KEYS[key].request()
        if isinstance(request, ProduceRequest):
            request.acks = 1  # acks=0 has no response
        if isinstance(request, DescribeAclsRequest):
            request = SAME["DescribeAcls"]  # a filter of zeros closes the connection
        client.send(request, version)
        assert client.response().at_ms == 0, f"v{version}"


@each_api
def test_response_contains_the_throttle_time_in_each_version_that_has_it(
    key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = API_KEYS[key].name
    is_exempt = name in ("WriteTxnMarkers", "SaslHandshake", "SaslAuthenticate")  # inter-broker, authentication
    field = next((field for field in fields_of(API_KEYS[key].response) if field.name == "throttle_time_ms"), None)
    for version in served_versions(key):
        with monkeypatch.context() as patch:
            client = client_above_the_request_quota(name, version, patch)
        has_field = field is not None and version in field.versions
        throttle_time_ms = getattr(client.response().message, "throttle_time_ms", 0)
        assert throttle_time_ms == (1_000 if has_field else 0), f"v{version}"
        assert client.transport.reading == is_exempt, f"v{version}: the request quota"


def client_above_the_request_quota(name: str, version: int, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client whose request took a broker 250 ms."""
    broker, topic_id = populated_broker("quota.profile=kafka-4.4")
    broker.broker.cluster.client_quotas.alter({"user": "ANONYMOUS"}, {"request_percentage": 1.0})
    slow_handlers(monkeypatch, broker, work_ms=250)
    for route in broker.server.exchange.routes:  # already used by the setup above
        monkeypatch.setattr(route, "handle", HANDLERS[route.api_key].load())
    client = broker.client()
    client.send(valid_request(name, version, topic_id), version)
    broker.settle()  # a slow request that is sliced continues in a later event-loop iteration
    return client


def test_advertised_versions_are_the_served_versions() -> None:
    response = full_broker().client().call(ApiVersionsRequest(), 0)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert advertised == {key: (handler.min_version, handler.max_version) for key, handler in HANDLERS.items()}


def test_telemetry_apis_are_advertised_only_when_enabled() -> None:
    client = VirtualBroker().client()
    advertised = {api.api_key for api in client.call(ApiVersionsRequest(), 0).api_keys}
    assert set(HANDLERS) - advertised == {71, 72}
    assert client.call(GetTelemetrySubscriptionsRequest(), 0).error_code == ErrorCode.NONE


def test_served_versions_are_stable_versions_of_the_protocol() -> None:
    unsupported = [
        API_KEYS[key].name
        for key, handler in HANDLERS.items()
        if handler.min_version < API_KEYS[key].min_version
        or handler.max_version > API_KEYS[key].max_version - API_KEYS[key].latest_unstable
    ]
    assert unsupported == []


@settings(max_examples=3 * settings().max_examples)
@given(data=st.data())
def test_mutated_request_gets_a_response_waits_or_closes_the_connection(data: st.DataObject) -> None:
    name, version = data.draw(st.sampled_from(SERVED), label="API and version")
    broker = full_broker()
    topic = broker.topic()
    stable_group(broker)
    client = broker.client()
    received: list[bytes] = []
    client.on_bytes = received.append  # a response to a mutated request need not be readable
    request = bytearray(client.frame(valid_request(name, version, topic.topic_id), version))
    for _ in range(data.draw(st.integers(1, 4), label="changes")):
        position = data.draw(st.integers(8, len(request) - 1), label="position")
        request[position] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]), label="byte")
    client.send_bytes(bytes(request))
    may_be_acks_0 = name == "Produce"  # the mutation may set acks=0
    assert received or client.connection.waiting or client.closed_at_ms is not None or may_be_acks_0
    client.leave()
    assert broker.server.connections == {}
    replicas = broker.broker.replicas
    pending = [len(purgatory) for purgatory in (replicas.fetches, replicas.produces, replicas.delete_records)]
    assert pending == [0, 0, 0], "an operation of a disconnected client is still pending"
