"""Several brokers in one process: metadata, replicas, leadership errors, quotas and metrics."""

from typing import Any

import pytest
from prometheus_client import generate_latest

from sluice.broker.metadata.topic import Partition
from sluice.broker.server.metrics import registry
from sluice.protocol.apis import offset_for_leader_epoch as api
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.records import fetch, fetched, produce, produce_of
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

NODES = (1, 2, 3)


def three_brokers(*overrides: str) -> VirtualBroker:
    return VirtualBroker("sluice.brokers=3", *overrides)


@pytest.fixture
def cluster() -> VirtualBroker:
    return three_brokers()


def led_by(cluster: VirtualBroker, node_id: int, **options: Any) -> Partition:
    """Return the partition of a new topic that this broker leads."""
    topic = cluster.topic(partitions=3, **options)
    return next(partition for partition in topic.partitions if partition.leader == node_id)


def port_of(cluster: VirtualBroker, node_id: int) -> int:
    return cluster.cluster_server.servers[node_id].endpoints[0].port


# -- metadata ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node_id", NODES)
def test_each_broker_returns_the_addresses_of_all_brokers(cluster: VirtualBroker, node_id: int) -> None:
    client = cluster.client(node_id=node_id)
    all_brokers = [(node_id, port_of(cluster, node_id)) for node_id in NODES]
    metadata = client.call(MetadataRequest(topics=[]), 9)
    assert [(broker.node_id, broker.port) for broker in metadata.brokers] == all_brokers
    described = client.call(DescribeClusterRequest(), 1)
    assert [(broker.broker_id, broker.port) for broker in described.brokers] == all_brokers
    assert metadata.controller_id == described.controller_id == 1


def test_node_ids_are_consecutive() -> None:
    assert list(VirtualBroker("sluice.brokers=3", "node.id=5").cluster.brokers) == [5, 6, 7]


def test_advertised_ports_are_consecutive() -> None:
    cluster = three_brokers("advertised.listeners=PLAINTEXT://kafka.example:29092")
    brokers = cluster.client(node_id=2).call(MetadataRequest(topics=[]), 9).brokers
    assert [(broker.host, broker.port) for broker in brokers] == [
        ("kafka.example", port) for port in (29092, 29093, 29094)
    ]


def test_wildcard_listeners_are_advertised_with_the_address_that_the_client_used() -> None:
    brokers = (
        three_brokers("listeners=PLAINTEXT://0.0.0.0:0").client(node_id=2).call(MetadataRequest(topics=[]), 9).brokers
    )
    assert [broker.host for broker in brokers] == ["127.0.0.1"] * 3


# -- topics ------------------------------------------------------------------------------------------------------------


def test_every_broker_returns_the_same_replicas_of_a_topic(cluster: VirtualBroker) -> None:
    cluster.topic(partitions=3, replicas=2)
    responses = [cluster.client(node_id=node_id).call(MetadataRequest(topics=None), 9).topics for node_id in NODES]
    assert responses[0] == responses[1] == responses[2]
    partitions = responses[0][0].partitions
    assert sorted(partition.leader_id for partition in partitions) == [1, 2, 3]
    for partition in partitions:
        assert partition.leader_id == partition.replica_nodes[0]
        assert partition.replica_nodes == partition.isr_nodes
        assert len(set(partition.replica_nodes)) == 2
        assert partition.offline_replicas == []


def assigned_topic(*replicas: list[int]) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=those) for index, those in enumerate(replicas)
    ]
    return CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=assignments)


ASSIGNMENTS = {
    "as many replicas as brokers": (CreatableTopic(name="t", num_partitions=1, replication_factor=3), 0),
    "more replicas than brokers": (
        CreatableTopic(name="t", num_partitions=1, replication_factor=4),
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ),
    "valid manual assignment": (assigned_topic([3, 1], [2, 3]), 0),
    "manual assignment with different replica counts": (
        assigned_topic([3, 1], [2]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
}


@pytest.mark.parametrize(("topic", "code"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_replica_assignment_of_a_new_topic(cluster: VirtualBroker, topic: CreatableTopic, code: int) -> None:
    (created,) = cluster.client(node_id=2).call(CreateTopicsRequest(topics=[topic]), 5).topics
    assert created.error_code == code, created.error_message
    if not code and topic.assignments:
        assert [partition.replicas for partition in cluster.cluster.topics["t"].partitions] == [(3, 1), (2, 3)]


# -- requests to a broker that is not the leader -----------------------------------------------------------------------


def requests_for_leader(partition: int, epoch: int) -> list[tuple[Message, int]]:
    """Return requests that only the leader accepts, with their versions."""
    to_list = ListOffsetsPartition(partition_index=partition, timestamp=-1, current_leader_epoch=epoch)
    epoch_end = api.OffsetForLeaderPartition(partition=partition, current_leader_epoch=epoch, leader_epoch=0)
    to_delete = DeleteRecordsPartition(partition_index=partition, offset=0)
    return [
        (produce(9, partition=partition), 9),
        (fetch(0, partition=partition, current_leader_epoch=epoch), 10),
        (ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[to_list])]), 5),
        (api.OffsetForLeaderEpochRequest(topics=[api.OffsetForLeaderTopic(topic="t", partitions=[epoch_end])]), 3),
        (DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[to_delete])]), 1),
    ]


@pytest.mark.parametrize(
    "number", range(5), ids=["Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords"]
)
@pytest.mark.parametrize("replicas", [1, 3], ids=["a broker without a replica", "a follower"])
def test_request_to_another_broker_than_the_leader_returns_not_leader_or_follower(number: int, replicas: int) -> None:
    cluster = three_brokers()
    partition = led_by(cluster, 2, replicas=replicas)
    request, version = requests_for_leader(partition.index, -1)[number]
    assert error_codes(cluster.client(node_id=2).call(request, version)) == []
    assert error_codes(cluster.client(node_id=3).call(request, version)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


DESCRIBING_REPLICAS = {"a broker without a replica": (1, ErrorCode.NOT_LEADER_OR_FOLLOWER), "a follower": (3, 0)}


@pytest.mark.parametrize(("replicas", "code"), DESCRIBING_REPLICAS.values(), ids=DESCRIBING_REPLICAS)
def test_every_replica_describes_producers(replicas: int, code: int) -> None:
    cluster = three_brokers()
    partition = led_by(cluster, 2, replicas=replicas)
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[partition.index])])
    assert error_codes(cluster.client(node_id=3).call(request, 0)) == [code][: code > 0]


FUTURE_EPOCHS = {
    "a follower checks the epoch first": (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    "a broker without a replica has no epoch": (1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
}


@pytest.mark.parametrize("number", [1, 2, 3], ids=["Fetch", "ListOffsets", "OffsetForLeaderEpoch"])
@pytest.mark.parametrize(("replicas", "code"), FUTURE_EPOCHS.values(), ids=FUTURE_EPOCHS)
def test_future_leader_epoch_on_a_broker_that_is_not_the_leader(number: int, replicas: int, code: int) -> None:
    cluster = three_brokers()
    partition = led_by(cluster, 2, replicas=replicas)
    request, version = requests_for_leader(partition.index, 7)[number]
    assert error_codes(cluster.client(node_id=3).call(request, version)) == [code]


@pytest.mark.parametrize(("version", "has_leader"), [(9, False), (10, True), (12, True)])
def test_produce_to_another_broker_returns_the_current_leader(version: int, has_leader: bool) -> None:
    cluster = three_brokers()
    partition = led_by(cluster, 2)
    response = cluster.client(node_id=1).call(produce(version, partition=partition.index), version)
    (partition_response,) = response.responses[0].partition_responses
    if not has_leader:
        assert (partition_response.current_leader, response.node_endpoints) == (None, [])
        return
    assert (partition_response.current_leader.leader_id, partition_response.current_leader.leader_epoch) == (2, 0)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, port_of(cluster, 2))]


@pytest.mark.parametrize(("version", "has_leader"), [(15, False), (16, True), (17, True)])
def test_fetch_from_another_broker_returns_the_current_leader(version: int, has_leader: bool) -> None:
    cluster = three_brokers()
    partition = led_by(cluster, 2)
    request = fetch(0, topic_id=partition.topic.topic_id, partition=partition.index)
    response = cluster.client(node_id=1).call(request, version)
    leader = fetched(response).current_leader
    if not has_leader:
        assert (leader, response.node_endpoints) == (None, [])
        return
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (2, 0)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, port_of(cluster, 2))]


# -- state of each broker ----------------------------------------------------------------------------------------------


def test_byte_quota_is_enforced_by_each_broker_separately() -> None:
    cluster = three_brokers("quota.producer.default=1000", "quota.profile=kafka-4.4")
    partitions = {node_id: led_by(cluster, node_id, name=f"t{node_id}").index for node_id in NODES}
    clients = {node_id: cluster.client(node_id=node_id) for node_id in NODES}

    def send(node_id: int, size: int) -> int:
        request = produce_of(size, 9, "client", topic=f"t{node_id}")
        request.topic_data[0].partition_data[0].index = partitions[node_id]
        throttle_time_ms: int = clients[node_id].call(request, 9).throttle_time_ms
        return throttle_time_ms

    assert send(1, 25_000) > 0
    assert [send(node_id, 9_000) for node_id in (2, 3)] == [0, 0]
    assert send(2, 25_000) > 0, "each broker enforces the whole quota"


@pytest.mark.parametrize("target", NODES)
def test_quota_set_at_one_broker_applies_to_every_broker(cluster: VirtualBroker, target: int) -> None:
    entity = [EntityData(entity_type="client-id", entity_name="client")]
    change = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
    cluster.client(node_id=target).call(AlterClientQuotasRequest(entries=[change]), 1)
    managers = [broker.quotas.produce for broker in cluster.cluster_server.brokers.values()]
    assert [manager.record("ANONYMOUS", "client", 25_000.0, 0) > 0 for manager in managers] == [True] * 3


def test_brokers_assign_distinct_producer_ids(cluster: VirtualBroker) -> None:
    clients = [cluster.client(node_id=node_id) for node_id in NODES]
    ids = [
        client.call(InitProducerIdRequest(transactional_id=None), 3).producer_id for client in clients for _ in range(2)
    ]
    assert ids == [0, 1, 1000, 1001, 2000, 2001]


def test_append_completes_a_waiting_fetch_on_the_leader(cluster: VirtualBroker) -> None:
    partition = led_by(cluster, 3)
    consumer, producer = cluster.client(node_id=3), cluster.client(node_id=3)
    consumer.send(fetch(0, partition=partition.index, max_wait_ms=1000), 11)
    cluster.advance(10)
    producer.call(produce(9, partition=partition.index), 9)
    assert consumer.response().at_ms == 10


def test_topic_deletion_completes_a_waiting_fetch_on_another_broker(cluster: VirtualBroker) -> None:
    partition = led_by(cluster, 3)
    consumer = cluster.client(node_id=3)
    consumer.send(fetch(0, partition=partition.index, max_wait_ms=1000), 11)
    cluster.broker.delete_topic(partition.topic)
    cluster.broker.actions.complete()
    assert error_codes(consumer.response().message) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_metric_series_have_a_broker_label(cluster: VirtualBroker) -> None:
    partition = led_by(cluster, 2, replicas=2)
    cluster.client(node_id=2).call(produce(9, partition=partition.index), 9)
    text = generate_latest(registry(cluster.cluster_server)).decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all('broker="' in line for line in lines)
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines), "each series occurs once"
    messages = [line for line in lines if line.startswith("kafka_server_brokertopicmetrics_messagesin_total")]
    assert [line[-3:] for line in messages] == ["0.0", "1.0", "0.0"]
    assert [line[-3:] for line in lines if line.startswith("sluice_partitions{")] == ["2.0"] * 3
    connections = [line[-3:] for line in lines if line.startswith("sluice_connections{")]
    assert connections == ["0.0", "1.0", "0.0"]
