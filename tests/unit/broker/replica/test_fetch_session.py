"""Fetch sessions: creation, incremental responses, errors, eviction and throttling."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.broker.replica.fetch_session import FetchSessionCache, PartitionRead, RequestedPartition
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.records import batch, batch_of, produce, records_of
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

INT_MAX = 2**31 - 1
VERSIONS_WITH_SESSIONS = range(7, 19)
BY_NAME_AND_BY_ID = pytest.mark.parametrize("version", [12, 13], ids=["topics by name", "topics by id"])

Offsets = Mapping[tuple[str, int], int]  # by topic and partition


class Reader:
    """A client with a fetch session that tracks only the session id and epoch."""

    def __init__(self, broker: VirtualBroker, version: int = 13) -> None:
        self.broker = broker
        self.version = version
        self.client = broker.client()
        self.ids: dict[str, bytes] = {}
        self.isolation_level = 0
        self.session_id = 0
        self.epoch = 0

    def request(
        self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None, *, max_wait_ms: int = 0
    ) -> FetchRequest:
        """Return the session's next request, which waits for one byte."""
        topics = [
            FetchTopic(
                topic=name,
                topic_id=self.id_of(name),
                partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
            for (name, index), offset in (offsets or {}).items()
        ]
        forgotten = [
            ForgottenTopic(topic=name, topic_id=self.id_of(name), partitions=[index]) for name, index in forget or []
        ]
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1 if max_wait_ms else 0,
            isolation_level=self.isolation_level,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )

    def id_of(self, name: str) -> bytes:
        """Return the topic id at the first use, as a client caches it."""
        topic = self.broker.broker.cluster.topics.get(name)
        return self.ids.setdefault(name, topic.topic_id if topic is not None else ZERO_UUID)

    def update(self, response: Any) -> Any:
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        return response

    def fetch(self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None) -> Any:
        """Return the response to one fetch, which does not wait."""
        return self.update(self.client.call(self.request(offsets, forget), self.version))

    def fetch_partitions(
        self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None
    ) -> list[Any]:
        """Return (topic, index, error, high watermark, log start) of each partition in the response to one fetch."""
        response = self.fetch(offsets, forget)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        assert response.error_code == 0
        return [
            (
                topic.topic or names[topic.topic_id],
                one.partition_index,
                one.error_code,
                one.high_watermark,
                one.log_start_offset,
            )
            for topic in response.responses
            for one in topic.partitions
        ]


@pytest.fixture
def reader(topic: Topic, broker: VirtualBroker) -> Reader:
    return Reader(broker)


def append_record(broker: VirtualBroker, topic: str = "t", partition: int = 0, size: int = 1_000) -> None:
    assert error_codes(broker.client().call(produce(9, batch_of(size), topic=topic, partition=partition), 9)) == []


def session_count(broker: VirtualBroker) -> int:
    return len(broker.broker.fetch_sessions)


# -- creation and end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS_WITH_SESSIONS)
def test_full_fetch_opens_a_session_that_returns_only_changes(broker: VirtualBroker, version: int) -> None:
    broker.topic(partitions=2)
    append_record(broker)
    reader = Reader(broker, version)
    all_partitions = [("t", 0, 0, 1, 0), ("t", 1, 0, 0, 0)]
    assert reader.fetch_partitions({("t", 0): 0, ("t", 1): 0}) == all_partitions
    assert reader.session_id > 0
    assert reader.fetch_partitions() == [("t", 0, 0, 1, 0)], "the partition is reported until the fetch offset advances"
    assert reader.fetch_partitions({("t", 0): 1}) == []
    append_record(broker, partition=1)
    assert reader.fetch_partitions() == [("t", 1, 0, 1, 0)]
    assert session_count(broker) == 1


@pytest.mark.parametrize("version", range(7))
def test_fetch_below_version_7_opens_no_session(topic: Topic, broker: VirtualBroker, version: int) -> None:
    reader = Reader(broker, version)
    assert len(reader.fetch_partitions({("t", 0): 0})) == 1
    assert session_count(broker) == 0


def test_full_fetch_with_epoch_0_replaces_the_session_and_with_epoch_minus_1_closes_it(
    reader: Reader, broker: VirtualBroker
) -> None:
    reader.fetch({("t", 0): 0})
    old = reader.session_id
    reader.epoch = 0
    reader.fetch({("t", 0): 0})
    assert reader.session_id not in (0, old)
    assert session_count(broker) == 1, "a new session replaces the old one"
    reader.epoch = -1
    assert len(reader.fetch({("t", 0): 0}).responses) == 1
    assert (reader.session_id, session_count(broker)) == (0, 0)


def test_full_fetch_without_partitions_opens_a_session(reader: Reader) -> None:
    assert reader.fetch_partitions() == []
    assert reader.session_id != 0
    assert reader.fetch_partitions({("t", 0): 0}) == [("t", 0, 0, 0, 0)]


@BY_NAME_AND_BY_ID
def test_session_without_partitions_is_closed(broker: VirtualBroker, version: int) -> None:
    broker.topic(partitions=2)
    reader = Reader(broker, version)
    reader.fetch({("t", 0): 0, ("t", 1): 0})
    assert reader.fetch_partitions(forget=[("t", 1)]) == []
    append_record(broker, partition=1)
    assert reader.fetch_partitions() == [], "a forgotten partition is not in the response"
    assert reader.fetch_partitions({("t", 0): 0}, forget=[("t", 0)]) == [("t", 0, 0, 0, 0)], (
        "the last response contains all requested partitions"
    )
    assert (reader.session_id, session_count(broker)) == (0, 0)


@BY_NAME_AND_BY_ID
def test_forgetting_an_unknown_partition_changes_nothing(broker: VirtualBroker, version: int) -> None:
    broker.topic(partitions=2)
    reader = Reader(broker, version)
    reader.fetch({("t", 0): 0})
    assert reader.fetch_partitions(forget=[("t", 1), ("elsewhere", 0)]) == []
    assert session_count(broker) == 1


# -- session errors ----------------------------------------------------------------------------------------------------


INVALID_SESSIONS = {
    "unknown session id": (1, None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    "no session id": (0, 5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    "negative session id": (-7, None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    "later epoch": (None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    "negative epoch": (None, -2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
}


@pytest.mark.parametrize("version", VERSIONS_WITH_SESSIONS)
@pytest.mark.parametrize(("other_id", "other_epoch", "code"), INVALID_SESSIONS.values(), ids=INVALID_SESSIONS)
def test_invalid_session_id_or_epoch_returns_an_error_and_changes_nothing(
    topic: Topic, broker: VirtualBroker, version: int, other_id: int | None, other_epoch: int | None, code: int
) -> None:
    reader = Reader(broker, version)
    reader.fetch({("t", 0): 0})
    request = reader.request({("t", 0): 7}, max_wait_ms=10_000)
    request.session_id = reader.session_id if other_id is None else other_id
    request.session_epoch = reader.epoch if other_epoch is None else other_epoch
    response = reader.client.call(request, version)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])
    assert reader.fetch_partitions() == []


def test_repeated_request_returns_invalid_fetch_session_epoch(reader: Reader) -> None:
    reader.fetch({("t", 0): 0})
    repeated = reader.request()
    reader.fetch()
    assert reader.client.call(repeated, 13).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize(("opened_in", "next_version"), [(12, 13), (13, 12)])
def test_session_cannot_switch_between_topic_names_and_topic_ids(opened_in: int, next_version: int) -> None:
    broker = broker_with_topic()
    reader = Reader(broker, opened_in)
    reader.fetch({("t", 0): 0})
    response = reader.client.call(reader.request(), next_version)
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)
    assert reader.fetch_partitions() == []


def test_session_epoch_wraps_around_to_1(reader: Reader, broker: VirtualBroker) -> None:
    reader.fetch({("t", 0): 0})
    session = broker.broker.fetch_sessions._sessions[reader.session_id]
    session.epoch = reader.epoch = INT_MAX
    reader.fetch()
    reader.epoch = 1
    assert reader.fetch().error_code == 0


def test_fetch_overtaken_by_the_next_fetch_of_its_session_returns_invalid_epoch(broker: VirtualBroker) -> None:
    broker.topic()
    reader, other = Reader(broker), broker.client()
    reader.fetch({("t", 0): 0})
    reader.client.send(reader.request(max_wait_ms=10_000), 13)
    overtaking = FetchRequest(session_id=reader.session_id, session_epoch=reader.epoch + 1)
    assert other.call(overtaking, 13).error_code == 0
    append_record(broker)
    message = reader.client.response().message
    assert (message.error_code, message.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, reader.session_id)
    assert message.responses == []


# -- changed partitions ------------------------------------------------------------------------------------------------


@BY_NAME_AND_BY_ID
def test_partition_is_returned_when_its_log_start_moves(topic: Topic, broker: VirtualBroker, version: int) -> None:
    append_record(broker)
    append_record(broker)
    reader = Reader(broker, version)
    reader.fetch({("t", 0): 2})
    broker.partition().log.delete_records_before(1)
    assert reader.fetch_partitions() == [("t", 0, 0, 2, 1)]
    assert reader.fetch_partitions() == []


@BY_NAME_AND_BY_ID
def test_partition_is_returned_when_its_high_watermark_moves_without_readable_records(version: int) -> None:
    broker = VirtualBroker()
    log = broker.topic().partitions[0].log
    reader = Reader(broker, version)
    reader.isolation_level = 1
    reader.fetch({("t", 0): 0})
    open_transaction = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.append(memoryview(bytearray(open_transaction)), WALL_START_MS, 0).error_code == 0
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    assert reader.fetch_partitions() == [("t", 0, 0, 1, 0)]
    assert reader.fetch_partitions() == []


@BY_NAME_AND_BY_ID
def test_partition_with_an_error_is_returned_every_time_and_once_after_its_recovery(version: int) -> None:
    broker = broker_with_topic()
    reader = Reader(broker, version)
    out_of_range = [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)]
    assert reader.fetch_partitions({("t", 0): 5}) == out_of_range
    assert reader.fetch_partitions() == out_of_range
    assert reader.fetch_partitions({("t", 0): 0}) == [("t", 0, 0, 0, 0)]
    assert reader.fetch_partitions() == []


@BY_NAME_AND_BY_ID
def test_partitions_with_returned_records_move_to_the_end_of_the_session(broker: VirtualBroker, version: int) -> None:
    broker.topic(partitions=3)
    reader = Reader(broker, version)
    reader.fetch({("t", index): 0 for index in range(3)})
    for index in range(3):
        append_record(broker, partition=index)

    def order(max_bytes: int) -> list[int]:
        request = reader.request()
        request.max_bytes = max_bytes
        response = reader.update(reader.client.call(request, version))
        return [one.partition_index for one in response.responses[0].partitions if records_of(one)]

    assert [order(1_000) for _ in range(4)] == [[0], [1], [2], [0]], "partitions with records move to the end"
    assert order(2_000) == [1, 2]
    assert order(3_000) == [0, 1, 2]


@BY_NAME_AND_BY_ID
def test_incremental_fetch_waits_for_records_in_any_partition_of_the_session(version: int) -> None:
    broker = broker_with_topic(partitions=2)
    reader = Reader(broker, version)
    reader.fetch({("t", 0): 0, ("t", 1): 0})
    reader.client.send(reader.request(max_wait_ms=500), version)
    broker.advance(200)
    append_record(broker, partition=1)
    response = reader.client.response()
    assert response.at_ms == 200
    assert [one.partition_index for one in reader.update(response.message).responses[0].partitions] == [1]
    reader.client.send(reader.request({("t", 1): 1}, max_wait_ms=500), version)
    broker.advance(500)
    response = reader.client.response()
    assert (response.at_ms, response.message.responses, response.message.session_id) == (700, [], reader.session_id)


# -- created and deleted topics ----------------------------------------------------------------------------------------


def delete(broker: VirtualBroker, topic: str = "t") -> None:
    assert error_codes(broker.client().call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)) == []


def hide(broker: VirtualBroker, topic: Topic) -> None:
    """Remove a topic from the broker's metadata."""
    del broker.broker.cluster.topics[topic.name], broker.broker.cluster.topics_by_id[topic.topic_id]


def restore(broker: VirtualBroker, topic: Topic) -> None:
    broker.broker.cluster.topics[topic.name] = broker.broker.cluster.topics_by_id[topic.topic_id] = topic


@pytest.mark.parametrize(
    ("version", "code"), [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_unknown_topic_in_a_session_is_found_after_its_creation(broker: VirtualBroker, version: int, code: int) -> None:
    topic = broker.topic()
    reader = Reader(broker, version)
    reader.id_of("t")
    hide(broker, topic)
    assert reader.fetch_partitions({("t", 0): 0}) == [("t", 0, code, -1, -1)]
    assert reader.fetch_partitions() == [("t", 0, code, -1, -1)]
    restore(broker, topic)
    assert reader.fetch_partitions() == [("t", 0, 0, 0, 0)]
    assert reader.fetch_partitions() == []


def test_session_by_name_continues_with_a_recreated_topic(topic: Topic, broker: VirtualBroker) -> None:
    append_record(broker)
    reader = Reader(broker, 12)
    reader.fetch({("t", 0): 1})
    delete(broker)
    assert reader.fetch_partitions() == [("t", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
    broker.topic()
    assert reader.fetch_partitions() == [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)]
    assert reader.fetch_partitions({("t", 0): 0}) == [("t", 0, 0, 0, 0)]


def test_session_by_id_returns_inconsistent_topic_id_for_a_recreated_topic(
    reader: Reader, broker: VirtualBroker
) -> None:
    reader.fetch({("t", 0): 0})
    delete(broker)
    unknown = [("t", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
    assert reader.fetch_partitions() == unknown, "as in Kafka: the topic id was known, but no topic has the name now"
    broker.topic()
    inconsistent = [("t", 0, ErrorCode.INCONSISTENT_TOPIC_ID, -1, -1)]
    assert reader.fetch_partitions() == inconsistent
    response = reader.client.call(reader.request(max_wait_ms=10_000), 13)
    assert error_codes(reader.update(response)) == [ErrorCode.INCONSISTENT_TOPIC_ID]
    old_id = reader.ids.pop("t")
    request = reader.request({("t", 0): 0})
    request.forgotten_topics_data = [ForgottenTopic(topic_id=old_id, partitions=[0])]
    (topic,) = reader.update(reader.client.call(request, 13)).responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (reader.ids["t"], 0)
    assert reader.fetch_partitions() == []


def test_deleting_a_topic_completes_a_waiting_fetch(reader: Reader, broker: VirtualBroker) -> None:
    reader.fetch({("t", 0): 0})
    reader.client.send(reader.request(max_wait_ms=10_000), 13)
    delete(broker)
    response = reader.client.response()
    assert (response.at_ms, error_codes(response.message)) == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])


# -- eviction ----------------------------------------------------------------------------------------------------------

TWO_MINUTES = 120_000
SLOTS = 2


def context_at(now_ms: int) -> RequestContext:
    ctx = VirtualBroker().client().connection.ctx
    ctx.now_ms = now_ms
    return ctx


def sessions_of(*in_use: tuple[int, bool, int, int]) -> tuple[FetchSessionCache, list[int]]:
    """Return a full cache of sessions given as (partition count, of a follower, opened, last used in ms)."""
    session_cache = FetchSessionCache(SLOTS, 100, Random(1))
    ids = [
        session_cache.open(context_at(opened_ms), response_partitions(partitions), privileged=privileged, by_id=False)
        for partitions, privileged, opened_ms, _ in in_use
    ]
    for session_id, (_, _, opened_ms, used_ms) in zip(ids, in_use, strict=True):
        if used_ms != opened_ms:
            request = FetchRequest(session_id=session_id, session_epoch=1)
            assert not isinstance(session_cache.resume(context_at(used_ms), request, False), ErrorCode)
    return session_cache, ids


def response_partitions(count: int) -> list[PartitionRead]:
    requested = (RequestedPartition("t", FetchPartition(partition=index)) for index in range(count))
    return [PartitionRead(one, 0, 0, 0) for one in requested]


def is_cached(session_cache: FetchSessionCache, session_id: int) -> bool:
    request = FetchRequest(session_id=session_id, session_epoch=-3)
    code = session_cache.resume(context_at(0), request, False)
    return code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


CONSUMER, FOLLOWER = False, True


@pytest.mark.parametrize(
    ("in_use", "now_ms", "new", "evicted"),
    [
        pytest.param([(5, CONSUMER, 0, 0)], 0, (1, CONSUMER), None, id="a free slot: no eviction"),
        pytest.param(
            [(5, CONSUMER, 0, 0), (5, CONSUMER, 1, 1)], TWO_MINUTES + 1, (1, CONSUMER), 0,
            id="unused for two minutes: the least recently used session is evicted",
        ),
        pytest.param(
            [(5, CONSUMER, 0, 50), (5, CONSUMER, 1, 1)], TWO_MINUTES + 2, (1, CONSUMER), 1,
            id="the least recently used session is evicted, not the oldest",
        ),
        pytest.param(
            [(1, CONSUMER, 0, 0), (1, CONSUMER, 0, 0)], TWO_MINUTES, (9, CONSUMER), "new session",
            id="unused for exactly two minutes: no eviction",
        ),
        pytest.param(
            [(5, FOLLOWER, 0, 0), (5, FOLLOWER, 1, 1)], TWO_MINUTES + 1, (1, CONSUMER), 0,
            id="a consumer evicts an unused session of a follower",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (4, CONSUMER), 1,
            id="all in use, older than two minutes: a larger session evicts the smallest",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES)], TWO_MINUTES + 2, (4, CONSUMER), 0,
            id="the smallest session is younger than two minutes: the next one is evicted",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (2, CONSUMER),
            "new session", id="a session as small as the smallest evicts none",
        ),
        pytest.param(
            [(9, CONSUMER, 0, 0), (8, CONSUMER, 0, 0)], 1, (1, FOLLOWER), 1,
            id="a follower evicts a session of a consumer of any age",
        ),
        pytest.param(
            [(9, CONSUMER, 0, 0), (1, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES, (1, FOLLOWER), 0,
            id="a session of a consumer is evicted before a smaller one of a follower",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, TWO_MINUTES + 1), (2, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (9, CONSUMER),
            "new session", id="a consumer evicts no session of a follower in use",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, 0), (2, FOLLOWER, 0, 0)], 1, (9, FOLLOWER), "new session",
            id="a follower evicts no young session of a follower",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, TWO_MINUTES + 1), (2, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (9, FOLLOWER), 0,
            id="a follower evicts an old, smaller session of a follower",
        ),
    ],
)  # fmt: skip
def test_sessions_are_evicted_by_kafkas_rules(
    in_use: list[tuple[int, bool, int, int]], now_ms: int, new: tuple[int, bool], evicted: int | str | None
) -> None:
    session_cache, ids = sessions_of(*in_use)
    opened = session_cache.open(context_at(now_ms), response_partitions(new[0]), privileged=new[1], by_id=False)
    assert (opened == 0) == (evicted == "new session")
    expected = [number for number in range(len(ids)) if number != evicted]
    assert [number for number, session_id in enumerate(ids) if is_cached(session_cache, session_id)] == expected
    assert session_cache.evictions == int(isinstance(evicted, int))
    assert session_cache.partitions == sum(in_use[number][0] for number in expected) + (new[0] if opened else 0)


def test_cache_without_slots_opens_no_session() -> None:
    broker = broker_with_topic("max.incremental.fetch.session.cache.slots=0")
    reader = Reader(broker)
    for _ in range(2):
        assert len(reader.fetch_partitions({("t", 0): 0})) == 1
        assert reader.session_id == 0


def test_sessions_have_a_limited_number_of_partitions_in_all() -> None:
    broker = broker_with_topic("sluice.fetch.session.partitions.max=5", partitions=6)
    first, second, other = Reader(broker), Reader(broker), Reader(broker)
    first.fetch({("t", 0): 0, ("t", 1): 0, ("t", 2): 0})
    second.fetch({("t", 0): 0, ("t", 1): 0})
    assert len(other.fetch_partitions({("t", 0): 0})) == 1
    assert (bool(first.session_id), bool(second.session_id), other.session_id) == (True, True, 0)
    first.fetch({("t", 2): 1}, forget=[("t", 1)])
    second.fetch({("t", 1): 1, ("t", 2): 0})
    assert second.fetch({("t", 1): 1, ("t", 3): 0}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.broker.fetch_sessions.partitions == 2
    other.fetch({("t", 0): 0, ("t", 1): 0, ("t", 2): 0})
    assert other.session_id
    broker.advance(TWO_MINUTES + 1)
    second.session_id = second.epoch = 0
    second.fetch({("t", index): 0 for index in range(5)})
    assert (bool(second.session_id), broker.broker.fetch_sessions.partitions) == (True, 5)


def test_client_without_a_slot_gets_full_responses_and_an_evicted_one_gets_an_error() -> None:
    broker = broker_with_topic("max.incremental.fetch.session.cache.slots=1")
    first, second = Reader(broker), Reader(broker)
    first.fetch({("t", 0): 0})
    assert len(second.fetch_partitions({("t", 0): 0})) == 1
    assert second.session_id == 0
    broker.advance(TWO_MINUTES + 1)
    second.fetch({("t", 0): 0})
    assert second.session_id != 0
    assert first.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# -- throttling --------------------------------------------------------------------------------------------------------

QUOTA = 1_000  # bytes/s; 10,000 bytes in the window of ten seconds
FIRST = {("t", 0): 0, ("t", 1): 0}


def with_fetch_quota(profile: str = "kafka-4.4") -> tuple[VirtualBroker, Reader]:
    """Return a broker with a fetch quota, and a client."""
    broker = broker_with_topic(f"quota.consumer.default={QUOTA}", f"quota.profile={profile}", partitions=2)
    return broker, Reader(broker, 12)


def exhaust_quota(broker: VirtualBroker, reader: Reader) -> None:
    """Charge another connection of the client more than the whole quota."""
    now_ms = broker.clock.wall_ms()
    broker.broker.quotas.fetch.record_no_throttle("ANONYMOUS", reader.client.client_id or "", 12 * QUOTA, now_ms)


def test_full_fetch_above_the_quota_opens_no_session() -> None:
    broker, reader = with_fetch_quota()
    exhaust_quota(broker, reader)
    response = reader.fetch(FIRST)
    assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
    assert response.throttle_time_ms > 0
    assert session_count(broker) == 0


def test_incremental_fetch_above_the_quota_keeps_its_session_and_returns_no_partition() -> None:
    broker, reader = with_fetch_quota()
    reader.fetch(FIRST)
    append_record(broker)
    exhaust_quota(broker, reader)
    response = reader.fetch()
    assert (response.error_code, response.session_id, response.responses) == (0, reader.session_id, [])
    assert response.throttle_time_ms > 0
    broker.advance(30_000)
    assert reader.fetch_partitions() == [("t", 0, 0, 1, 0)], (
        "the epoch advanced, and the changes that were not sent are still reported"
    )


def test_throttled_fetch_still_updates_the_partitions_of_its_session() -> None:
    broker, reader = with_fetch_quota()
    reader.fetch(FIRST)
    append_record(broker, partition=0)
    exhaust_quota(broker, reader)
    assert reader.fetch({("t", 0): 1}, forget=[("t", 1)]).throttle_time_ms > 0
    broker.advance(30_000)
    append_record(broker, partition=1)
    assert reader.fetch_partitions() == [("t", 0, 0, 1, 0)], (
        "partition 1 is forgotten, and partition 0 is read from offset 1"
    )


@pytest.mark.parametrize(("session_id", "epoch"), [(7, 1), (None, 5)], ids=["unknown session id", "invalid epoch"])
def test_throttled_fetch_hides_session_errors(session_id: int | None, epoch: int) -> None:
    broker, reader = with_fetch_quota()
    reader.fetch(FIRST)
    exhaust_quota(broker, reader)
    request = FetchRequest(session_id=reader.session_id if session_id is None else session_id, session_epoch=epoch)
    response = reader.client.call(request, 12)
    assert (response.error_code, response.session_id, response.throttle_time_ms > 0) == (0, 0, True)


def test_incremental_fetch_is_charged_the_size_of_its_response() -> None:
    broker = broker_with_topic(f"quota.consumer.default={QUOTA}", partitions=100)
    reader = Reader(broker, 12)
    assert reader.fetch({("t", index): 0 for index in range(100)}).throttle_time_ms == 0
    for _ in range(200):
        # A full response has about 4,000 bytes, so the third would exceed the quota; one without changes has 21.
        response = reader.fetch()
        assert response.throttle_time_ms == 0
        assert response.responses == []


@pytest.mark.parametrize("profile", ["kip-13", "kafka-1.1"])
def test_held_incremental_fetch_returns_the_changes(profile: str) -> None:
    broker, reader = with_fetch_quota(profile)
    reader.fetch(FIRST)
    append_record(broker)
    exhaust_quota(broker, reader)
    reader.client.send(reader.request(), 12)
    assert reader.client.responses == []
    broker.advance(60_000)
    response = reader.update(reader.client.response().message)
    assert response.throttle_time_ms > 0
    assert [one.partition_index for one in response.responses[0].partitions] == [0]
    assert reader.fetch_partitions({("t", 0): 1}) == []


@pytest.mark.parametrize("profile", ["kip-13", "kafka-1.1"])
def test_held_full_fetch_opens_its_session(profile: str) -> None:
    broker, reader = with_fetch_quota(profile)
    append_record(broker)
    exhaust_quota(broker, reader)
    reader.client.send(reader.request(FIRST), 12)
    assert reader.client.responses == []
    broker.advance(60_000)
    assert reader.update(reader.client.response().message).session_id != 0
    assert reader.fetch_partitions({("t", 0): 1}) == []
