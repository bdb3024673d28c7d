"""Every API in every served version: a valid request gets a readable response without errors."""

from collections.abc import Callable
from typing import Any

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
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message, fields_of
from tests.support import groups as classic_groups
from tests.support.acls import secured_broker
from tests.support.messages import request
from tests.support.records import fetch, produce
from tests.support.sasl import SASL, handshake, plain
from tests.support.slow_handlers import slow_handlers
from tests.support.streams_groups import stateless
from tests.support.transactions import add_request, end_request, initialized, offsets_request
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

Maker = Callable[[int, bytes], Message]  # version, id of the topic "t"


def delete_topics(version: int, topic_id: bytes) -> Message:
    return request("DeleteTopics", topic_names=["t"], topics=[{"topic_id": topic_id}], timeout_ms=1000)


def offset_fetch(version: int, topic_id: bytes) -> Message:
    # In version 0, a partition without an offset is unknown.
    return (
        request("OffsetFetch", group_id="group")
        if version == 0
        else classic_groups.fetch_request(version=version, topic_id=topic_id)
    )


def txn_offset_commit(version: int, topic_id: bytes) -> Message:
    request = offsets_request(0, 0, "empty")
    request.topics[0].topic_id = topic_id
    return request


def push_telemetry() -> Message:
    subscription = Subscription(b"i" * 16, [], DEFAULT_INTERVAL_MS)
    return request("PushTelemetry", client_instance_id=b"i" * 16, subscription_id=subscription.id)


# The requests that depend on the version or on the id of the topic "t", and the others.
VARYING: dict[str, Maker] = {
    "Produce": lambda version, topic_id: produce(version, topic_id=topic_id),
    "Fetch": lambda version, topic_id: fetch(0, topic_id=topic_id),
    "OffsetCommit": lambda version, topic_id: classic_groups.commit_request(group_id="simple", topic_id=topic_id),
    "OffsetFetch": offset_fetch,
    "DescribeGroups": lambda version, topic_id: request(
        "DescribeGroups", groups=["group"], include_authorized_operations=version >= 3
    ),
    "ListGroups": lambda version, topic_id: request(
        "ListGroups", states_filter=["Stable"] if version >= 4 else [], types_filter=["classic"] if version >= 5 else []
    ),
    "DeleteTopics": delete_topics,
    "TxnOffsetCommit": txn_offset_commit,
    "AddPartitionsToTxn": lambda version, topic_id: add_request(version, 0, 0),
    "DescribeConfigs": lambda version, topic_id: request(
        "DescribeConfigs",
        resources=[{"resource_type": 2, "resource_name": "t", "configuration_keys": None}],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    ),
}
FIELDS: dict[str, dict[str, Any]] = {
    "ListOffsets": {
        "replica_id": -1,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    },
    "Metadata": {"topics": [{"name": "t"}]},
    "FindCoordinator": {"key": "group", "coordinator_keys": ["group", "other"]},
    "JoinGroup": {
        "group_id": "group",
        "session_timeout_ms": classic_groups.SESSION_MS,
        "member_id": "member",
        "protocol_type": "consumer",
        "protocols": [classic_groups.protocol()],
    },
    "Heartbeat": {"group_id": "group", "generation_id": 1, "member_id": "member"},
    "LeaveGroup": {"group_id": "group", "member_id": "member", "members": [{"member_id": "member"}]},
    "SyncGroup": {
        "group_id": "group",
        "generation_id": 1,
        "member_id": "member",
        "protocol_type": "consumer",
        "protocol_name": "range",
    },
    "ApiVersions": {"client_software_name": "test", "client_software_version": "1.0"},
    "SaslHandshake": {"mechanism": "PLAIN"},
    "SaslAuthenticate": {"auth_bytes": plain()},
    # Versions before KIP-464 do not support -1 for the broker's defaults.
    "CreateTopics": {"topics": [{"name": "new", "num_partitions": 2, "replication_factor": 1}]},
    "DeleteRecords": {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 0}]}]},
    "InitProducerId": {"transactional_id": None},
    "OffsetForLeaderEpoch": {"topics": [{"topic": "t", "partitions": [{"partition": 0, "leader_epoch": 0}]}]},
    "AddOffsetsToTxn": {"transactional_id": "tx", "group_id": "empty"},
    "WriteTxnMarkers": {"markers": [{"producer_id": 7, "topics": [{"name": "t", "partition_indexes": [0]}]}]},
    "CreateAcls": {"creations": []},
    "DeleteAcls": {"filters": []},
    "AlterConfigs": {"resources": [{"resource_type": 2, "resource_name": "t"}]},
    "AlterReplicaLogDirs": {"dirs": [{"path": "memory", "topics": [{"name": "t", "partitions": [0]}]}]},
    "DescribeLogDirs": {"topics": None},
    "CreatePartitions": {"topics": [{"name": "t", "count": 2, "assignments": None}], "timeout_ms": 1000},
    "DeleteGroups": {"groups_names": ["empty"]},
    "ElectLeaders": {"topic_partitions": None},
    "IncrementalAlterConfigs": {"resources": [{"resource_type": 2, "resource_name": "t"}]},
    "AlterPartitionReassignments": {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
    "ListPartitionReassignments": {"topics": None},
    "DescribeClientQuotas": {},
    "AlterClientQuotas": {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": "u"}],
                "ops": [{"key": "producer_byte_rate", "value": 5.0}],
            }
        ]
    },
    "DescribeUserScramCredentials": {},
    "AlterUserScramCredentials": {
        "upsertions": [{"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}]
    },
    "DescribeQuorum": {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{}]}]},
    "UpdateFeatures": {"feature_updates": [{"feature": "transaction.version", "max_version_level": 2}]},
    "UnregisterBroker": {"broker_id": 1},
    "DescribeCluster": {},
    "DescribeProducers": {"topics": [{"name": "t", "partition_indexes": [0]}]},
    "DescribeTransactions": {"transactional_ids": ["tx"]},
    "ListTransactions": {"state_filters": ["Ongoing"]},
    "ConsumerGroupHeartbeat": {
        "group_id": "consumers",
        "member_id": "member",
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    },
    "ConsumerGroupDescribe": {"group_ids": ["consumers"]},
    "StreamsGroupHeartbeat": {
        "group_id": "streams",
        "member_id": "member",
        "rebalance_timeout_ms": 1000,
        "topology": stateless(),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    },
    "StreamsGroupDescribe": {"group_ids": ["streams"]},
    "StreamsGroupTopologyDescriptionUpdate": {"group_id": "streams", "member_id": "member"},
    "ShareGroupHeartbeat": {"group_id": "share", "member_id": "another", "subscribed_topic_names": ["t"]},
    "ShareGroupDescribe": {"group_ids": ["share"]},
    "ShareFetch": {"group_id": "share", "member_id": "fetching"},
    "ShareAcknowledge": {"group_id": "share", "member_id": "acknowledging", "share_session_epoch": 1},
    "DescribeShareGroupOffsets": {
        "groups": [{"group_id": "share", "topics": [{"topic_name": "t", "partitions": [0]}]}]
    },
    "AlterShareGroupOffsets": {
        "group_id": "empty-share",
        "topics": [{"topic_name": "t", "partitions": [{"partition_index": 0}]}],
    },
    "DeleteShareGroupOffsets": {"group_id": "empty-share", "topics": [{"topic_name": "t"}]},
    "GetTelemetrySubscriptions": {},
    "ListConfigResources": {},
    "DescribeTopicPartitions": {"topics": [{"name": "t"}]},
}
SAME: dict[str, Message] = {
    **{api: request(api, **fields) for api, fields in FIELDS.items()},
    "EndTxn": end_request(0, 0),
    "DescribeAcls": DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1),
    "OffsetDelete": classic_groups.delete_offsets_request(group_id="empty"),
    "PushTelemetry": push_telemetry(),
}


def valid_request(name: str, version: int, topic_id: bytes) -> Message:
    return VARYING[name](version, topic_id) if name in VARYING else SAME[name]


def served_versions(key: int) -> range:
    return range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1)


SERVED = [(API_KEYS[key].name, version) for key in HANDLERS for version in served_versions(key)]


def full_broker(*overrides: str) -> VirtualBroker:
    return secured_broker("sluice.telemetry=true", *overrides)


def populated_broker(*overrides: str) -> tuple[VirtualBroker, bytes]:
    """Return a broker that serves every API, with topic "t", groups and a transaction; and the id of the topic.

    The transaction of "tx", by producer 0 in epoch 0, has the offsets of the group "empty".
    """
    broker = full_broker(*overrides)
    topic = broker.topic()
    classic_groups.stable_group(broker)
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
    broker, topic_id = populated_broker()
    broker.broker.groups.groups |= {name: ShareGroup(name) for name in ("share", "empty-share")}
    client = broker.client()
    assert isinstance(client.protocol, Connection)
    broker.broker.share_partitions.sessions.open(MemberKey("share", "acknowledging"), client.protocol, {})
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
    response = full_broker().client().call(request("ApiVersions"), 0)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert advertised == {key: (handler.min_version, handler.max_version) for key, handler in HANDLERS.items()}


def test_telemetry_apis_are_advertised_only_when_enabled() -> None:
    client = VirtualBroker().client()
    advertised = {api.api_key for api in client.call(request("ApiVersions"), 0).api_keys}
    assert set(HANDLERS) - advertised == {71, 72}
    assert client.call(request("GetTelemetrySubscriptions"), 0).error_code == ErrorCode.NONE


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
    classic_groups.stable_group(broker)
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
