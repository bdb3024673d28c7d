"""Every parked request gets a response or loses its connection within its timeout, even if a broker fails."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support import groups
from tests.support.records import batch_of, fetch, produce
from tests.support.transactions import (
    TIMEOUT_MS,
    Producer,
    add_request,
    end_request,
    init_request,
    offsets_request,
    produce_request,
)
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

TARGET, PEER, SILENT = 1, 2, 3  # the client's broker, the broker that it calls, and a follower that stopped fetching
ALL = -1
HOUR_MS = 3_600_000
TIME_MS = 10_000  # the timeout in requests
COMMIT_MS = 5_000  # offsets.commit.timeout.ms
PEER_MS = 30_000  # request.timeout.ms, for requests between brokers


def three_brokers(*overrides: str, coordinator: int = TARGET) -> VirtualBroker:
    """Start three brokers; TARGET leads all partitions except that of the transaction coordinator.

    Elections and ISR changes take an hour, so only its timeout ends a request that waits for a stopped broker.
    """
    cluster = VirtualBroker(
        "sluice.brokers=3",
        f"sluice.election.delay.ms={HOUR_MS}",
        f"replica.lag.time.max.ms={HOUR_MS}",
        "auto.leader.rebalance.enable=false",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "group.initial.rebalance.delay.ms=0",
        *overrides,
    )
    cluster.topic(assignments={0: (TARGET, PEER, SILENT)})
    for topic, leader in ((GROUP_METADATA_TOPIC, TARGET), (TRANSACTION_STATE_TOPIC, coordinator)):
        cluster.cluster.internal_topic(topic)
        cluster.cluster_server.move_leader(topic, 0, leader)
    return cluster


def stop_follower(cluster: VirtualBroker) -> None:
    """Stop an in-sync replica, so that it does not acknowledge later records."""
    cluster.cluster_server.stop_broker(SILENT, controlled=False)
    cluster.settle()


def send_to_target(cluster: VirtualBroker, request: Message, version: int) -> Client:
    client = cluster.client(node_id=TARGET)
    client.send(request, version)
    return client


DELETION = DeleteRecordsRequest(
    topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])],
    timeout_ms=TIME_MS,
)


# -- parked requests ---------------------------------------------------------------------------------------------------


def after_unreplicated_write(
    request_of: Callable[[], Message], version: int
) -> Callable[[], tuple[VirtualBroker, Client]]:
    """Park a request that waits for the replication of new or earlier records."""

    def park() -> tuple[VirtualBroker, Client]:
        cluster = three_brokers()
        cluster.client(node_id=TARGET).call(groups.commit_request(), 9)  # creates the group and the coordinators
        stop_follower(cluster)
        send_to_target(cluster, groups.commit_request(), 9)
        return cluster, send_to_target(cluster, request_of(), version)

    return park


def in_transaction(
    request_of: Callable[[Producer], Message],
    version: int,
    *before: Callable[[Producer], object],
    coordinator: int = TARGET,
) -> Callable[[], tuple[VirtualBroker, Client]]:
    """Park a request of a transactional producer after the steps in `before`."""

    def park() -> tuple[VirtualBroker, Client]:
        cluster = three_brokers(coordinator=coordinator)
        producer = Producer(cluster)
        producer.client = cluster.client(node_id=coordinator)
        for step in (Producer.init, *before):
            assert step(producer) in (ErrorCode.NONE, {ErrorCode.NONE})
        stop_follower(cluster)
        return cluster, send_to_target(cluster, request_of(producer), version)

    return park


def with_stopped_follower(request: Message, version: int) -> Callable[[], tuple[VirtualBroker, Client]]:
    def park() -> tuple[VirtualBroker, Client]:
        cluster = three_brokers()
        cluster.client(node_id=TARGET).call(produce(9), 9)
        stop_follower(cluster)
        return cluster, send_to_target(cluster, request, version)

    return park


def two_members() -> tuple[VirtualBroker, groups.Member, groups.Member]:
    """Return a stable member, and one that waits in JoinGroup until the other rejoins."""
    cluster = three_brokers()
    first, second = groups.Member(cluster), groups.Member(cluster)
    for member in (first, second):
        member.client = cluster.client(node_id=TARGET)
    first.send_join()
    groups.settle_round([first])
    second.send_join()
    return cluster, first, second


def joining() -> tuple[VirtualBroker, Client]:
    """Park a JoinGroup that waits for a member that does not rejoin."""
    cluster, _, second = two_members()
    return cluster, second.client


def syncing() -> tuple[VirtualBroker, Client]:
    """Park a SyncGroup that waits for the assignments of the group leader."""
    cluster, first, second = two_members()
    first.send_join()
    assert second.joined().error_code == first.joined().error_code == ErrorCode.NONE
    second.send_sync()
    return cluster, second.client


def fetching() -> tuple[VirtualBroker, Client]:
    cluster = three_brokers()
    return cluster, send_to_target(cluster, fetch(0, max_wait_ms=TIME_MS, min_bytes=1), 12)


def deleting() -> tuple[VirtualBroker, Client]:
    """Park a DeleteRecords that waits for followers longer than its timeout."""
    cluster = three_brokers(f"sluice.replication.delay.ms={2 * TIME_MS}")
    cluster.client(node_id=TARGET).call(produce(9), 9)
    cluster.advance(2 * TIME_MS)
    return cluster, send_to_target(cluster, DELETION, 2)


def throttled() -> tuple[VirtualBroker, Client]:
    """Park a Produce whose response is held for its throttle time."""
    cluster = three_brokers("quota.producer.default=1000")
    return cluster, send_to_target(cluster, produce(3, batch_of(15_000)), 3)


class Parked(NamedTuple):
    """A parked request and its longest wait."""

    park: Callable[[], tuple[VirtualBroker, Client]]
    time_ms: float


MARKER = WriteTxnMarkersRequest(
    markers=[
        WritableTxnMarker(
            producer_id=1,
            producer_epoch=0,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
    ]
)
OFFSETS = groups.delete_offsets_request()
JOINING_CONSUMER = ConsumerGroupHeartbeatRequest(
    group_id="other", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
)


def _add_offsets(producer: Producer) -> Message:
    return AddOffsetsToTxnRequest(
        transactional_id="tx", producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id="group"
    )


def _commit_offsets(producer: Producer) -> Message:
    return offsets_request(producer.producer_id, producer.epoch, "group")


def _produce(producer: Producer) -> Message:
    return produce_request(12, producer.producer_id, producer.epoch, acks=ALL, timeout_ms=TIME_MS)


def _have_offsets(producer: Producer) -> int:
    return producer.add_offsets("group")


PARKED = {
    "Produce with acks=all": Parked(with_stopped_follower(produce(9, acks=ALL, timeout_ms=TIME_MS), 9), TIME_MS),
    "Fetch": Parked(fetching, TIME_MS),
    "throttled Produce": Parked(throttled, TIME_MS),
    "DeleteRecords": Parked(deleting, TIME_MS),
    "JoinGroup": Parked(joining, groups.REBALANCE_MS),
    "SyncGroup": Parked(syncing, groups.REBALANCE_MS),
    "LeaveGroup": Parked(
        after_unreplicated_write(
            lambda: LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="m")]), 5
        ),
        COMMIT_MS,
    ),
    "ConsumerGroupHeartbeat": Parked(after_unreplicated_write(lambda: JOINING_CONSUMER, 1), COMMIT_MS),
    "OffsetCommit": Parked(after_unreplicated_write(groups.commit_request, 9), COMMIT_MS),
    "OffsetFetch": Parked(after_unreplicated_write(groups.fetch_request, 9), COMMIT_MS),
    "OffsetDelete": Parked(after_unreplicated_write(lambda: OFFSETS, 0), COMMIT_MS),
    "DeleteGroups": Parked(after_unreplicated_write(lambda: DeleteGroupsRequest(groups_names=["group"]), 2), COMMIT_MS),
    "InitProducerId": Parked(after_unreplicated_write(init_request, 5), TIMEOUT_MS),
    "AddPartitionsToTxn": Parked(
        in_transaction(lambda producer: add_request(3, producer.producer_id, producer.epoch), 3), TIMEOUT_MS
    ),
    "AddOffsetsToTxn": Parked(in_transaction(_add_offsets, 3), TIMEOUT_MS),
    "EndTxn": Parked(
        in_transaction(lambda producer: end_request(producer.producer_id, producer.epoch), 4, Producer.add), TIMEOUT_MS
    ),
    "TxnOffsetCommit": Parked(in_transaction(_commit_offsets, 4, _have_offsets), COMMIT_MS),
    "WriteTxnMarkers": Parked(with_stopped_follower(MARKER, 1), PEER_MS),
}
# Requests that wait for another broker, the transaction coordinator.
AT_PEER = {
    "Produce that adds its partition at another broker": Parked(
        in_transaction(_produce, 12, coordinator=PEER), PEER_MS + TIME_MS
    ),
    "TxnOffsetCommit that adds its partition at another broker": Parked(
        in_transaction(_commit_offsets, 5, coordinator=PEER), PEER_MS + COMMIT_MS
    ),
}


# -- broker events -----------------------------------------------------------------------------------------------------


def _stops(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.stop_broker(node_id)


def _crashes(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.stop_broker(node_id, controlled=False)


def _restarts_immediately(cluster: VirtualBroker, node_id: int) -> None:
    _crashes(cluster, node_id)
    cluster.run(cluster.cluster_server.start_broker(node_id))


def _is_isolated(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.isolate_broker(node_id)


def _is_isolated_and_stops(cluster: VirtualBroker, node_id: int) -> None:
    _is_isolated(cluster, node_id)
    _stops(cluster, node_id)


def _is_isolated_and_rejoins(cluster: VirtualBroker, node_id: int) -> None:
    _is_isolated(cluster, node_id)
    cluster.advance(1_000)
    cluster.cluster_server.rejoin_broker(node_id)


def _loses_leaderships(cluster: VirtualBroker, node_id: int) -> None:
    for topic in ("t", GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
        if cluster.partition(topic).leader == node_id:
            cluster.cluster_server.move_leader(topic, 0, TARGET + PEER - node_id)


def _keeps_running(cluster: VirtualBroker, node_id: int) -> None:
    """Do nothing."""


EVENTS = {
    "keeps running": _keeps_running,
    "stops": _stops,
    "crashes": _crashes,
    "restarts immediately": _restarts_immediately,
    "is isolated": _is_isolated,
    "is isolated and stops": _is_isolated_and_stops,
    "is isolated and rejoins": _is_isolated_and_rejoins,
    "loses its leaderships": _loses_leaderships,
}


def has_ended(client: Client) -> bool:
    return bool(client.responses) or not client.is_open


@pytest.mark.parametrize("apply_event", EVENTS.values(), ids=[f"its broker {event}" for event in EVENTS])
@pytest.mark.parametrize("parked", (PARKED | AT_PEER).values(), ids=PARKED | AT_PEER)
def test_parked_request_ends_within_its_timeout(
    parked: Parked, apply_event: Callable[[VirtualBroker, int], None]
) -> None:
    cluster, client = parked.park()
    assert not has_ended(client), "the request is parked"
    apply_event(cluster, TARGET)
    cluster.advance(parked.time_ms)
    assert has_ended(client)


@pytest.mark.parametrize("apply_event", EVENTS.values(), ids=[f"the other broker {event}" for event in EVENTS])
@pytest.mark.parametrize("parked", AT_PEER.values(), ids=AT_PEER)
def test_request_that_waits_for_another_broker_gets_a_response_within_its_timeout(
    parked: Parked, apply_event: Callable[[VirtualBroker, int], None]
) -> None:
    cluster, client = parked.park()
    assert not has_ended(client), "the request is parked"
    apply_event(cluster, PEER)
    cluster.advance(parked.time_ms)
    assert client.responses
    assert client.is_open


def _codes(client: Client) -> list[int]:
    return error_codes(client.response().message)


CALLS = list(AT_PEER.values())
# Errors that clients retry.
CALLS_WITH_ERRORS = list(
    zip(CALLS, (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), strict=True)
)


@pytest.mark.parametrize(("parked", "code"), CALLS_WITH_ERRORS, ids=AT_PEER)
def test_crash_of_the_called_broker_ends_the_request_immediately(parked: Parked, code: ErrorCode) -> None:
    cluster, client = parked.park()
    _crashes(cluster, PEER)
    cluster.settle()
    assert _codes(client) == [code]


ISOLATED = {"the calling broker is isolated": TARGET, "the called broker is isolated": PEER}


@pytest.mark.parametrize("node_id", ISOLATED.values(), ids=ISOLATED)
@pytest.mark.parametrize(("parked", "code"), CALLS_WITH_ERRORS, ids=AT_PEER)
def test_request_with_a_lost_response_ends_after_request_timeout_ms(
    parked: Parked, code: ErrorCode, node_id: int
) -> None:
    cluster, client = parked.park()
    _is_isolated(cluster, node_id)
    cluster.run(cluster.cluster_server.start_broker(SILENT))  # the called broker performs the request now
    cluster.advance(PEER_MS - 1)
    assert not has_ended(client)
    cluster.advance(1)
    assert _codes(client) == [code]


@pytest.mark.parametrize("parked", CALLS, ids=AT_PEER)
def test_late_response_of_the_called_broker_is_ignored(parked: Parked) -> None:
    cluster, client = parked.park()
    cluster.advance(PEER_MS)
    assert len(client.take_responses()) == 1
    cluster.run(cluster.cluster_server.start_broker(SILENT))
    cluster.advance(TIMEOUT_MS)
    assert not client.responses


@pytest.mark.parametrize("parked", CALLS, ids=AT_PEER)
def test_response_of_the_called_broker_completes_the_request(parked: Parked) -> None:
    cluster, client = parked.park()
    cluster.run(cluster.cluster_server.start_broker(SILENT))
    cluster.settle()
    assert _codes(client) == []
