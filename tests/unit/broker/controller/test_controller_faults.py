"""A controller that is lost, elections that take their time, and leaders that have lost records."""

from sluice.broker.journal.reader import JournalReader
from sluice.broker.metadata.topic import NO_LEADER
from sluice.journal_events import LeaderChange
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, produce
from tests.support.virtual_broker import JOURNAL, VirtualBroker
from tests.support.wire import error_codes
from tests.unit.broker.controller.test_controller import DELAY_MS, LAG_MS, send, start, state, stop, three

ELECTION_MS = 700


def leader_change(cluster: VirtualBroker) -> LeaderChange:
    """The one that there was, as the journal tells it."""
    assert cluster.cluster.journal is not None
    events = JournalReader(cluster.cluster.journal, cluster.clock).events()
    (change,) = (one for one in events if isinstance(one, LeaderChange))
    return change


def leader_told(cluster: VirtualBroker, node_id: int) -> tuple[int, int]:
    """The error and the leader of the partition that a broker tells of."""
    answer = cluster.client(node_id=node_id).ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    (partition,) = answer.topics[0].partitions
    return partition.error_code, partition.leader_id


# -- lost --------------------------------------------------------------------------------------------------------------


def test_nobody_is_missed_while_the_controller_is_lost() -> None:
    cluster = three()
    found = cluster.cluster.controller.make_unavailable()
    stop(cluster, 1)
    cluster.advance(10 * DELAY_MS)
    assert state(cluster) == (1, (1, 2, 3))
    found()
    assert state(cluster) == (2, (2, 3))


def test_who_would_shut_down_in_order_crashes_where_there_is_no_controller_to_tell() -> None:
    cluster = three()
    cluster.cluster.controller.make_unavailable()
    stop(cluster, 1, controlled=True)
    assert state(cluster) == (1, (1, 2, 3))


def test_who_comes_back_is_let_in_when_the_controller_is_back() -> None:
    cluster = three()
    stop(cluster, 1, controlled=True)
    found = cluster.cluster.controller.make_unavailable()
    start(cluster, 1)
    assert (cluster.cluster.fenced, state(cluster)) == ({1}, (2, (2, 3)))
    found()
    assert (cluster.cluster.fenced, state(cluster)) == (set(), (2, (1, 2, 3)))


def test_who_lags_leaves_the_isr_when_the_controller_is_back() -> None:
    cluster = three("sluice.election.delay.ms=10000000")
    found = cluster.cluster.controller.make_unavailable()
    stop(cluster, 3)
    send(cluster, 1)
    cluster.advance(2 * LAG_MS)
    assert state(cluster) == (1, (1, 2, 3))
    found()
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))


def test_what_is_for_the_controller_waits_for_it() -> None:
    cluster = three()
    found = cluster.cluster.controller.make_unavailable()
    client = cluster.client(node_id=2)
    client.send(CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]), 5)
    cluster.advance(30_000)
    assert not client.answers
    found()
    assert error_codes(client.answer().message) == []
    assert "new" in cluster.cluster.topics


def test_clients_are_told_of_no_controller_and_create_no_topics_on_the_way() -> None:
    cluster = three()
    found = cluster.cluster.controller.make_unavailable()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    told = cluster.client().ask(request, 9)
    assert (told.controller_id, told.topics[0].error_code) == (NO_LEADER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    found()
    told = cluster.client().ask(request, 9)
    assert (told.controller_id, told.topics[0].error_code) == (1, ErrorCode.NONE)


def test_records_go_on_without_a_controller() -> None:
    cluster = three()
    cluster.cluster.controller.make_unavailable()
    assert send(cluster, 1, acks=-1) == []


def test_of_two_losses_the_last_ends_it() -> None:
    cluster = three()
    controller = cluster.cluster.controller
    first, second = controller.make_unavailable(), controller.make_unavailable()
    first()
    assert controller.is_unavailable
    second()
    assert not controller.is_unavailable


def test_no_leader_is_moved_without_a_controller() -> None:
    cluster = three()
    found = cluster.cluster.controller.make_unavailable()
    assert (
        cluster.cluster.controller.move_leader(cluster.partition(), 2)
        == "the controller is unavailable because of a fault rule"
    )
    found()
    assert cluster.cluster.controller.move_leader(cluster.partition(), 2) is None


# -- slow --------------------------------------------------------------------------------------------------------------


def test_a_partition_has_no_leader_until_its_election_is_over() -> None:
    cluster = three()
    end = cluster.cluster.controller.slow(ELECTION_MS)
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert leader_told(cluster, 2) == (ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER)
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    cluster.advance(ELECTION_MS - 1)
    assert state(cluster)[0] == NO_LEADER
    cluster.advance(1)
    assert state(cluster) == (2, (2, 3))
    assert send(cluster, 2, acks=-1) == []
    end()
    stop(cluster, 2, controlled=True)
    assert state(cluster) == (3, (3,))


def test_a_leader_that_is_moved_slowly_loses_nothing() -> None:
    cluster = three("sluice.replication.delay.ms=50")
    send(cluster, 1)
    cluster.advance(50)
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    assert state(cluster)[0] == NO_LEADER
    cluster.advance(ELECTION_MS)
    assert state(cluster) == (3, (1, 2, 3))
    assert cluster.partition().log.log_end_offset == 1


def test_who_dies_before_it_is_elected_is_not() -> None:
    cluster = three("sluice.election.delay.ms=100")
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    stop(cluster, 3)
    cluster.advance(ELECTION_MS)
    assert state(cluster) == (1, (1, 2))


def test_an_election_waits_for_a_controller_that_is_lost_meanwhile() -> None:
    cluster = three()
    controller = cluster.cluster.controller
    controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    found = controller.make_unavailable()
    cluster.advance(10 * ELECTION_MS)
    assert state(cluster)[0] == NO_LEADER
    found()
    cluster.advance(100)
    assert state(cluster)[0] == 3


def test_a_topic_that_is_deleted_while_it_is_elected_is_gone() -> None:
    cluster = three()
    cluster.cluster.controller.slow(ELECTION_MS)
    cluster.cluster_server.move_leader("t", 0, 3)
    cluster.broker.delete_topic(cluster.cluster.topics["t"])
    cluster.advance(ELECTION_MS)
    assert "t" not in cluster.cluster.topics


# -- unclean -----------------------------------------------------------------------------------------------------------


def with_records(count: int) -> VirtualBroker:
    cluster = three(JOURNAL)
    for _ in range(count):
        cluster.client().ask(produce(9, acks=-1), 9)
    return cluster


def test_another_leads_without_the_last_records_though_they_were_acknowledged() -> None:
    cluster = with_records(5)
    log = cluster.partition().log
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), None, 2)
    assert (log.log_end_offset, log.high_watermark) == (3, 3)
    assert state(cluster) == (2, (1, 2, 3)), "the others follow it at once"
    change = leader_change(cluster)
    assert (change.before, change.broker, change.lost_records) == (1, 2, 2)
    assert send(cluster, 2, acks=-1) == []


def test_more_records_than_there_are_is_all_of_them() -> None:
    cluster = with_records(3)
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), 3, 1_000)
    assert cluster.partition().log.log_end_offset == 0
    assert cluster.partition().leader == 3


def test_a_batch_is_lost_as_a_whole() -> None:
    cluster = three(JOURNAL)
    cluster.client().ask(produce(9, batch(b"a", b"b", b"c", b"d")), 9)
    cluster.cluster.controller.elect_uncleanly(cluster.partition(), None, 1)
    assert cluster.partition().log.log_end_offset == 0
    assert leader_change(cluster).lost_records == 4


def test_only_replicas_that_live_can_be_elected() -> None:
    cluster = with_records(2)
    stop(cluster, 2, controlled=True)
    stop(cluster, 3, controlled=True)
    controller, partition = cluster.cluster.controller, cluster.partition()
    assert controller.unclean_problem(partition, None) == "t-0 has no other replica that could lead"
    assert controller.unclean_problem(partition, 2) == "t-0 has no replica on broker 2 that could lead"
    start(cluster, 2)
    assert controller.unclean_problem(partition, 2) is None
