"""Whatever happens to a broker on which a request waits, or to one that it waits for: the client is answered, or loses
its connection, within the time that the request has.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.groups import REBALANCE_MS, Member, commit_request, fetch_request, settle_round
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

ASKED, PEER, SILENT = 1, 2, 3  # asked by the client; asked by that one; a follower that has stopped to fetch
ALL = -1
HOUR_MS = 3_600_000
TIME_MS = 10_000  # that requests say they have
COMMIT_MS = 5_000  # offsets.commit.timeout.ms
PEER_MS = 30_000  # request.timeout.ms, of one broker that asks another
ASSIGNMENTS = {0: (ASKED, PEER, SILENT)}


def three(*overrides: str, coordinator: int = ASKED) -> VirtualBroker:
    """Three brokers of which the first leads all there is, but for transactions, which are coordinated elsewhere.

    Nobody misses a broker that is gone, so nothing but its time ends what waits for one.
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
    cluster.cluster.create(NewTopic("t", assignments=ASSIGNMENTS))
    for topic, leader in ((GROUP_METADATA_TOPIC, ASKED), (TRANSACTION_STATE_TOPIC, coordinator)):
        cluster.cluster.internal_topic(topic)
        cluster.cluster_server.move_leader(topic, 0, leader)
    return cluster


def silence(cluster: VirtualBroker) -> None:
    """One of the replicas in sync has nothing of what is written from now on."""
    cluster.cluster_server.stop_broker(SILENT, controlled=False)
    cluster.settle()


def asked(cluster: VirtualBroker, request: Message, version: int) -> Client:
    client = cluster.client(node_id=ASKED)
    client.send(request, version)
    return client


DELETION = DeleteRecordsRequest(
    topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])],
    timeout_ms=TIME_MS,
)


# -- what waits --------------------------------------------------------------------------------------------------------


def written(request_of: Callable[[], Message], version: int) -> Callable[[], tuple[VirtualBroker, Client]]:
    """A request that waits until the replicas have what it wrote, or what was written before it."""

    def park() -> tuple[VirtualBroker, Client]:
        cluster = three()
        cluster.client(node_id=ASKED).ask(commit_request(), 9)  # so that there is a group, and coordinators are made
        silence(cluster)
        asked(cluster, commit_request(), 9)
        return cluster, asked(cluster, request_of(), version)

    return park


def in_transaction(
    request_of: Callable[[Producer], Message],
    version: int,
    *before: Callable[[Producer], object],
    coordinator: int = ASKED,
) -> Callable[[], tuple[VirtualBroker, Client]]:
    """A request of a producer that has done something before."""

    def park() -> tuple[VirtualBroker, Client]:
        cluster = three(coordinator=coordinator)
        producer = Producer(cluster)
        producer.client = cluster.client(node_id=coordinator)
        for step in (Producer.init, *before):
            assert step(producer) in (ErrorCode.NONE, {ErrorCode.NONE})
        silence(cluster)
        return cluster, asked(cluster, request_of(producer), version)

    return park


def plain(request: Message, version: int) -> Callable[[], tuple[VirtualBroker, Client]]:
    def park() -> tuple[VirtualBroker, Client]:
        cluster = three()
        cluster.client(node_id=ASKED).ask(produce(9), 9)
        silence(cluster)
        return cluster, asked(cluster, request, version)

    return park


def member_of(cluster: VirtualBroker) -> Member:
    member = Member(cluster)
    member.client = cluster.client(node_id=ASKED)
    return member


def joining() -> tuple[VirtualBroker, Client]:
    """Waits for a member that does not come back to join."""
    cluster = three()
    first, second = member_of(cluster), member_of(cluster)
    first.send_join()
    settle_round([first])
    second.send_join()
    return cluster, second.client


def syncing() -> tuple[VirtualBroker, Client]:
    """Waits for a leader that does not tell the assignments."""
    cluster = three()
    first, second = member_of(cluster), member_of(cluster)
    first.send_join()
    settle_round([first])
    second.send_join()
    first.send_join()
    assert second.joined().error_code == first.joined().error_code == ErrorCode.NONE
    second.send_sync()
    return cluster, second.client


def fetching() -> tuple[VirtualBroker, Client]:
    cluster = three()
    return cluster, asked(cluster, fetch(0, max_wait_ms=TIME_MS, min_bytes=1), 12)


def deleting() -> tuple[VirtualBroker, Client]:
    """Waits for followers that take longer than it has time."""
    cluster = three(f"sluice.replication.delay.ms={2 * TIME_MS}")
    cluster.client(node_id=ASKED).ask(produce(9), 9)
    cluster.advance(2 * TIME_MS)
    return cluster, asked(cluster, DELETION, 2)


def throttled() -> tuple[VirtualBroker, Client]:
    """Waits for its quota, as old clients do."""
    cluster = three("quota.producer.default=1000")
    return cluster, asked(cluster, produce(3, batch_of(15_000)), 3)


class Parked(NamedTuple):
    """How a request comes to wait, and how long it may at most."""

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
OFFSETS = OffsetDeleteRequest(
    group_id="group",
    topics=[OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
)
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
    "Produce with acks=all": Parked(plain(produce(9, acks=ALL, timeout_ms=TIME_MS), 9), TIME_MS),
    "Fetch": Parked(fetching, TIME_MS),
    "Produce that is throttled": Parked(throttled, TIME_MS),
    "DeleteRecords": Parked(deleting, TIME_MS),
    "JoinGroup": Parked(joining, REBALANCE_MS),
    "SyncGroup": Parked(syncing, REBALANCE_MS),
    "LeaveGroup": Parked(
        written(lambda: LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="m")]), 5), COMMIT_MS
    ),
    "ConsumerGroupHeartbeat": Parked(written(lambda: JOINING_CONSUMER, 1), COMMIT_MS),
    "OffsetCommit": Parked(written(commit_request, 9), COMMIT_MS),
    "OffsetFetch": Parked(written(fetch_request, 9), COMMIT_MS),
    "OffsetDelete": Parked(written(lambda: OFFSETS, 0), COMMIT_MS),
    "DeleteGroups": Parked(written(lambda: DeleteGroupsRequest(groups_names=["group"]), 2), COMMIT_MS),
    "InitProducerId": Parked(written(init_request, 5), TIMEOUT_MS),
    "AddPartitionsToTxn": Parked(in_transaction(lambda one: add_request(3, one.producer_id, one.epoch), 3), TIMEOUT_MS),
    "AddOffsetsToTxn": Parked(in_transaction(_add_offsets, 3), TIMEOUT_MS),
    "EndTxn": Parked(in_transaction(lambda one: end_request(one.producer_id, one.epoch), 4, Producer.add), TIMEOUT_MS),
    "TxnOffsetCommit": Parked(in_transaction(_commit_offsets, 4, _have_offsets), COMMIT_MS),
    "WriteTxnMarkers": Parked(plain(MARKER, 1), PEER_MS),
}
# Those that wait for an answer of another broker, which coordinates the transaction.
AT_PEER = {
    "Produce that adds its partition elsewhere": Parked(
        in_transaction(_produce, 12, coordinator=PEER), PEER_MS + TIME_MS
    ),
    "TxnOffsetCommit that adds its partition elsewhere": Parked(
        in_transaction(_commit_offsets, 5, coordinator=PEER), PEER_MS + COMMIT_MS
    ),
}


# -- what happens ------------------------------------------------------------------------------------------------------


def _stops(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.stop_broker(node_id)


def _crashes(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.stop_broker(node_id, controlled=False)


def _is_back_at_once(cluster: VirtualBroker, node_id: int) -> None:
    _crashes(cluster, node_id)
    cluster.run(cluster.cluster_server.start_broker(node_id))


def _is_cut_off(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.isolate_broker(node_id)


def _is_cut_off_and_stops(cluster: VirtualBroker, node_id: int) -> None:
    _is_cut_off(cluster, node_id)
    _stops(cluster, node_id)


def _is_cut_off_and_comes_back(cluster: VirtualBroker, node_id: int) -> None:
    _is_cut_off(cluster, node_id)
    cluster.advance(1_000)
    cluster.cluster_server.rejoin_broker(node_id)


def _leads_no_more(cluster: VirtualBroker, node_id: int) -> None:
    for topic in ("t", GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
        if cluster.partition(topic).leader == node_id:
            cluster.cluster_server.move_leader(topic, 0, ASKED + PEER - node_id)


def _goes_on(cluster: VirtualBroker, node_id: int) -> None:
    """Nothing happens."""


HAPPENINGS = {
    "goes on": _goes_on,
    "stops": _stops,
    "crashes": _crashes,
    "is back at once": _is_back_at_once,
    "is cut off": _is_cut_off,
    "is cut off and stops": _is_cut_off_and_stops,
    "is cut off and comes back": _is_cut_off_and_comes_back,
    "leads no more": _leads_no_more,
}


def has_ended(client: Client) -> bool:
    return bool(client.answers) or not client.is_open


@pytest.mark.parametrize("happens", HAPPENINGS.values(), ids=[f"its broker {what}" for what in HAPPENINGS])
@pytest.mark.parametrize("parked", (PARKED | AT_PEER).values(), ids=PARKED | AT_PEER)
def test_who_waits_is_answered_in_time_or_disconnected(
    parked: Parked, happens: Callable[[VirtualBroker, int], None]
) -> None:
    cluster, client = parked.park()
    assert not has_ended(client), "it does not wait"
    happens(cluster, ASKED)
    cluster.advance(parked.time_ms)
    assert has_ended(client)


@pytest.mark.parametrize("happens", HAPPENINGS.values(), ids=[f"the other broker {what}" for what in HAPPENINGS])
@pytest.mark.parametrize("parked", AT_PEER.values(), ids=AT_PEER)
def test_who_waits_for_what_another_broker_says_is_answered_in_time(
    parked: Parked, happens: Callable[[VirtualBroker, int], None]
) -> None:
    cluster, client = parked.park()
    assert not has_ended(client), "it does not wait"
    happens(cluster, PEER)
    cluster.advance(parked.time_ms)
    assert client.answers
    assert client.is_open


def _codes(client: Client) -> list[int]:
    return error_codes(client.answer().message)


ADDING = list(AT_PEER.values())
# What their clients try again after.
REFUSED = list(zip(ADDING, (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), strict=True))


@pytest.mark.parametrize(("parked", "code"), REFUSED, ids=AT_PEER)
def test_that_another_broker_is_gone_is_noticed_at_once(parked: Parked, code: ErrorCode) -> None:
    cluster, client = parked.park()
    _crashes(cluster, PEER)
    cluster.settle()
    assert _codes(client) == [code]


@pytest.mark.parametrize("node_id", [ASKED, PEER], ids=["one that asks", "the other"])
@pytest.mark.parametrize(("parked", "code"), REFUSED, ids=AT_PEER)
def test_an_answer_that_does_not_arrive_is_waited_for_as_long_as_brokers_wait(
    parked: Parked, code: ErrorCode, node_id: int
) -> None:
    cluster, client = parked.park()
    _is_cut_off(cluster, node_id)
    cluster.run(cluster.cluster_server.start_broker(SILENT))  # what was asked is done now
    cluster.advance(PEER_MS - 1)
    assert not has_ended(client)
    cluster.advance(1)
    assert _codes(client) == [code]


@pytest.mark.parametrize("parked", ADDING, ids=AT_PEER)
def test_an_answer_that_comes_too_late_is_not_heard(parked: Parked) -> None:
    cluster, client = parked.park()
    cluster.advance(PEER_MS)
    assert len(client.take_answers()) == 1
    cluster.run(cluster.cluster_server.start_broker(SILENT))
    cluster.advance(TIMEOUT_MS)
    assert not client.answers


@pytest.mark.parametrize("parked", ADDING, ids=AT_PEER)
def test_what_waited_for_another_broker_goes_on_with_its_answer(parked: Parked) -> None:
    cluster, client = parked.park()
    cluster.run(cluster.cluster_server.start_broker(SILENT))
    cluster.settle()
    assert _codes(client) == []
