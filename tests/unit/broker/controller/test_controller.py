"""Brokers that stop, start, are isolated and rejoin: leaders, ISR, lost records, and what clients receive."""

from typing import Any

import pytest

from sluice.broker.controller.elections import Election
from sluice.broker.metadata.topic import NO_LEADER
from sluice.errors import ClusterError, UnknownResourceError
from sluice.protocol.apis import alter_partition_reassignments as api
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import fetch, fetched, fetched_bytes, produce
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker
from tests.support.wire import error_codes

DELAY_MS = 9_000  # sluice.election.delay.ms
LAG_MS = 30_000  # replica.lag.time.max.ms
ALL = -1


def three(*overrides: str, replicas: int = 3, **configs: Any) -> VirtualBroker:
    """Return three brokers with one partition that has replicas on 1, 2 and 3 and leader 1."""
    cluster = VirtualBroker("sluice.brokers=3", *overrides)
    cluster.topic(assignments={0: (1, 2, 3)[:replicas]}, **configs)
    return cluster


@pytest.fixture
def cluster() -> VirtualBroker:
    return three()


def stop(cluster: VirtualBroker, node_id: int, *, controlled: bool = False) -> None:
    cluster.cluster_server.stop_broker(node_id, controlled=controlled)
    cluster.settle()


def start(cluster: VirtualBroker, node_id: int) -> None:
    cluster.run(cluster.cluster_server.start_broker(node_id))


def state(cluster: VirtualBroker) -> tuple[int, tuple[int, ...]]:
    partition = cluster.partition()
    return partition.leader, partition.isr


def send(cluster: VirtualBroker, node_id: int, acks: int = 1) -> list[int]:
    """Return the error codes of a produce request that completes immediately."""
    return error_codes(cluster.client(node_id=node_id).call(produce(9, acks=acks), 9))


def waiting_producer(cluster: VirtualBroker, version: int = 9, **fields: Any) -> Client:
    """Return a client of broker 1 that has sent a produce request with acks=all."""
    client = cluster.client(node_id=1)
    client.send(produce(version, acks=ALL, **fields), version)
    return client


# -- stop and restart --------------------------------------------------------------------------------------------------


def test_crashed_leader_is_replaced_after_the_election_delay(cluster: VirtualBroker) -> None:
    stop(cluster, 1)
    cluster.advance(DELAY_MS - 1)
    assert state(cluster) == (1, (1, 2, 3)), "a crash is noticed only after the delay"
    cluster.advance(1)
    assert state(cluster) == (2, (2, 3))
    assert (cluster.partition().leader_epoch, cluster.partition().partition_epoch) == (1, 1)
    assert send(cluster, 2, ALL) == []


def test_crashed_follower_leaves_the_isr_and_the_leader_epoch_stays(cluster: VirtualBroker) -> None:
    stop(cluster, 2)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (1, (1, 3))
    assert (cluster.partition().leader_epoch, cluster.partition().partition_epoch) == (0, 1)


def test_controlled_shutdown_moves_leadership_immediately(cluster: VirtualBroker) -> None:
    waiting = cluster.client(node_id=1)
    waiting.send(fetch(0, max_wait_ms=60_000), 10)  # later versions may read from a follower
    stop(cluster, 1, controlled=True)
    assert state(cluster) == (2, (2, 3))
    assert error_codes(waiting.response().message) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert not waiting.is_open


def test_restarted_broker_rejoins_the_isr_and_later_leads_as_preferred(cluster: VirtualBroker) -> None:
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    send(cluster, 2, ALL)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))
    assert cluster.partition().log.high_watermark == 1
    cluster.advance(300_000)
    assert state(cluster) == (1, (1, 2, 3)), (
        "the preferred leader returns after leader.imbalance.check.interval.seconds"
    )


def test_preferred_leader_is_not_restored_if_auto_rebalance_is_disabled() -> None:
    cluster = three("auto.leader.rebalance.enable=false")
    stop(cluster, 1, controlled=True)
    start(cluster, 1)
    cluster.advance(3_000_000)
    assert state(cluster) == (2, (1, 2, 3))


def test_broker_restarted_within_the_election_delay_loses_leadership(cluster: VirtualBroker) -> None:
    stop(cluster, 1)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))
    cluster.advance(DELAY_MS)
    assert state(cluster) == (2, (1, 2, 3)), "a crash before the restart must not count after it"


def test_restarted_broker_keeps_its_port_and_forgets_quota_usage() -> None:
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


def test_configured_quotas_apply_on_a_restarted_broker(cluster: VirtualBroker) -> None:
    cluster.cluster.client_quotas.alter({"client-id": "client"}, {"producer_byte_rate": 1000.0})
    stop(cluster, 2)
    start(cluster, 2)
    assert cluster.cluster_server.brokers[2].quotas.produce.record("ANONYMOUS", "client", 25_000.0, 0) > 0


def test_partition_is_offline_until_an_in_sync_replica_restarts() -> None:
    cluster = three(replicas=1)
    send(cluster, 1)
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    (topic,) = cluster.client(node_id=2).call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
    found = [(one.error_code, one.leader_id, one.offline_replicas) for one in topic.partitions]
    assert found == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])]
    counted = [route.errors for route in cluster.cluster_server.servers[2].exchange.routes if route.errors]
    assert counted == [{ErrorCode.LEADER_NOT_AVAILABLE: 1}], "partition errors are counted"
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    start(cluster, 1)
    assert state(cluster) == (1, (1,))
    assert cluster.partition().log.log_end_offset == 1


@pytest.mark.parametrize("set_before", [True, False], ids=["set before", "set while it is offline"])
def test_allowed_unclean_election_loses_records_that_the_new_leader_lacks(set_before: bool) -> None:
    allowed = {"unclean_leader_election_enable": "true"}
    cluster = three(replicas=2, **(allowed if set_before else {}))
    send(cluster, 1, ALL)
    stop(cluster, 2)
    cluster.advance(DELAY_MS)
    assert send(cluster, 1, ALL) == [], "broker 1 is the only in-sync replica"
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    if not set_before:
        cluster.cluster.configure(cluster.partition().topic, {"unclean.leader.election.enable": "true"})
    start(cluster, 2)
    assert state(cluster) == (2, (2,))
    assert cluster.partition().log.log_end_offset == 1
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2))


def test_metadata_lists_live_brokers(cluster: VirtualBroker) -> None:
    client = cluster.client(node_id=3)

    def brokers_and_controller() -> tuple[list[int], int]:
        metadata = client.call(MetadataRequest(topics=[]), 9)
        return [broker.node_id for broker in metadata.brokers], metadata.controller_id

    stop(cluster, 1)
    assert brokers_and_controller() == ([1, 2, 3], 1)
    cluster.advance(DELAY_MS)
    assert brokers_and_controller() == ([2, 3], 2)
    start(cluster, 1)
    assert brokers_and_controller() == ([1, 2, 3], 1)


# -- replication -------------------------------------------------------------------------------------------------------


def test_acks_all_waits_for_the_followers() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = waiting_producer(cluster)
    cluster.advance(99)
    assert client.take_responses() == []
    cluster.advance(1)
    assert client.response().at_ms == 100


def test_acks_all_waits_for_a_crashed_follower_until_it_leaves_the_isr(cluster: VirtualBroker) -> None:
    stop(cluster, 3)
    client = waiting_producer(cluster)
    cluster.advance(DELAY_MS - 1)
    assert client.take_responses() == []
    assert fetched_bytes(cluster.client(node_id=1).call(fetch(0), 11)) == b"", "consumers read up to the high watermark"
    cluster.advance(1)
    assert error_codes(client.response().message) == []


def test_lagging_follower_leaves_the_isr_though_the_controller_sees_it_alive() -> None:
    cluster = three("sluice.election.delay.ms=100000000")
    stop(cluster, 3)
    send(cluster, 1)
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))
    assert cluster.partition().log.high_watermark == 1


def test_stopped_follower_without_lag_stays_in_the_isr() -> None:
    cluster = three("sluice.election.delay.ms=100000000")
    stop(cluster, 3)
    cluster.advance(5 * LAG_MS)
    assert state(cluster) == (1, (1, 2, 3))
    send(cluster, 1)
    cluster.advance(LAG_MS)
    assert state(cluster) == (1, (1, 2))


def test_acks_all_below_min_isr_fails_or_waits_if_already_appended() -> None:
    cluster = three(min_insync_replicas="2", replicas=2)
    stop(cluster, 2)
    client = waiting_producer(cluster)
    cluster.advance(DELAY_MS)
    assert client.take_responses() == [], "the high watermark must not advance below min.insync.replicas"
    assert send(cluster, 1, ALL) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert send(cluster, 1, 1) == []
    start(cluster, 2)
    assert error_codes(client.response().message) == []
    assert cluster.partition().log.high_watermark == 2


def test_acks_all_fails_after_append_if_min_isr_was_raised() -> None:
    cluster = three("sluice.replication.delay.ms=100", replicas=2)
    client = waiting_producer(cluster)
    cluster.advance(100)
    assert error_codes(client.response().message) == []
    client.send(produce(9, acks=ALL), 9)
    partition = cluster.partition()
    partition.isr = (1,)
    partition.topic.min_insync_replicas = 2
    partition.log.advance_high_watermark(2)
    cluster.cluster.high_watermark_moved(partition)
    assert error_codes(client.response().message) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_records_only_on_the_leader_are_lost_with_it() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = waiting_producer(cluster)
    cluster.advance(100)
    assert error_codes(client.response().message) == []
    assert send(cluster, 1, 1) == []
    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    log = cluster.partition().log
    assert (log.high_watermark, log.log_end_offset) == (1, 1)


def test_waiting_producer_receives_the_new_leader_after_a_move() -> None:
    cluster = three("sluice.replication.delay.ms=100")
    client = waiting_producer(cluster, 10)
    cluster.cluster_server.move_leader("t", 0, 2)
    response = client.response().message
    (partition_response,) = response.responses[0].partition_responses
    assert partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition_response.current_leader.leader_id, partition_response.current_leader.leader_epoch) == (2, 1)
    assert [node.node_id for node in response.node_endpoints] == [2]


NEW_LEADER_OFFSETS = {
    "latest offset": (5, -1, ErrorCode.OFFSET_NOT_AVAILABLE),
    "latest offset, older version": (4, -1, ErrorCode.LEADER_NOT_AVAILABLE),
    "timestamp of a record above the high watermark": (5, WALL_START_MS, ErrorCode.OFFSET_NOT_AVAILABLE),
    "maximum timestamp": (7, -3, ErrorCode.OFFSET_NOT_AVAILABLE),
    "timestamp without records": (5, 2 * WALL_START_MS, ErrorCode.OFFSET_NOT_AVAILABLE),
    "earliest offset": (5, -2, None),
}


@pytest.mark.parametrize(("version", "timestamp", "code"), NEW_LEADER_OFFSETS.values(), ids=NEW_LEADER_OFFSETS)
def test_new_leader_returns_no_offset_before_its_high_watermark_is_known(
    version: int, timestamp: int, code: int | None
) -> None:
    cluster = three("sluice.replication.delay.ms=100")
    stop(cluster, 3)  # the high watermark stays at 0 although broker 2 has all records
    send(cluster, 1)
    cluster.advance(100)
    cluster.cluster_server.move_leader("t", 0, 2)
    requested = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[requested])])
    client = cluster.client(node_id=2)
    assert error_codes(client.call(request, version)) == ([] if code is None else [code])
    cluster.advance(DELAY_MS)
    assert error_codes(client.call(request, version)) == []


# -- leader moves ------------------------------------------------------------------------------------------------------


def test_leader_move_raises_the_epoch_and_old_epochs_are_fenced(cluster: VirtualBroker) -> None:
    client = cluster.client(node_id=1)
    client.call(produce(9), 9)
    cluster.cluster_server.move_leader("t", 0, 3)
    assert state(cluster) == (3, (1, 2, 3))
    old = fetch(0, current_leader_epoch=0)
    assert error_codes(cluster.client(node_id=3).call(old, 11)) == [ErrorCode.FENCED_LEADER_EPOCH]
    assert error_codes(client.call(old, 11)) == [ErrorCode.FENCED_LEADER_EPOCH], "a follower fences old epochs too"
    new = fetch(0, current_leader_epoch=1)
    assert fetched(cluster.client(node_id=3).call(new, 11)).high_watermark == 1
    newer = fetch(0, current_leader_epoch=2)
    assert error_codes(cluster.client(node_id=3).call(newer, 11)) == [ErrorCode.UNKNOWN_LEADER_EPOCH]


INVALID_MOVES = {
    "unknown topic": ("nowhere", 0, 1, "there is no topic nowhere"),
    "unknown partition": ("t", 7, 1, "partition t-7 does not exist; expected partition 0 to 0"),
    "no replica": ("t", 0, 3, "broker 3 has no replica of t-0; expected one of 1, 2"),
    "not in sync": ("t", 0, 2, "broker 2 is not in sync for t-0; expected one of 1"),
}


@pytest.mark.parametrize(("topic", "index", "node_id", "error"), INVALID_MOVES.values(), ids=INVALID_MOVES)
def test_invalid_leader_move_is_rejected(topic: str, index: int, node_id: int, error: str) -> None:
    cluster = three(replicas=2)
    stop(cluster, 2, controlled=True)
    with pytest.raises(ClusterError) as caught:
        cluster.cluster_server.move_leader(topic, index, node_id)
    assert str(caught.value) == error


INVALID_STATE_CHANGES = {
    "started twice": (["start"], "broker 2 is running"),
    "rejoined without having been isolated": (["rejoin"], "broker 2 is running"),
    "stopped twice": (["stop", "stop"], "broker 2 is stopped"),
    "isolated when stopped": (["stop", "isolate"], "broker 2 is stopped"),
    "isolated twice": (["isolate", "isolate"], "broker 2 is isolated"),
    "started when isolated": (["isolate", "start"], "broker 2 is isolated"),
}


@pytest.mark.parametrize(("steps", "error"), INVALID_STATE_CHANGES.values(), ids=INVALID_STATE_CHANGES)
def test_invalid_state_change_of_a_broker_is_rejected(cluster: VirtualBroker, steps: list[str], error: str) -> None:
    server = cluster.cluster_server
    actions = {
        "stop": lambda: server.stop_broker(2),
        "start": lambda: cluster.run(server.start_broker(2)),
        "isolate": lambda: server.isolate_broker(2),
        "rejoin": lambda: server.rejoin_broker(2),
    }
    *before, last = steps
    for step in before:
        actions[step]()
    with pytest.raises(ClusterError) as caught:
        actions[last]()
    assert str(caught.value) == error


def test_state_change_of_an_unknown_broker_is_rejected() -> None:
    with pytest.raises(UnknownResourceError, match="there is no broker 4; expected one of 1, 2, 3"):
        three().cluster_server.stop_broker(4)


def elect(cluster: VirtualBroker, election: Election) -> list[int]:
    topics = [TopicPartitions(topic="t", partitions=[0])]
    request = ElectLeadersRequest(election_type=election.value, topic_partitions=topics)
    (result,) = cluster.client(node_id=3).call(request, 2).replica_election_results
    return [one.error_code for one in result.partition_result]


def test_preferred_election_on_request_restores_the_preferred_leader(cluster: VirtualBroker) -> None:
    assert elect(cluster, Election.PREFERRED) == [ErrorCode.ELECTION_NOT_NEEDED]
    stop(cluster, 1, controlled=True)
    assert elect(cluster, Election.PREFERRED) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    start(cluster, 1)
    assert elect(cluster, Election.PREFERRED) == [0]
    assert state(cluster) == (1, (1, 2, 3))


def test_unclean_election_on_request_elects_an_out_of_sync_replica() -> None:
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
    requested = api.ReassignableTopic(
        name="t", partitions=[api.ReassignablePartition(partition_index=0, replicas=replicas)]
    )
    request = api.AlterPartitionReassignmentsRequest(topics=[requested], allow_replication_factor_change=factor)
    (response,) = cluster.client(node_id=2).call(request, 1).responses[0].partitions
    return response.error_code, response.error_message


def ongoing(cluster: VirtualBroker) -> list[tuple[list[int], list[int], list[int]]]:
    topics = cluster.client(node_id=2).call(ListPartitionReassignmentsRequest(topics=None), 0).topics
    return (
        [(one.replicas, one.adding_replicas, one.removing_replicas) for one in topics[0].partitions] if topics else []
    )


def test_reassignment_completes_when_the_new_replicas_are_in_sync() -> None:
    cluster = three("sluice.replication.delay.ms=100", replicas=1)
    cluster.client(node_id=1).call(produce(9), 9)
    cluster.advance(100)
    assert reassign(cluster, [2, 3]) == (0, None)
    assert ongoing(cluster) == [([2, 3, 1], [2, 3], [1])]
    assert state(cluster) == (1, (1,))
    cluster.advance(100)
    assert ongoing(cluster) == []
    partition = cluster.partition()
    assert (partition.leader, partition.replicas, partition.isr, partition.leader_epoch) == (2, (2, 3), (2, 3), 1)
    assert fetched(cluster.client(node_id=2).call(fetch(0), 11)).high_watermark == 1


def test_reassignment_to_a_stopped_broker_waits_and_can_be_cancelled() -> None:
    cluster = three(replicas=1)
    stop(cluster, 3)
    assert reassign(cluster, [3]) == (0, None)
    cluster.advance(1000)
    assert ongoing(cluster) == [([3, 1], [3], [1])]
    assert reassign(cluster, None) == (0, None)
    partition = cluster.partition()
    assert (partition.leader, partition.replicas, partition.isr, partition.adding) == (1, (1,), (1,), ())


def test_cancelling_without_a_reassignment_fails() -> None:
    assert reassign(three(), None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_change_of_the_replication_factor_can_be_disallowed() -> None:
    cluster = three(replicas=1)
    message = "The replication factor is changed from 1 to 2"
    assert reassign(cluster, [2, 3], factor=False) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)
    assert reassign(cluster, [2], factor=False) == (0, None)


# -- isolated brokers --------------------------------------------------------------------------------------------------


def test_isolated_leader_accepts_acks_1_and_times_out_acks_all() -> None:
    cluster = three("sluice.replication.delay.ms=10")
    client = waiting_producer(cluster)
    cluster.advance(10)
    assert error_codes(client.response().message) == []
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (2, (2, 3))
    assert send(cluster, 1, 1) == [], "an isolated leader accepts acks=1"
    assert send(cluster, 2, 1) == []
    client.send(produce(9, acks=ALL, timeout_ms=500), 9)
    cluster.advance(500)
    assert error_codes(client.response().message) == [ErrorCode.REQUEST_TIMED_OUT]
    assert fetched(cluster.client(node_id=1).call(fetch(0), 11)).high_watermark == 1
    assert fetched(cluster.client(node_id=2).call(fetch(0), 11)).high_watermark == 2
    cluster.cluster_server.rejoin_broker(1)
    cluster.advance(10)
    assert state(cluster) == (2, (1, 2, 3))
    assert send(cluster, 1, 1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert cluster.partition().log.log_end_offset == 2


def test_records_of_an_isolated_leader_survive_if_it_rejoins_within_the_delay(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    assert send(cluster, 1, 1) == []
    cluster.advance(DELAY_MS - 1)
    cluster.cluster_server.rejoin_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (1, (1, 2, 3))
    log = cluster.partition().log
    assert (log.high_watermark, log.log_end_offset) == (1, 1)


def test_records_of_an_isolated_leader_are_lost_after_an_election(cluster: VirtualBroker) -> None:
    send(cluster, 1, ALL)
    cluster.cluster_server.isolate_broker(1)
    assert send(cluster, 1, 1) == []
    cluster.advance(DELAY_MS)
    assert cluster.partition().log.log_end_offset == 1
    cluster.cluster_server.rejoin_broker(1)
    assert state(cluster) == (2, (1, 2, 3))
    assert cluster.partition().log.log_end_offset == 1


def test_only_replica_loses_nothing_when_isolated() -> None:
    cluster = three(replicas=1)
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    assert state(cluster) == (NO_LEADER, (1,))
    assert send(cluster, 1, ALL) == []
    assert send(cluster, 2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    cluster.cluster_server.rejoin_broker(1)
    assert state(cluster) == (1, (1,))
    assert cluster.partition().log.high_watermark == 1


def test_isolated_broker_returns_metadata_from_before_its_isolation(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    cluster.topic("later")

    def brokers_and_leaders(node_id: int) -> tuple[list[int], dict[str, int]]:
        metadata = cluster.client(node_id=node_id).call(MetadataRequest(topics=None), 9)
        brokers = [broker.node_id for broker in metadata.brokers]
        return brokers, {topic.name: topic.partitions[0].leader_id for topic in metadata.topics}

    assert brokers_and_leaders(1) == ([1, 2, 3], {"t": 1})
    brokers, leaders = brokers_and_leaders(2)
    assert (brokers, leaders["t"], sorted(leaders)) == ([2, 3], 2, ["later", "t"])
    cluster.cluster_server.rejoin_broker(1)
    assert brokers_and_leaders(1)[1] == brokers_and_leaders(2)[1]


def test_request_for_the_controller_waits_until_the_broker_rejoins(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    client = cluster.client(node_id=1)
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    client.send(CreateTopicsRequest(topics=[topic]), 5)
    cluster.advance(20_000)
    assert client.take_responses() == []
    cluster.cluster_server.rejoin_broker(1)
    assert error_codes(client.response().message) == []
    assert "new" in cluster.cluster.topics


def test_isolated_broker_can_be_stopped_and_restarted(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    cluster.advance(DELAY_MS)
    stop(cluster, 1)
    start(cluster, 1)
    assert state(cluster) == (2, (1, 2, 3))


# -- metadata lag ------------------------------------------------------------------------------------------------------


def metadata_leader(cluster: VirtualBroker, node_id: int, name: str = "t") -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = cluster.client(node_id=node_id).call(request, 9).topics
    leader_id: int = topic.partitions[0].leader_id if topic.partitions else -topic.error_code
    return leader_id


def test_metadata_shows_a_new_leader_after_the_lag() -> None:
    cluster = three("sluice.metadata.lag.ms=200")
    cluster.advance(200)
    cluster.cluster_server.move_leader("t", 0, 2)
    assert send(cluster, 2) == [], "the new leader accepts produce requests immediately"
    response = cluster.client(node_id=1).call(produce(10), 10)
    (partition_response,) = response.responses[0].partition_responses
    assert partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_response.current_leader.leader_id == 1, "current_leader comes from delayed metadata"
    cluster.advance(199)
    assert [metadata_leader(cluster, node_id) for node_id in (1, 2, 3)] == [1, 1, 1]
    cluster.advance(1)
    assert [metadata_leader(cluster, node_id) for node_id in (1, 2, 3)] == [2, 2, 2]


def test_metadata_shows_a_new_topic_after_the_lag() -> None:
    cluster = three("sluice.metadata.lag.ms=200")
    assert metadata_leader(cluster, 3) == -ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.advance(200)
    assert metadata_leader(cluster, 3) == 1


def test_metadata_drops_a_crashed_broker_after_the_lag() -> None:
    cluster = three("sluice.metadata.lag.ms=200")

    def broker_ids() -> list[int]:
        return [broker.node_id for broker in cluster.client(node_id=2).call(MetadataRequest(topics=[]), 9).brokers]

    stop(cluster, 1)
    cluster.advance(DELAY_MS)
    assert broker_ids() == [1, 2, 3]
    cluster.advance(200)
    assert broker_ids() == [2, 3]


def test_request_on_an_isolated_leader_times_out_though_another_leads(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    waiting = waiting_producer(cluster, timeout_ms=20_000)
    cluster.advance(DELAY_MS)
    assert state(cluster)[0] == 2
    assert send(cluster, 2, ALL) == []
    assert not waiting.responses, "an isolated leader does not learn of the election"
    cluster.advance(20_000 - DELAY_MS)
    assert error_codes(waiting.response().message) == [ErrorCode.REQUEST_TIMED_OUT]


def test_request_on_an_isolated_leader_fails_when_it_rejoins(cluster: VirtualBroker) -> None:
    cluster.cluster_server.isolate_broker(1)
    waiting = waiting_producer(cluster, timeout_ms=20_000)
    cluster.advance(DELAY_MS)
    cluster.cluster_server.rejoin_broker(1)
    assert error_codes(waiting.response().message) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_request_on_an_isolated_leader_fails_if_its_records_were_cut_before_it_led_again() -> None:
    """Later records at the same offsets do not acknowledge it."""
    cluster = three("sluice.replication.delay.ms=10")
    cluster.cluster_server.isolate_broker(1)
    waiting = waiting_producer(cluster, timeout_ms=20_000)
    cluster.cluster_server.move_leader("t", 0, 2)
    assert cluster.partition().log.log_end_offset == 0
    cluster.cluster_server.move_leader("t", 0, 1)
    cluster.cluster_server.rejoin_broker(1)
    assert send(cluster, 1) == []
    cluster.advance(10)
    assert cluster.partition().log.high_watermark == 1
    assert error_codes(waiting.response().message) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
