"""Unavailable controllers, slow elections, and unclean elections that lose records."""

import pytest

from sluice.broker.metadata.topic import NO_LEADER
from sluice.journal_events import LeaderChange
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, produce
from tests.support.virtual_broker import JOURNAL, VirtualBroker
from tests.support.wire import error_codes
from tests.unit.broker.controller.test_controller import DELAY_MS, LAG_MS, send, start, state, stop, three

ELECTION_MS = 700


@pytest.fixture
def cluster() -> VirtualBroker:
    return three()


def leader_change(cluster: VirtualBroker) -> LeaderChange:
    """Return the only leader change in the journal."""
    (change,) = (one for one in cluster.journal.events() if isinstance(one, LeaderChange))
    return change


def metadata_leader(cluster: VirtualBroker, node_id: int) -> tuple[int, int]:
    """Return the error and leader of the partition in a broker's metadata."""
    response = cluster.client(node_id=node_id).call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    (partition,) = response.topics[0].partitions
    return partition.error_code, partition.leader_id


# -- unavailable controller --------------------------------------------------------------------------------------------


def test_crash_is_not_noticed_while_the_controller_is_unavailable(cluster: VirtualBroker) -> None:
    restore = cluster.cluster.controller.make_unavailable()
    stop(cluster, 1)
    cluster.advance(10 * DELAY_MS)
    assert state(cluster) == (1, (1, 2, 3))
    restore()
    assert state(cluster) == (2, (2, 3))


def test_controlled_shutdown_without_a_controller_is_a_crash(cluster: VirtualBroker) -> None:
    cluster.cluster.controller.make_unavailable()
    stop(cluster, 1, controlled=True)
    assert state(cluster) == (1, (1, 2, 3))


def test_restarted_broker_stays_fenced_until_the_controller_is_back(cluster: VirtualBroker) -> None:
    stop(cluster, 1, controlled=True)
    restore = cluster.cluster.controller.make_unavailable()
    start(cluster, 1)
    assert (cluster.cluster.fenced, state(cluster)) == ({1}, (2, (2, 3)))

    def described(include_fenced: bool) -> list[tuple[int, bool]]:
        request = DescribeClusterRequest(include_fenced_brokers=include_fenced)
        return [(broker.broker_id, broker.is_fenced) for broker in cluster.client(node_id=2).call(request, 2).brokers]

    assert described(False) == [(2, False), (3, False)]
    assert described(True) == [(1, True), (2, False), (3, False)]
    restore()
    assert (cluster.cluster.fenced, state(cluster)) == (set(), (2, (1, 2, 3)))


def test_lagging_follower_leaves_the_isr_when_the_controller_is_back() -> None:
    cluster = three("sluice.election.delay.ms=10000000")
    restore = cluster.cluster.controller.make_unavailable()
    stop(cluster, 3)
    send(cluster, 1)
    cluster.advance(2 * LAG_MS)
    assert state(cluster) == (1, (1, 2, 3))
    restore()
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))


def test_request_for_the_controller_waits_until_it_is_back(cluster: VirtualBroker) -> None:
    restore = cluster.cluster.controller.make_unavailable()
    client = cluster.client(node_id=2)
    client.send(CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]), 5)
    cluster.advance(30_000)
    assert not client.responses
    restore()
    assert error_codes(client.response().message) == []
    assert "new" in cluster.cluster.topics


def test_metadata_without_a_controller_creates_no_topics(cluster: VirtualBroker) -> None:
    restore = cluster.cluster.controller.make_unavailable()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    metadata = cluster.client().call(request, 9)
    assert (metadata.controller_id, metadata.topics[0].error_code) == (NO_LEADER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    restore()
    cluster.client().call(request, 9)
    metadata = cluster.client().call(request, 9)
    assert (metadata.controller_id, metadata.topics[0].error_code) == (1, ErrorCode.NONE)


def test_produce_succeeds_without_a_controller(cluster: VirtualBroker) -> None:
    cluster.cluster.controller.make_unavailable()
    assert send(cluster, 1, acks=-1) == []


def test_controller_is_back_when_the_last_of_two_faults_ends(cluster: VirtualBroker) -> None:
    controller = cluster.cluster.controller
    first, second = controller.make_unavailable(), controller.make_unavailable()
    first()
    assert controller.is_unavailable
    second()
    assert not controller.is_unavailable


def test_leader_move_fails_without_a_controller(cluster: VirtualBroker) -> None:
    restore = cluster.cluster.controller.make_unavailable()
    move_leader = cluster.cluster.controller.move_leader
    assert move_leader(cluster.partition(), 2) == "the controller is unavailable because of a fault rule"
    restore()
    assert move_leader(cluster.partition(), 2) is None


# -- slow elections ----------------------------------------------------------------------------------------------------


def test_partition_has_no_leader_during_a_slow_election(cluster: VirtualBroker) -> None:
    end = cluster.cluster.controller.slow(ELECTION_MS)
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert metadata_leader(cluster, 2) == (ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER)
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    cluster.advance(ELECTION_MS - 1)
    assert state(cluster)[0] == NO_LEADER
    cluster.advance(1)
    assert state(cluster) == (2, (2, 3))
    assert send(cluster, 2, acks=-1) == []
    end()
    stop(cluster, 2, controlled=True)
    assert state(cluster) == (3, (3,))


def test_slow_leader_move_loses_nothing() -> None:
    cluster = three("sluice.replication.delay.ms=50")
    send(cluster, 1)
    cluster.advance(50)
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    assert state(cluster)[0] == NO_LEADER
    cluster.advance(ELECTION_MS)
    assert state(cluster) == (3, (1, 2, 3))
    assert cluster.partition().log.log_end_offset == 1


def test_broker_that_crashes_during_its_election_is_not_elected() -> None:
    cluster = three("sluice.election.delay.ms=100")
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    stop(cluster, 3)
    cluster.advance(ELECTION_MS)
    assert state(cluster) == (1, (1, 2))


def test_slow_election_waits_for_an_unavailable_controller(cluster: VirtualBroker) -> None:
    controller = cluster.cluster.controller
    controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    restore = controller.make_unavailable()
    cluster.advance(10 * ELECTION_MS)
    assert state(cluster)[0] == NO_LEADER
    restore()
    cluster.advance(100)
    assert state(cluster)[0] == 3


def test_topic_deleted_during_its_election_stays_deleted(cluster: VirtualBroker) -> None:
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    cluster.broker.delete_topic(cluster.cluster.topics["t"])
    cluster.advance(ELECTION_MS)
    assert "t" not in cluster.cluster.topics


# -- unclean elections -------------------------------------------------------------------------------------------------


def with_records(count: int) -> VirtualBroker:
    cluster = three(JOURNAL)
    for _ in range(count):
        cluster.client().call(produce(9, acks=-1), 9)
    return cluster


def test_unclean_election_loses_the_last_acknowledged_records() -> None:
    cluster = with_records(5)
    log = cluster.partition().log
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), None, 2)
    assert (log.log_end_offset, log.high_watermark) == (3, 3)
    assert state(cluster) == (2, (1, 2, 3)), "all replicas stay in sync"
    change = leader_change(cluster)
    assert (change.before, change.broker, change.lost_records) == (1, 2, 2)
    assert send(cluster, 2, acks=-1) == []


def test_losing_more_records_than_exist_loses_all() -> None:
    cluster = with_records(3)
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), 3, 1_000)
    assert cluster.partition().log.log_end_offset == 0
    assert cluster.partition().leader == 3


def test_batch_is_lost_as_a_whole() -> None:
    cluster = three(JOURNAL)
    cluster.client().call(produce(9, batch(b"a", b"b", b"c", b"d")), 9)
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), None, 1)
    assert cluster.partition().log.log_end_offset == 0
    assert leader_change(cluster).lost_records == 4


def test_only_live_replicas_can_be_elected_uncleanly() -> None:
    cluster = with_records(2)
    stop(cluster, 2, controlled=True)
    stop(cluster, 3, controlled=True)
    controller, partition = cluster.cluster.controller, cluster.partition()
    assert controller.unclean_problem(partition, None) == "t-0 has no other replica that could lead"
    assert controller.unclean_problem(partition, 2) == "t-0 has no replica on broker 2 that could lead"
    start(cluster, 2)
    assert controller.unclean_problem(partition, 2) is None
