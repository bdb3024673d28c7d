"""ShareFetch and ShareAcknowledge: sessions, long polls, acknowledgements, quotas and errors."""

from typing import Any

import pytest

from sluice.broker.journal.reader import JournalReader
from sluice.broker.metadata.topic import Topic
from sluice.journal_events import AcquisitionTimeout
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.record import iter_records
from tests.support.coordinators import move_leader
from tests.support.share_consumers import (
    ACCEPT,
    ONE_PARTITION,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    ShareConsumer,
    acquired,
    initialize,
    partition_data,
    produce_values,
)
from tests.support.virtual_broker import JOURNAL, VirtualBroker

LOCK_MS = 30_000
INVALID, NOT_FOUND = ErrorCode.INVALID_REQUEST, ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker(*ONE_PARTITION)


@pytest.fixture
def topic(broker: VirtualBroker) -> Topic:
    topic = broker.topic("t", 2)
    initialize(broker, topic)
    return topic


@pytest.fixture
def member(broker: VirtualBroker, topic: Topic) -> ShareConsumer:
    return ShareConsumer(broker, topic)


def acknowledged(member: ShareConsumer, *batches: Acknowledgement, **fields: Any) -> int:
    """Return the error of ShareAcknowledge for the only partition."""
    code: int = member.acknowledge(*batches, **fields).responses[0].partitions[0].error_code
    return code


def started(*overrides: str) -> tuple[VirtualBroker, Topic]:
    """Return a broker with topic "t", whose share state is initialized."""
    broker = VirtualBroker(*ONE_PARTITION, *overrides)
    topic = broker.topic("t")
    initialize(broker, topic)
    return broker, topic


def test_records_are_acquired_with_their_batches(broker: VirtualBroker, member: ShareConsumer) -> None:
    produce_values(broker, b"a", b"b")
    produce_values(broker, b"c")
    data = partition_data(member.fetch())
    assert [(one.first_offset, one.last_offset, one.delivery_count) for one in data.acquired_records] == [(0, 2, 1)]
    assert data.records is not None
    parts = [data.records] if isinstance(data.records, bytes | memoryview) else data.records
    stored = b"".join(map(bytes, parts))
    first = int.from_bytes(stored[8:12]) + 12
    values = [one.value for batch in (stored[:first], stored[first:]) for one in iter_records(batch)]
    assert values == [b"a", b"b", b"c"]


def test_a_fetch_waits_for_records(broker: VirtualBroker, member: ShareConsumer) -> None:
    member.fetch()
    member.client.send(member.request(max_wait_ms=500), 2)
    broker.settle()
    assert not member.client.responses
    produce_values(broker, b"a")
    assert acquired(member.client.responses.pop().message) == [(0, 0, 1)]
    member.client.send(member.request(max_wait_ms=500), 2)
    broker.advance(500)
    assert acquired(member.client.responses.pop().message) == []


ACKNOWLEDGED = {"accepted": (ACCEPT, []), "rejected": (REJECT, []), "released": (RELEASE, [(0, 1, 2)])}


@pytest.mark.parametrize(("kind", "expected"), ACKNOWLEDGED.values(), ids=ACKNOWLEDGED)
@pytest.mark.parametrize("alone", [True, False], ids=["ShareAcknowledge", "ShareFetch"])
def test_acknowledged_records(
    broker: VirtualBroker, member: ShareConsumer, kind: int, expected: list[Any], alone: bool
) -> None:
    produce_values(broker, b"a", b"b")
    assert member.acquire() == [(0, 1, 1)]
    if alone:
        assert acknowledged(member, (0, 1, [kind])) == ErrorCode.NONE
    else:
        data = partition_data(member.fetch((0, 1, [kind]), max_records=0))
        assert (data.error_code, data.acknowledge_error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert member.acquire() == expected


def test_a_waiting_member_gets_the_records_of_another(broker: VirtualBroker, topic: Topic) -> None:
    one, other = ShareConsumer(broker, topic, "one"), ShareConsumer(broker, topic, "other")
    produce_values(broker, b"a")
    one.acquire()
    other.fetch()
    for how, count in (("released", 2), ("timed out", 3), ("disconnected", 4)):
        other.client.send(other.request(max_wait_ms=2 * LOCK_MS), 2)
        broker.settle()
        assert not other.client.responses
        if how == "released":
            one.acknowledge((0, 0, [RELEASE]))
        elif how == "timed out":
            broker.advance(LOCK_MS)
        else:
            one.client.leave()
            broker.settle()
        assert acquired(other.client.responses.pop().message) == [(0, 0, count)], how
        one, other = other, one
        if how == "released":
            other.fetch()


def test_renewed_records_keep_their_lock(broker: VirtualBroker, member: ShareConsumer) -> None:
    produce_values(broker, b"a")
    member.acquire()
    broker.advance(LOCK_MS - 1)
    assert acknowledged(member, (0, 0, [RENEW]), is_renew_ack=True) == ErrorCode.NONE
    broker.advance(LOCK_MS - 1)
    assert acknowledged(member, (0, 0, [ACCEPT])) == ErrorCode.NONE
    assert member.fetch(is_renew_ack=True).error_code == INVALID, "it must not fetch at the same time"


ACKNOWLEDGEMENTS = {
    "last before first": ([(1, 0, [ACCEPT])], INVALID),
    "no types": ([(0, 1, [])], INVALID),
    "more types than records": ([(0, 1, [ACCEPT] * 3)], INVALID),
    "unknown type": ([(0, 1, [9])], INVALID),
    "a renewal without is_renew_ack": ([(0, 0, [RENEW])], INVALID),
    "unordered": ([(1, 1, [ACCEPT]), (0, 0, [ACCEPT])], INVALID),
    "never acquired": ([(5, 9, [ACCEPT])], INVALID),
    "acknowledged twice": ([(0, 0, [ACCEPT]), (0, 0, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
    "valid": ([(0, 0, [ACCEPT]), (1, 1, [RELEASE])], ErrorCode.NONE),
}


@pytest.mark.parametrize(("batches", "expected"), ACKNOWLEDGEMENTS.values(), ids=ACKNOWLEDGEMENTS)
def test_acknowledgements_are_checked(
    broker: VirtualBroker, member: ShareConsumer, batches: list[Any], expected: ErrorCode
) -> None:
    produce_values(broker, b"a", b"b")
    member.acquire()
    assert acknowledged(member, *batches) == expected
    if expected:  # all or none
        assert acknowledged(member, (0, 1, [ACCEPT])) == ErrorCode.NONE


SESSIONS = {
    "no group": ({"group_id": None}, INVALID),
    "no member": ({"member_id": ""}, INVALID),
    "a long member id": ({"member_id": "m" * 37}, INVALID),
    "a wrong epoch": ({"share_session_epoch": 5}, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
    "an unknown member": ({"member_id": "x", "share_session_epoch": 1}, NOT_FOUND),
    "nothing to close": ({"member_id": "x", "share_session_epoch": -1}, NOT_FOUND),
}


@pytest.mark.parametrize(("fields", "expected"), SESSIONS.values(), ids=SESSIONS)
def test_sessions_are_checked(member: ShareConsumer, fields: dict[str, Any], expected: ErrorCode) -> None:
    member.fetch()
    assert member.fetch(**fields).error_code == expected
    assert member.acknowledge(**fields).error_code == expected


def test_the_first_request_only_opens_a_session(member: ShareConsumer) -> None:
    assert member.acknowledge(share_session_epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.epoch = 0
    assert member.fetch((0, 0, [ACCEPT])).error_code == INVALID


def test_sessions_are_limited() -> None:
    broker, topic = started("group.share.max.share.sessions=1", "group.share.max.size=1")
    one, other = ShareConsumer(broker, topic, "one"), ShareConsumer(broker, topic, "other")
    one.fetch()
    other.client.send(other.request(max_wait_ms=200), 2)
    broker.advance(199)
    assert not other.client.responses
    broker.advance(1)
    assert other.client.responses.pop().message.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert not one.fetch(share_session_epoch=-1).error_code
    other.epoch = 0
    assert not other.fetch().error_code


def test_partitions_of_all_sessions_are_limited() -> None:
    broker = VirtualBroker(*ONE_PARTITION, "sluice.fetch.session.partitions.max=3")
    topic = broker.topic("t", 5)
    one, other = ShareConsumer(broker, topic, "one"), ShareConsumer(broker, topic, "other")
    limit = ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert one.fetch(partitions=range(4)).error_code == limit
    one.epoch = 0
    assert one.fetch(partitions=(0, 1)).error_code == ErrorCode.NONE
    assert other.fetch(partitions=(0,)).error_code == ErrorCode.NONE
    assert one.fetch(topics=one.topics({1: [], 2: []})).error_code == limit
    assert one.fetch(topics=one.topics({0: [], 1: []})).error_code == ErrorCode.NONE
    assert other.fetch(share_session_epoch=-1).error_code == ErrorCode.NONE
    assert one.fetch(topics=one.topics({2: []})).error_code == ErrorCode.NONE


def test_new_session_with_a_repeated_partition_fails(broker: VirtualBroker, topic: Topic) -> None:
    member = ShareConsumer(broker, topic, "one")
    assert member.fetch(partitions=(0, 0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(broker.broker.share_partitions.sessions) == 0


def test_all_sessions_of_a_connection_end_with_it(broker: VirtualBroker, topic: Topic) -> None:
    one, other = ShareConsumer(broker, topic, "one"), ShareConsumer(broker, topic, "other")
    other.client = one.client
    for member in (one, other):
        assert member.fetch().error_code == ErrorCode.NONE
    one.client.leave()
    broker.settle()
    assert len(broker.broker.share_partitions.sessions) == 0


def test_the_final_request_releases_records(broker: VirtualBroker, topic: Topic) -> None:
    one, other = ShareConsumer(broker, topic, "one"), ShareConsumer(broker, topic, "other")
    produce_values(broker, b"a", b"b")
    one.acquire()
    one.fetch((0, 0, [ACCEPT]), share_session_epoch=-1)
    assert other.acquire() == [(1, 1, 2)]
    assert not other.acknowledge(share_session_epoch=-1).error_code
    assert ShareConsumer(broker, topic, "third").acquire() == [(1, 1, 3)]


def test_unknown_topics_and_partitions(broker: VirtualBroker, topic: Topic) -> None:
    other = Topic("x", bytes(16), topic.config)
    assert partition_data(ShareConsumer(broker, other).fetch()).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    member = ShareConsumer(broker, topic)
    response = member.fetch(partitions=[0, 7])
    codes = {one.partition_index: one.error_code for one in response.responses[0].partitions}
    assert codes[7] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    initialized_for_another = ShareConsumer(broker, topic, group_id="other")
    assert partition_data(initialized_for_another.fetch()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_group_starts_where_its_configs_say(broker: VirtualBroker) -> None:
    topic = broker.topic("t")
    produce_values(broker, b"a", b"b")
    broker.advance(60_000)
    produce_values(broker, b"c")
    for reset, expected in (
        ("earliest", [(0, 2, 1)]),
        ("latest", []),
        ("by_duration:PT30S", []),
        ("by_duration:p25000dT1.s", [(0, 2, 1)]),  # as java.time.Duration accepts it
    ):
        group = f"group-{reset}"
        broker.broker.cluster.group_configs.configure(group, {"share.auto.offset.reset": reset})
        initialize(broker, topic, group, start_offset=-1)
        assert ShareConsumer(broker, topic, group_id=group).acquire() == expected, reset


def test_records_beyond_the_limits_are_not_acquired(broker: VirtualBroker, topic: Topic) -> None:
    for value in (b"a", b"b", b"c"):
        produce_values(broker, value, value)
    strict, lenient = ShareConsumer(broker, topic, "strict"), ShareConsumer(broker, topic, "lenient")
    assert strict.acquire(max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
    assert lenient.acquire(max_records=2, batch_size=1) == [(1, 1, 1), (2, 3, 1)]
    assert lenient.acquire(max_bytes=1) == [(4, 5, 1)]  # the first batch, however large


def test_deliveries_are_limited(broker: VirtualBroker, member: ShareConsumer) -> None:
    configs = {"share.delivery.count.limit": "2", "share.record.lock.duration.ms": "1000"}
    broker.broker.cluster.group_configs.configure("group", configs)
    produce_values(broker, b"a")
    for count in (1, 2):
        assert member.acquire() == [(0, 0, count)]
        broker.advance(1_000)
    assert member.acquire() == []


def test_the_journal_records_timeouts() -> None:
    broker, topic = started(JOURNAL)
    produce_values(broker, b"a", b"b", b"c")
    member = ShareConsumer(broker, topic)
    member.acquire()
    member.acknowledge((0, 0, [ACCEPT]))
    broker.advance(LOCK_MS)
    assert broker.cluster.journal is not None
    (event,) = JournalReader(broker.cluster.journal, broker.clock).events(kind="acquisition-timeout")
    assert isinstance(event, AcquisitionTimeout)
    assert (event.group_id, event.member_id, event.topic, event.partition) == ("group", "member", "t", 0)
    assert (event.first_offset, event.last_offset) == (0, 2)


def test_a_client_above_its_quota_gets_records_after_their_lock() -> None:
    broker, topic = started("quota.consumer.default=1000")
    member = ShareConsumer(broker, topic)
    produce_values(broker, bytes(9_000))
    assert member.acquire() == [(0, 0, 1)]
    produce_values(broker, bytes(9_000))
    response = member.fetch()
    assert response.throttle_time_ms > 0
    assert response.responses == []
    assert response.acquisition_lock_timeout_ms == LOCK_MS
    broker.advance(LOCK_MS)
    assert member.acquire() == [(0, 0, 2)]


def test_a_failed_write_has_a_message_of_the_persister(broker: VirtualBroker, topic: Topic) -> None:
    member = ShareConsumer(broker, topic)
    produce_values(broker, b"a")
    member.acquire()
    results: list[object] = []
    offsets = {topic.topic_id: {0: 0}}
    broker.broker.share_persister.initialize_state("group", offsets, 9, results.append)  # as AlterShareGroupOffsets
    broker.broker.actions.complete()
    broker.settle()
    (data,) = member.acknowledge((0, 0, [ACCEPT])).responses[0].partitions
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.error_message == f"Error in write state RPC. {ErrorCode.FENCED_STATE_EPOCH.message}"
    assert data.current_leader.leader_id == topic.partitions[0].leader


def test_a_new_leader_continues() -> None:
    cluster = VirtualBroker("sluice.brokers=3", "broker.rack=r", *ONE_PARTITION)
    topic = cluster.topic("t", 1, 3)
    partition = topic.partitions[0]
    initialize(cluster, topic)
    leader = partition.leader
    member = ShareConsumer(cluster, topic)
    member.client = cluster.client(node_id=leader)
    produce_values(cluster, b"a", b"b", b"c")
    assert member.acquire() == [(0, 2, 1)]
    assert acknowledged(member, (0, 0, [ACCEPT]), (1, 1, [RELEASE])) == ErrorCode.NONE
    move_leader(cluster, partition, leader % 3 + 1)
    response = member.fetch((2, 2, [ACCEPT]))
    data = partition_data(response)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.acknowledge_error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (partition.leader, 1)
    assert [(one.node_id, one.rack) for one in response.node_endpoints] == [(partition.leader, "r")]
    assert data.error_message is None
    member.client, member.epoch = cluster.client(node_id=partition.leader), 0
    assert member.acquire() == [(1, 1, 2), (2, 2, 1)]
