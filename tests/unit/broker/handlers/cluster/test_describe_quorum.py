"""DescribeQuorum and UnregisterBroker."""

import pytest

from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, PartitionData, TopicData
from sluice.protocol.apis.end_txn import EndTxnRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.unregister_broker import UnregisterBrokerRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker
from tests.unit.broker.controller.test_controller import start, stop

METADATA = "__cluster_metadata"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def describe(broker: VirtualBroker, version: int, *partitions: tuple[str, int]) -> DescribeQuorumResponse:
    topics = [TopicData(topic_name=name, partitions=[PartitionData(partition_index=one)]) for name, one in partitions]
    response = broker.client(node_id=2).call(DescribeQuorumRequest(topics=topics), version)
    assert isinstance(response, DescribeQuorumResponse)
    return response


@pytest.fixture
def cluster() -> VirtualBroker:
    return VirtualBroker("sluice.brokers=3")


@pytest.mark.parametrize("version", range(3))
def test_first_broker_is_the_controller_and_others_observe(cluster: VirtualBroker, version: int) -> None:
    cluster.advance(2_000)
    response = describe(cluster, version, (METADATA, 0))
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch, partition.high_watermark) == (0, 1, 1, 4)
    replicas = (partition.current_voters, partition.observers)
    ids_and_ends = [[(one.replica_id, one.log_end_offset) for one in those] for those in replicas]
    assert ids_and_ends == [[(1, 4)], [(2, 4), (3, 4)]]
    fetched_ms = {one.last_fetch_timestamp for those in replicas for one in those}
    assert fetched_ms == ({WALL_START_MS + 2_000} if version else {-1})
    port = cluster.cluster_server.servers[1].endpoints[0].port
    nodes = [(node.node_id, [(at.name, at.port) for at in node.listeners]) for node in response.nodes]
    assert nodes == ([(1, [("PLAINTEXT", port)])] if version == 2 else [])


OTHER_PARTITIONS = {
    "other topic": ([("t", 0)], UNKNOWN.message),
    "other partition": ([(METADATA, 1)], UNKNOWN.message),
    "two topics": ([(METADATA, 0), ("t", 0)], UNKNOWN.message),
    "none": ([], ""),
}


@pytest.mark.parametrize(("partitions", "message"), OTHER_PARTITIONS.values(), ids=OTHER_PARTITIONS)
def test_only_the_metadata_partition_is_described(
    cluster: VirtualBroker, partitions: list[tuple[str, int]], message: str
) -> None:
    found = [
        (topic.topic_name, one.error_code, one.error_message)
        for topic in describe(cluster, 2, *partitions).topics
        for one in topic.partitions
    ]
    assert found == [(name, UNKNOWN, message) for name, _ in partitions]


def registered(cluster: VirtualBroker) -> list[int]:
    request = DescribeClusterRequest(include_fenced_brokers=True)
    return [broker.broker_id for broker in cluster.client(node_id=1).call(request, 2).brokers]


def unregister(cluster: VirtualBroker, node_id: int) -> tuple[int, str | None]:
    response = cluster.client(node_id=1).call(UnregisterBrokerRequest(broker_id=node_id), 0)
    return response.error_code, response.error_message


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "running"])
def test_unregistered_broker_is_gone_until_it_starts(cluster: VirtualBroker, is_stopped: bool) -> None:
    cluster.cluster.create(NewTopic("t", assignments=((0, (2, 3)),)))
    if is_stopped:
        stop(cluster, 2, controlled=True)
    assert unregister(cluster, 2) == (0, None)
    assert (registered(cluster), cluster.partition().leader, cluster.partition().replicas) == ([1, 3], 3, (2, 3))
    assert unregister(cluster, 2) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 2 is not currently registered")
    cluster.cluster.controller.make_unavailable()()
    assert registered(cluster) == [1, 3]
    if not is_stopped:
        stop(cluster, 2, controlled=True)
    start(cluster, 2)
    assert (registered(cluster), set(cluster.partition().isr)) == ([1, 2, 3], {2, 3})


UNREGISTERED = {
    "by number": (NewTopic("u", 1, 3), "only 2 broker(s) are registered"),
    "by assignment": (NewTopic("u", assignments=((0, (1, 2)),)), "includes broker 2, but no such broker is registered"),
}


@pytest.mark.parametrize(("new", "problem"), UNREGISTERED.values(), ids=UNREGISTERED)
def test_unregistered_broker_gets_no_replicas(cluster: VirtualBroker, new: NewTopic, problem: str) -> None:
    stop(cluster, 2, controlled=True)
    unregister(cluster, 2)
    error = cluster.cluster.create(new)
    assert isinstance(error, TopicError)
    assert problem in (error.message or "")


def test_unknown_broker_cannot_be_unregistered(cluster: VirtualBroker) -> None:
    assert unregister(cluster, 99) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 99 is not currently registered")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (HeartbeatRequest(group_id="g", member_id="m"), ErrorCode.NOT_COORDINATOR),
        (EndTxnRequest(transactional_id="x", producer_id=0), ErrorCode.NOT_COORDINATOR),
        (AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), ErrorCode.NOT_COORDINATOR),
        (FindCoordinatorRequest(key="g"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), ErrorCode.NOT_COORDINATOR),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_unregistered_only_broker_coordinates_nothing(request_: Message, code: ErrorCode) -> None:
    """The topic of the coordinator cannot be created."""
    broker = VirtualBroker()
    assert unregister(broker, 1) == (0, None)
    assert broker.client().call(request_, 0).error_code == code
