"""Brokers that stop, start, are isolated and come back: who leads, who is in sync, what is lost, what clients see."""

import pytest

from sluice.broker.controller.elections import Election
from sluice.broker.controller.errors import ClusterError, UnknownResourceError
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import NO_LEADER, Topic
from sluice.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import fetch, fetched, fetched_bytes, produce
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker
from tests.support.wire import error_codes

DELAY_MS = 9_000  # sluice.election.delay.ms
LAG_MS = 30_000  # replica.lag.time.max.ms
ALL = -1


def three(*overrides: str, replicas: int = 3, **configs: str) -> VirtualBroker:
    """Three brokers, and a topic whose partition has replicas on 1, 2 and 3, and is led by 1."""
    cluster = VirtualBroker("sluice.brokers=3", *overrides)
    dotted = {name.replace("_", "."): value for name, value in configs.items()}
    created = cluster.cluster.create(NewTopic("t", assignments={0: (1, 2, 3)[:replicas]}, configs=dotted))
    assert isinstance(created, Topic), created
    return cluster


def stop(cluster: VirtualBroker, node_id: int, *, controlled: bool = False) -> None:
    cluster.cluster_server.stop_broker(node_id, controlled=controlled)
    cluster.settle()


def start(cluster: VirtualBroker, node_id: int) -> None:
    cluster.run(cluster.cluster_server.start_broker(node_id))


def state(cluster: VirtualBroker) -> tuple[int, tuple[int, ...]]:
    partition = cluster.partition()
    return partition.leader, partition.isr


def send(cluster: VirtualBroker, node_id: int, acks: int = 1) -> list[int]:
    """The error codes of a produce request that is answered at once."""
    return error_codes(cluster.client(node_id=node_id).ask(produce(9, acks=acks), 9))


# -- leaving and coming back -------------------------------------------------------------------------------------------


def test_a_leader_that_crashed_is_followed_when_the_delay_is_over() -> None:
    cluster = three()
    stop(cluster, 1)
    cluster.advance(DELAY_MS - 1)
    assert state(cluster) == (1, (1, 2, 3)), "nobody has missed it yet"
    cluster.advance(1)
    assert state(cluster) == (2, (2, 3))
    assert (cluster.partition().leader_epoch, cluster.partition().partition_epoch) == (1, 1)
    assert send(cluster, 2, ALL) == []


def test_a_follower_that_crashed_leaves_the_isr_and_the_leader_leads_on_in_its_epoch() -> None:
    cluster = three()
    stop(cluster, 2)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (1, (1, 3))
    assert (cluster.partition().leader_epoch, cluster.partition().partition_epoch) == (0, 1)


def test_who_stops_in_order_gives_up_its_leadership_at_once() -> None:
    cluster = three()
    waiting = cluster.client(node_id=1)
    waiting.send(fetch(0, max_wait_ms=60_000), 11)
    stop(cluster, 1, controlled=True)
    assert state(cluster) == (2, (2, 3))
    assert error_codes(waiting.answer().message) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert not waiting.is_open


def test_a_broker_that_is_back_follows_joins_the_isr_and_leads_again_when_it_is_preferred() -> None:
    cluster = three()
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    send(cluster, 2, ALL)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))
    assert cluster.partition().log.high_watermark == 1
    cluster.advance(300_000)
    assert state(cluster) == (1, (1, 2, 3)), "leader.imbalance.check.interval.seconds"


def test_preferred_leaders_stay_away_where_that_is_wished() -> None:
    cluster = three("auto.leader.rebalance.enable=false")
    stop(cluster, 1, controlled=True)
    start(cluster, 1)
    cluster.advance(3_000_000)
    assert state(cluster) == (2, (1, 2, 3))


def test_a_broker_that_is_started_before_it_was_missed_is_another_one() -> None:
    cluster = three()
    stop(cluster, 1)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))
    cluster.advance(DELAY_MS)
    assert state(cluster) == (2, (1, 2, 3)), "the old absence was noticed late"


def test_a_broker_that_is_started_again_listens_where_it_did_and_has_forgotten_its_clients() -> None:
    cluster = three("quota.producer.default=1000")
    ports = [server.endpoints[0].port for server in cluster.cluster_server.servers.values()]
    before = cluster.cluster_server.brokers[2]
    before.quotas.produce.record("ANONYMOUS", "client", 100_000.0, 0)
    stop(cluster, 2)
    start(cluster, 2)
    after = cluster.cluster_server.brokers[2]
    assert [server.endpoints[0].port for server in cluster.cluster_server.servers.values()] == ports
    assert after is not before
    assert after.quotas.produce.record("ANONYMOUS", "client", 1.0, 0) == 0


def test_quotas_that_were_set_hold_on_a_broker_that_is_started_again() -> None:
    cluster = three()
    cluster.cluster.client_quotas.alter({"client-id": "client"}, {"producer_byte_rate": 1000.0})
    stop(cluster, 2)
    start(cluster, 2)
    assert cluster.cluster_server.brokers[2].quotas.produce.record("ANONYMOUS", "client", 25_000.0, 0) > 0


def test_without_a_replica_in_sync_a_partition_is_offline_until_one_is_back() -> None:
    cluster = three(replicas=1)
    send(cluster, 1)
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    (topic,) = cluster.client(node_id=2).ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
    (told,) = topic.partitions
    assert (told.error_code, told.leader_id, told.offline_replicas) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    counted = {
        route.label: route.errors for route in cluster.cluster_server.brokers[2].dispatcher.routes if route.errors
    }
    assert list(counted.values()) == [{ErrorCode.LEADER_NOT_AVAILABLE: 1}], "what a partition's answer says is counted"
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    start(cluster, 1)
    assert state(cluster) == (1, (1,))
    assert cluster.partition().log.log_end_offset == 1


@pytest.mark.parametrize("at_once", [True, False], ids=["set before", "set while it is offline"])
def test_an_unclean_leader_is_elected_where_that_is_allowed_and_what_it_has_not_is_lost(at_once: bool) -> None:
    allowed = {"unclean_leader_election_enable": "true"}
    cluster = three(replicas=2, **(allowed if at_once else {}))
    send(cluster, 1, ALL)
    stop(cluster, 2)
    cluster.advance(DELAY_MS)
    assert send(cluster, 1, ALL) == [], "it is alone in sync"
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    if not at_once:
        cluster.cluster.configure(cluster.partition().topic, {"unclean.leader.election.enable": "true"})
    start(cluster, 2)
    assert state(cluster) == (2, (2,))
    assert cluster.partition().log.log_end_offset == 1
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2))


def test_live_brokers_are_those_that_are_told() -> None:
    cluster = three()
    client = cluster.client(node_id=3)

    def told() -> tuple[list[int], int]:
        metadata = client.ask(MetadataRequest(topics=[]), 9)
        return [broker.node_id for broker in metadata.brokers], metadata.controller_id

    stop(cluster, 1)
    assert told() == ([1, 2, 3], 1)
    cluster.advance(DELAY_MS)
    assert told() == ([2, 3], 2)
    start(cluster, 1)
    assert told() == ([1, 2, 3], 1)


# -- replication -------------------------------------------------------------------------------------------------------


def test_acks_all_waits_for_the_followers() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(99)
    assert client.take_answers() == []
    cluster.advance(1)
    assert client.answer().at_ms == 100


def test_acks_all_waits_for_a_follower_that_is_gone_until_it_is_missed() -> None:
    cluster = three()
    stop(cluster, 3)
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(DELAY_MS - 1)
    assert client.take_answers() == []
    assert fetched_bytes(cluster.client(node_id=1).ask(fetch(0), 11)) == b"", "consumers see what all in sync have"
    cluster.advance(1)
    assert error_codes(client.answer().message) == []


def test_a_follower_that_lags_leaves_the_isr_though_the_controller_takes_it_for_alive() -> None:
    cluster = three("sluice.election.delay.ms=100000000")
    stop(cluster, 3)
    send(cluster, 1)
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))
    assert cluster.partition().log.high_watermark == 1


def test_a_follower_that_has_everything_does_not_lag_however_long_it_is_gone() -> None:
    cluster = three("sluice.election.delay.ms=100000000")
    stop(cluster, 3)
    cluster.advance(5 * LAG_MS)
    assert state(cluster) == (1, (1, 2, 3))
    send(cluster, 1)
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))


def test_too_few_in_sync_refuse_acks_all_before_and_after_the_append() -> None:
    cluster = three(min_insync_replicas="2", replicas=2)
    stop(cluster, 2)
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(DELAY_MS)
    assert client.take_answers() == [], "with too few in sync the high watermark stays"
    assert send(cluster, 1, ALL) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert send(cluster, 1, 1) == []
    start(cluster, 2)
    assert error_codes(client.answer().message) == []
    assert cluster.partition().log.high_watermark == 2


def test_acks_all_is_told_when_min_insync_replicas_was_raised_after_the_append() -> None:
    cluster = three("sluice.replication.delay.ms=100", replicas=2)
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(100 - 1)
    partition = cluster.partition()
    cluster.advance(1)
    assert error_codes(client.answer().message) == []
    client.send(produce(9, acks=ALL), 9)
    partition.isr = (1,)
    partition.topic.min_insync_replicas = 2
    partition.log.advance_high_watermark(2)
    cluster.cluster.high_watermark_moved(partition)
    assert error_codes(client.answer().message) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_what_only_the_leader_had_is_lost_with_it_and_what_all_had_is_not() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(100)
    assert error_codes(client.answer().message) == []
    assert send(cluster, 1, 1) == []
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    log = cluster.partition().log
    assert (log.high_watermark, log.log_end_offset) == (1, 1)


def test_a_producer_that_waits_when_the_leader_goes_is_sent_to_the_next() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = cluster.client(node_id=1)
    client.send(produce(10, acks=ALL), 10)
    cluster.cluster_server.move_leader("t", 0, 2)
    answer = client.answer().message
    (told,) = answer.responses[0].partition_responses
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 1)
    assert [node.node_id for node in answer.node_endpoints] == [2]


@pytest.mark.parametrize(
    ("version", "timestamp", "code"),
    [
        pytest.param(5, -1, ErrorCode.OFFSET_NOT_AVAILABLE, id="the latest"),
        pytest.param(4, -1, ErrorCode.LEADER_NOT_AVAILABLE, id="the latest, for an older client"),
        pytest.param(5, WALL_START_MS, ErrorCode.OFFSET_NOT_AVAILABLE, id="a time that is behind the high watermark"),
        pytest.param(7, -3, ErrorCode.OFFSET_NOT_AVAILABLE, id="the greatest timestamp"),
        pytest.param(5, 2 * WALL_START_MS, None, id="a time without records"),
        pytest.param(5, -2, None, id="the earliest"),
    ],
)
def test_a_new_leader_tells_no_offset_that_it_may_not_know(version: int, timestamp: int, code: int | None) -> None:
    cluster = three("sluice.replication.delay.ms=100")
    stop(cluster, 3)  # so that the high watermark stays, though 2 has everything
    send(cluster, 1)
    cluster.advance(100)
    cluster.cluster_server.move_leader("t", 0, 2)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    client = cluster.client(node_id=2)
    assert error_codes(client.ask(request, version)) == ([] if code is None else [code])
    cluster.advance(DELAY_MS)
    assert error_codes(client.ask(request, version)) == []


# -- moving leaders ----------------------------------------------------------------------------------------------------


def test_a_leader_is_moved_and_the_epochs_tell() -> None:
    cluster = three()
    client = cluster.client(node_id=1)
    client.ask(produce(9), 9)
    cluster.cluster_server.move_leader("t", 0, 3)
    assert state(cluster) == (3, (1, 2, 3))
    old = fetch(0, current_leader_epoch=0)
    assert error_codes(cluster.client(node_id=3).ask(old, 11)) == [ErrorCode.FENCED_LEADER_EPOCH]
    assert error_codes(client.ask(old, 11)) == [ErrorCode.FENCED_LEADER_EPOCH], "a follower, too, knows better"
    new = fetch(0, current_leader_epoch=1)
    assert fetched(cluster.client(node_id=3).ask(new, 11)).high_watermark == 1
    newer = fetch(0, current_leader_epoch=2)
    assert error_codes(cluster.client(node_id=3).ask(newer, 11)) == [ErrorCode.UNKNOWN_LEADER_EPOCH]


@pytest.mark.parametrize(
    ("topic", "index", "node_id", "words"),
    [
        pytest.param("nowhere", 0, 1, "there is no topic nowhere", id="an unknown topic"),
        pytest.param("t", 7, 1, "partition t-7 does not exist; expected partition 0 to 0", id="an unknown partition"),
        pytest.param("t", 0, 3, "broker 3 has no replica of t-0; expected one of 1, 2", id="no replica"),
        pytest.param("t", 0, 2, "broker 2 is not in sync for t-0; expected one of 1", id="not in sync"),
    ],
)
def test_a_leader_cannot_be_moved_anywhere(topic: str, index: int, node_id: int, words: str) -> None:
    cluster = three(replicas=2)
    stop(cluster, 2, controlled=True)
    with pytest.raises(ClusterError) as caught:
        cluster.cluster_server.move_leader(topic, index, node_id)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        pytest.param(["start"], "broker 2 is running", id="started twice"),
        pytest.param(["rejoin"], "broker 2 is running", id="rejoined without having been isolated"),
        pytest.param(["stop", "stop"], "broker 2 is stopped", id="stopped twice"),
        pytest.param(["stop", "isolate"], "broker 2 is stopped", id="isolated when stopped"),
        pytest.param(["isolate", "isolate"], "broker 2 is isolated", id="isolated twice"),
        pytest.param(["isolate", "start"], "broker 2 is isolated", id="started when isolated"),
    ],
)
def test_what_cannot_happen_to_a_broker(steps: list[str], words: str) -> None:
    cluster = three()
    whole = cluster.cluster_server
    happens = {
        "stop": lambda: whole.stop_broker(2),
        "start": lambda: cluster.run(whole.start_broker(2)),
        "isolate": lambda: whole.isolate_broker(2),
        "rejoin": lambda: whole.rejoin_broker(2),
    }
    *before, last = steps
    for step in before:
        happens[step]()
    with pytest.raises(ClusterError) as caught:
        happens[last]()
    assert str(caught.value) == words


def test_nothing_happens_to_a_broker_that_is_not_there() -> None:
    with pytest.raises(UnknownResourceError, match="there is no broker 4; expected one of 1, 2, 3"):
        three().cluster_server.stop_broker(4)


def elect(cluster: VirtualBroker, election: Election) -> list[int]:
    topics = [TopicPartitions(topic="t", partitions=[0])]
    request = ElectLeadersRequest(election_type=election.value, topic_partitions=topics)
    return [
        one.error_code for one in cluster.client(node_id=3).ask(request, 2).replica_election_results[0].partition_result
    ]


def test_an_election_is_held_when_it_is_asked_for() -> None:
    cluster = three()
    assert elect(cluster, Election.PREFERRED) == [ErrorCode.ELECTION_NOT_NEEDED]
    stop(cluster, 1, controlled=True)
    assert elect(cluster, Election.PREFERRED) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    start(cluster, 1)
    assert elect(cluster, Election.PREFERRED) == [0]
    assert state(cluster) == (1, (1, 2, 3))


def test_an_unclean_election_is_held_when_it_is_asked_for() -> None:
    cluster = three(replicas=2)
    assert elect(cluster, Election.UNCLEAN) == [ErrorCode.ELECTION_NOT_NEEDED]
    stop(cluster, 2, controlled=True)
    stop(cluster, 1, controlled=True)
    assert state(cluster) == (NO_LEADER, (1,))
    assert elect(cluster, Election.UNCLEAN) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    cluster.cluster.controller.elect_leader(cluster.partition(), Election.ONLINE)
    start(cluster, 2)
    assert state(cluster) == (NO_LEADER, (1,))
    assert elect(cluster, Election.UNCLEAN) == [0]
    assert state(cluster) == (2, (2,))


# -- reassignments -----------------------------------------------------------------------------------------------------


def reassign(cluster: VirtualBroker, replicas: list[int] | None, factor: bool = True) -> tuple[int, str | None]:
    wanted = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[wanted], allow_replication_factor_change=factor)
    (answer,) = cluster.client(node_id=2).ask(request, 1).responses[0].partitions
    return answer.error_code, answer.error_message


def ongoing(cluster: VirtualBroker) -> list[tuple[list[int], list[int], list[int]]]:
    topics = cluster.client(node_id=2).ask(ListPartitionReassignmentsRequest(topics=None), 0).topics
    return (
        [(one.replicas, one.adding_replicas, one.removing_replicas) for one in topics[0].partitions] if topics else []
    )


def test_a_partition_moves_when_its_new_replicas_have_everything() -> None:
    cluster = three("sluice.replication.delay.ms=100", replicas=1)
    cluster.client(node_id=1).ask(produce(9), 9)
    cluster.advance(100)
    assert reassign(cluster, [2, 3]) == (0, None)
    assert ongoing(cluster) == [([2, 3, 1], [2, 3], [1])]
    assert state(cluster) == (1, (1,))
    cluster.advance(100)
    assert ongoing(cluster) == []
    partition = cluster.partition()
    assert (partition.leader, partition.replicas, partition.isr, partition.leader_epoch) == (2, (2, 3), (2, 3), 1)
    assert fetched(cluster.client(node_id=2).ask(fetch(0), 11)).high_watermark == 1


def test_a_reassignment_waits_for_a_broker_that_is_down_and_can_be_taken_back() -> None:
    cluster = three(replicas=1)
    stop(cluster, 3)
    assert reassign(cluster, [3]) == (0, None)
    cluster.advance(1000)
    assert ongoing(cluster) == [([3, 1], [3], [1])]
    assert reassign(cluster, None) == (0, None)
    partition = cluster.partition()
    assert (partition.leader, partition.replicas, partition.isr, partition.adding) == (1, (1,), (1,), ())


def test_without_a_reassignment_there_is_none_to_take_back() -> None:
    assert reassign(three(), None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_number_of_replicas_may_be_forbidden() -> None:
    cluster = three(replicas=1)
    message = "The replication factor is changed from 1 to 2"
    assert reassign(cluster, [2, 3], factor=False) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)
    assert reassign(cluster, [2], factor=False) == (0, None)


# -- a broker that nobody reaches --------------------------------------------------------------------------------------


def test_an_isolated_leader_takes_acks_1_which_is_lost_and_acks_all_runs_out_of_time() -> None:
    cluster = three("sluice.replication.delay.ms=10")
    client = cluster.client(node_id=1)
    client.send(produce(9, acks=ALL), 9)
    cluster.advance(10)
    assert error_codes(client.answer().message) == []
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (2, (2, 3))
    assert send(cluster, 1, 1) == [], "it does not know better"
    assert send(cluster, 2, 1) == []
    client.send(produce(9, acks=ALL, timeout_ms=500), 9)
    cluster.advance(500)
    assert error_codes(client.answer().message) == [ErrorCode.REQUEST_TIMED_OUT]
    assert fetched(cluster.client(node_id=1).ask(fetch(0), 11)).high_watermark == 1
    assert fetched(cluster.client(node_id=2).ask(fetch(0), 11)).high_watermark == 2
    cluster.cluster_server.rejoin_broker(1)
    cluster.advance(10)
    assert state(cluster) == (2, (1, 2, 3))
    assert send(cluster, 1, 1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert cluster.partition().log.log_end_offset == 2


def test_what_an_isolated_leader_took_stays_if_it_is_back_before_it_is_missed() -> None:
    cluster = three()
    cluster.cluster_server.isolate_broker(1)
    assert send(cluster, 1, 1) == []
    cluster.advance(DELAY_MS - 1)
    cluster.cluster_server.rejoin_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (1, (1, 2, 3))
    log = cluster.partition().log
    assert (log.high_watermark, log.log_end_offset) == (1, 1)


def test_what_an_isolated_leader_took_before_it_was_missed_is_lost_when_another_led() -> None:
    cluster = three()
    send(cluster, 1, ALL)
    cluster.cluster_server.isolate_broker(1)
    assert send(cluster, 1, 1) == []
    cluster.advance(DELAY_MS)
    assert cluster.partition().log.log_end_offset == 1
    cluster.cluster_server.rejoin_broker(1)
    assert state(cluster) == (2, (1, 2, 3))
    assert cluster.partition().log.log_end_offset == 1


def test_the_only_replica_loses_nothing_by_being_isolated() -> None:
    cluster = three(replicas=1)
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    assert send(cluster, 1, ALL) == []
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    cluster.cluster_server.rejoin_broker(1)
    assert state(cluster) == (1, (1,))
    assert cluster.partition().log.high_watermark == 1


def test_an_isolated_broker_tells_what_it_knew() -> None:
    cluster = three()
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    cluster.topic("later")

    def told(node_id: int) -> tuple[list[int], dict[str, int]]:
        metadata = cluster.client(node_id=node_id).ask(MetadataRequest(topics=None), 9)
        brokers = [broker.node_id for broker in metadata.brokers]
        return brokers, {topic.name: topic.partitions[0].leader_id for topic in metadata.topics}

    assert told(1) == ([1, 2, 3], {"t": 1})
    brokers, leaders = told(2)
    assert (brokers, leaders["t"], sorted(leaders)) == ([2, 3], 2, ["later", "t"])
    cluster.cluster_server.rejoin_broker(1)
    assert told(1)[1] == told(2)[1]


def test_what_is_for_the_controller_waits_until_it_is_reached() -> None:
    cluster = three()
    cluster.cluster_server.isolate_broker(1)
    client = cluster.client(node_id=1)
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    client.send(CreateTopicsRequest(topics=[topic]), 5)
    cluster.advance(20_000)
    assert client.take_answers() == []
    cluster.cluster_server.rejoin_broker(1)
    assert error_codes(client.answer().message) == []
    assert "new" in cluster.cluster.topics


def test_an_isolated_broker_can_be_stopped_and_is_started_as_any_other() -> None:
    cluster = three()
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    stop(cluster, 1)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))


# -- metadata that lags ------------------------------------------------------------------------------------------------


def leader_told(cluster: VirtualBroker, node_id: int, name: str = "t") -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = cluster.client(node_id=node_id).ask(request, 9).topics
    leader_id: int = topic.partitions[0].leader_id if topic.partitions else -topic.error_code
    return leader_id


def test_brokers_tell_of_a_new_leader_when_they_have_heard_of_it() -> None:
    cluster = three("sluice.metadata.lag.ms=200")
    cluster.advance(200)
    cluster.cluster_server.move_leader("t", 0, 2)
    assert send(cluster, 2) == [], "who leads knows at once"
    answer = cluster.client(node_id=1).ask(produce(10), 10)
    (told,) = answer.responses[0].partition_responses
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told.current_leader.leader_id == 1, "as far as it knows"
    cluster.advance(199)
    assert [leader_told(cluster, node_id) for node_id in (1, 2, 3)] == [1, 1, 1]
    cluster.advance(1)
    assert [leader_told(cluster, node_id) for node_id in (1, 2, 3)] == [2, 2, 2]


def test_brokers_tell_of_a_new_topic_when_they_have_heard_of_it() -> None:
    cluster = three("sluice.metadata.lag.ms=200")
    assert leader_told(cluster, 3) == -ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.advance(200)
    assert leader_told(cluster, 3) == 1


def test_brokers_tell_of_a_dead_one_when_they_have_heard_of_it() -> None:
    cluster = three("sluice.metadata.lag.ms=200")

    def told() -> list[int]:
        return [broker.node_id for broker in cluster.client(node_id=2).ask(MetadataRequest(topics=[]), 9).brokers]

    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert told() == [1, 2, 3]
    cluster.advance(200)
    assert told() == [2, 3]


def test_what_waits_on_a_leader_that_is_cut_off_runs_out_of_time_though_another_leads_by_then() -> None:
    cluster = three()
    waiting = cluster.client(node_id=1)
    cluster.cluster_server.isolate_broker(1)
    waiting.send(produce(9, acks=ALL, timeout_ms=20_000), 9)
    cluster.advance(DELAY_MS)
    assert state(cluster)[0] == 2
    assert send(cluster, 2, ALL) == []
    assert not waiting.answers, "nobody has told it"
    cluster.advance(20_000 - DELAY_MS)
    assert error_codes(waiting.answer().message) == [ErrorCode.REQUEST_TIMED_OUT]


def test_what_waits_on_a_leader_that_is_cut_off_is_sent_to_the_next_when_it_is_back() -> None:
    cluster = three()
    waiting = cluster.client(node_id=1)
    cluster.cluster_server.isolate_broker(1)
    waiting.send(produce(9, acks=ALL, timeout_ms=20_000), 9)
    cluster.advance(DELAY_MS)
    cluster.cluster_server.rejoin_broker(1)
    assert error_codes(waiting.answer().message) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
