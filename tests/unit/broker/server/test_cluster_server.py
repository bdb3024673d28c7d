"""Several brokers in one process: what they share, what each has for itself, and how a client finds its way."""

from typing import Any

import pytest
from prometheus_client import generate_latest

from sluice.broker.metadata.topic import Partition
from sluice.broker.server.metrics import registry
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.records import fetch, fetched, produce, produce_of
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

NODES = (1, 2, 3)


def three(*overrides: str) -> VirtualBroker:
    return VirtualBroker("sluice.brokers=3", *overrides)


def led_by(cluster: VirtualBroker, node_id: int, **more: Any) -> Partition:
    """The partition of a new topic that this broker leads."""
    topic = cluster.topic(partitions=3, **more)
    return next(partition for partition in topic.partitions if partition.leader == node_id)


def port_of(cluster: VirtualBroker, node_id: int) -> int:
    return cluster.cluster_server.servers[node_id].endpoints[0].port


# -- who is there ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node_id", NODES)
def test_each_broker_tells_of_all_where_they_listen(node_id: int) -> None:
    cluster = three()
    client = cluster.client(node_id=node_id)
    everyone = [(node_id, port_of(cluster, node_id)) for node_id in NODES]
    metadata = client.ask(MetadataRequest(topics=[]), 9)
    assert [(broker.node_id, broker.port) for broker in metadata.brokers] == everyone
    described = client.ask(DescribeClusterRequest(), 1)
    assert [(broker.broker_id, broker.port) for broker in described.brokers] == everyone
    assert metadata.controller_id == described.controller_id == 1


def test_node_ids_count_on_from_that_of_the_first() -> None:
    assert list(VirtualBroker("sluice.brokers=3", "node.id=5").cluster.brokers) == [5, 6, 7]


def test_advertised_ports_count_on_from_that_of_the_first() -> None:
    cluster = three("advertised.listeners=PLAINTEXT://kafka.example:29092")
    brokers = cluster.client(node_id=2).ask(MetadataRequest(topics=[]), 9).brokers
    assert [(broker.host, broker.port) for broker in brokers] == [
        ("kafka.example", port) for port in (29092, 29093, 29094)
    ]


def test_brokers_that_listen_everywhere_are_told_at_the_address_the_client_came_to() -> None:
    brokers = three("listeners=PLAINTEXT://0.0.0.0:0").client(node_id=2).ask(MetadataRequest(topics=[]), 9).brokers
    assert [broker.host for broker in brokers] == ["127.0.0.1"] * 3


# -- topics ------------------------------------------------------------------------------------------------------------


def test_a_topic_s_replicas_are_told_by_every_broker_alike() -> None:
    cluster = three()
    cluster.topic(partitions=3, replicas=2)
    answers = [cluster.client(node_id=node_id).ask(MetadataRequest(topics=None), 9).topics for node_id in NODES]
    assert answers[0] == answers[1] == answers[2]
    partitions = answers[0][0].partitions
    assert sorted(partition.leader_id for partition in partitions) == [1, 2, 3]
    for partition in partitions:
        assert partition.leader_id == partition.replica_nodes[0]
        assert partition.replica_nodes == partition.isr_nodes
        assert len(set(partition.replica_nodes)) == 2
        assert partition.offline_replicas == []


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        pytest.param(CreatableTopic(name="t", num_partitions=1, replication_factor=3), 0, id="as many as brokers"),
        pytest.param(
            CreatableTopic(name="t", num_partitions=1, replication_factor=4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            id="one more",
        ),
        pytest.param(
            CreatableTopic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=0, broker_ids=[3, 1]),
                    CreatableReplicaAssignment(partition_index=1, broker_ids=[2, 3]),
                ],
            ),
            0,
            id="assigned by hand",
        ),
        pytest.param(
            CreatableTopic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=0, broker_ids=[3, 1]),
                    CreatableReplicaAssignment(partition_index=1, broker_ids=[2]),
                ],
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            id="by hand, and not as many each time",
        ),
    ],
)
def test_how_many_replicas_a_topic_may_have(topic: CreatableTopic, code: int) -> None:
    cluster = three()
    (created,) = cluster.client(node_id=2).ask(CreateTopicsRequest(topics=[topic]), 5).topics
    assert created.error_code == code, created.error_message
    if not code and topic.assignments:
        assert [partition.replicas for partition in cluster.cluster.topics["t"].partitions] == [(3, 1), (2, 3)]


# -- where a client is not to ask --------------------------------------------------------------------------------------


def elsewhere(partition: int, epoch: int) -> list[tuple[Message, int]]:
    """Requests that only the leader answers, with their versions."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1, current_leader_epoch=epoch)
    ended = OffsetForLeaderPartition(partition=partition, current_leader_epoch=epoch, leader_epoch=0)
    deleted = DeleteRecordsPartition(partition_index=partition, offset=0)
    return [
        (produce(9, partition=partition), 9),
        (fetch(0, partition=partition, current_leader_epoch=epoch), 11),
        (ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])]), 5),
        (OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[ended])]), 3),
        (DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[deleted])]), 1),
        (DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[partition])]), 0),
    ]


@pytest.mark.parametrize(
    "number",
    range(6),
    ids=["Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords", "DescribeProducers"],
)
@pytest.mark.parametrize("replicas", [1, 3], ids=["a broker without a replica", "a follower"])
def test_only_the_leader_answers(number: int, replicas: int) -> None:
    cluster = three()
    partition = led_by(cluster, 2, replicas=replicas)
    request, version = elsewhere(partition.index, -1)[number]
    assert error_codes(cluster.client(node_id=2).ask(request, version)) == []
    assert error_codes(cluster.client(node_id=3).ask(request, version)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("number", [1, 2, 3], ids=["Fetch", "ListOffsets", "OffsetForLeaderEpoch"])
@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        pytest.param(3, ErrorCode.UNKNOWN_LEADER_EPOCH, id="a follower looks at the epoch first"),
        pytest.param(1, ErrorCode.NOT_LEADER_OR_FOLLOWER, id="a broker without a replica knows no epoch"),
    ],
)
def test_an_epoch_that_is_not_there_yet(number: int, replicas: int, code: int) -> None:
    cluster = three()
    partition = led_by(cluster, 2, replicas=replicas)
    request, version = elsewhere(partition.index, 7)[number]
    assert error_codes(cluster.client(node_id=3).ask(request, version)) == [code]


@pytest.mark.parametrize(("version", "is_told"), [(9, False), (10, True), (12, True)])
def test_a_producer_is_told_who_leads(version: int, is_told: bool) -> None:
    cluster = three()
    partition = led_by(cluster, 2)
    answer = cluster.client(node_id=1).ask(produce(version, partition=partition.index), version)
    (told,) = answer.responses[0].partition_responses
    if not is_told:
        assert (told.current_leader, answer.node_endpoints) == (None, [])
        return
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 0)
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(2, port_of(cluster, 2))]


@pytest.mark.parametrize(("version", "is_told"), [(15, False), (16, True), (17, True)])
def test_a_consumer_is_told_who_leads(version: int, is_told: bool) -> None:
    cluster = three()
    partition = led_by(cluster, 2)
    request = fetch(0, topic_id=partition.topic.topic_id, partition=partition.index)
    answer = cluster.client(node_id=1).ask(request, version)
    leader = fetched(answer).current_leader
    if not is_told:
        assert (leader, answer.node_endpoints) == (None, [])
        return
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (2, 0)
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(2, port_of(cluster, 2))]


# -- what each has for itself ------------------------------------------------------------------------------------------


def test_who_is_over_quota_on_one_broker_is_served_at_full_speed_by_the_others() -> None:
    cluster = three("quota.producer.default=1000", "quota.profile=kafka-4.4")
    partitions = {node_id: led_by(cluster, node_id, name=f"t{node_id}").index for node_id in NODES}
    clients = {node_id: cluster.client(node_id=node_id) for node_id in NODES}

    def send(node_id: int, size: int) -> int:
        request = produce_of(size, 9, "client", topic=f"t{node_id}")
        request.topic_data[0].partition_data[0].index = partitions[node_id]
        throttle_time_ms: int = clients[node_id].ask(request, 9).throttle_time_ms
        return throttle_time_ms

    assert send(1, 25_000) > 0
    assert [send(node_id, 9_000) for node_id in (2, 3)] == [0, 0]
    assert send(2, 25_000) > 0, "each broker has the whole quota, and no more"


@pytest.mark.parametrize("asked", NODES)
def test_a_quota_that_is_set_at_one_broker_holds_on_each(asked: int) -> None:
    cluster = three()
    entity = [EntityData(entity_type="client-id", entity_name="client")]
    change = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
    cluster.client(node_id=asked).ask(AlterClientQuotasRequest(entries=[change]), 1)
    managers = [broker.quotas.produce for broker in cluster.cluster_server.brokers.values()]
    assert [manager.record("ANONYMOUS", "client", 25_000.0, 0) > 0 for manager in managers] == [True] * 3


def test_producer_ids_of_different_brokers_are_different() -> None:
    cluster = three()
    clients = [cluster.client(node_id=node_id) for node_id in NODES]
    ids = [
        client.ask(InitProducerIdRequest(transactional_id=None), 3).producer_id for client in clients for _ in range(2)
    ]
    assert ids == [0, 1, 1000, 1001, 2000, 2001]


def test_a_fetch_that_waits_at_the_leader_is_woken_there() -> None:
    cluster = three()
    partition = led_by(cluster, 3)
    consumer, producer = cluster.client(node_id=3), cluster.client(node_id=3)
    consumer.send(fetch(0, partition=partition.index, max_wait_ms=1000), 11)
    cluster.advance(10)
    producer.ask(produce(9, partition=partition.index), 9)
    assert consumer.answer().at_ms == 10


def test_a_deleted_topic_answers_what_waits_on_another_broker() -> None:
    cluster = three()
    partition = led_by(cluster, 3)
    consumer = cluster.client(node_id=3)
    consumer.send(fetch(0, partition=partition.index, max_wait_ms=1000), 11)
    cluster.broker.delete_topic(partition.topic)
    cluster.broker.actions.complete()
    assert error_codes(consumer.answer().message) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_series_of_several_brokers_are_told_apart() -> None:
    cluster = three()
    partition = led_by(cluster, 2, replicas=2)
    cluster.client(node_id=2).ask(produce(9, partition=partition.index), 9)
    text = generate_latest(registry(cluster.cluster_server)).decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all('broker="' in line for line in lines)
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines), "a series comes twice"
    messages = [line for line in lines if line.startswith("kafka_server_brokertopicmetrics_messagesin_total")]
    assert [line[-3:] for line in messages] == ["0.0", "1.0", "0.0"]
    assert [line[-3:] for line in lines if line.startswith("sluice_partitions{")] == ["2.0"] * 3
    connections = [line[-3:] for line in lines if line.startswith("sluice_connections{")]
    assert connections == ["0.0", "1.0", "0.0"]
