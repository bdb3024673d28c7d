"""Fetch sessions: what opens, carries on and ends them, what is answered in them, who has to go, and throttling."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import pytest

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Topic
from sluice.broker.replica.fetch_session import FetchSessionCache, RequestedPartition, ResponsePartition
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.records import batch, batch_of, produce, records_of
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker
from tests.support.wire import error_codes

INT_MAX = 2**31 - 1
OF_SESSIONS = range(7, 19)
BOTH_WAYS = pytest.mark.parametrize("version", [12, 13], ids=["topics by name", "topics by id"])

Offsets = Mapping[tuple[str, int], int]  # by topic and partition


class Reader:
    """A client with a fetch session; it notes nothing of what it is told."""

    def __init__(self, broker: VirtualBroker, version: int = 13) -> None:
        self.broker = broker
        self.version = version
        self.client = broker.client()
        self.ids: dict[str, bytes] = {}
        self.isolation_level = 0
        self.session_id = 0
        self.epoch = 0

    def request(self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None) -> FetchRequest:
        """The session's next request."""
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
            isolation_level=self.isolation_level,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )

    def id_of(self, name: str) -> bytes:
        """As a client knows it: from the first time it asked."""
        topic = self.broker.broker.cluster.topics.get(name)
        return self.ids.setdefault(name, topic.topic_id if topic is not None else ZERO_UUID)

    def take(self, response: Any) -> Any:
        """Notes the session that the answer tells of, and goes on to its next request."""
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        return response

    def ask(self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None) -> Any:
        """One fetch, answered at once."""
        return self.take(self.client.ask(self.request(offsets, forget), self.version))

    def told(self, offsets: Offsets | None = None, forget: list[tuple[str, int]] | None = None) -> list[Any]:
        """One fetch: the partitions in its answer, in order, as (topic, index, error, high watermark, log start)."""
        response = self.ask(offsets, forget)
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


def fill(broker: VirtualBroker, topic: str = "t", partition: int = 0, size: int = 1_000) -> None:
    """One record of this size more."""
    assert error_codes(broker.client().ask(produce(9, batch_of(size), topic=topic, partition=partition), 9)) == []


def sessions(broker: VirtualBroker) -> int:
    return len(broker.broker.fetch_sessions)


# -- beginning and end -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OF_SESSIONS)
def test_a_full_fetch_opens_a_session_in_which_only_news_is_told(version: int) -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    fill(broker)
    reader = Reader(broker, version)
    everything = [("t", 0, 0, 1, 0), ("t", 1, 0, 0, 0)]
    assert reader.told({("t", 0): 0, ("t", 1): 0}) == everything
    assert reader.session_id > 0
    assert reader.told() == [("t", 0, 0, 1, 0)], "the record is not read until the client asks for the one after it"
    assert reader.told({("t", 0): 1}) == []
    fill(broker, partition=1)
    assert reader.told() == [("t", 1, 0, 1, 0)]
    assert sessions(broker) == 1


@pytest.mark.parametrize("version", range(7))
def test_before_version_7_there_are_no_sessions(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker, version)
    assert len(reader.told({("t", 0): 0})) == 1
    assert sessions(broker) == 0


def test_a_full_fetch_of_no_session_opens_none_and_one_of_a_session_ends_it() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker)
    reader.ask({("t", 0): 0})
    old = reader.session_id
    reader.epoch = 0
    reader.ask({("t", 0): 0})
    assert reader.session_id not in (0, old)
    assert sessions(broker) == 1, "a new one, in place of the old one"
    reader.epoch = -1
    assert len(reader.ask({("t", 0): 0}).responses) == 1
    assert (reader.session_id, sessions(broker)) == (0, 0)


def test_a_session_opens_of_nothing_too() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker)
    assert reader.told() == []
    assert reader.session_id != 0
    assert reader.told({("t", 0): 0}) == [("t", 0, 0, 0, 0)]


@BOTH_WAYS
def test_a_session_that_forgot_everything_ends(version: int) -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    reader = Reader(broker, version)
    reader.ask({("t", 0): 0, ("t", 1): 0})
    assert reader.told(forget=[("t", 1)]) == []
    fill(broker, partition=1)
    assert reader.told() == [], "nothing is told of what was forgotten"
    assert reader.told({("t", 0): 0}, forget=[("t", 0)]) == [("t", 0, 0, 0, 0)], "the last request is answered in full"
    assert (reader.session_id, sessions(broker)) == (0, 0)


@BOTH_WAYS
def test_forgetting_what_is_not_in_the_session_changes_nothing(version: int) -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    reader = Reader(broker, version)
    reader.ask({("t", 0): 0})
    assert reader.told(forget=[("t", 1), ("elsewhere", 0)]) == []
    assert sessions(broker) == 1


# -- errors of a session -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OF_SESSIONS)
@pytest.mark.parametrize(
    ("other_id", "other_epoch", "code"),
    [
        pytest.param(1, None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, id="another id"),
        pytest.param(0, 5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, id="no id"),
        pytest.param(-7, None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, id="a negative id"),
        pytest.param(None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH, id="a later epoch"),
        pytest.param(None, -2, ErrorCode.INVALID_FETCH_SESSION_EPOCH, id="a negative epoch"),
    ],
)
def test_a_request_that_fits_no_session_is_an_error_and_changes_nothing(
    version: int, other_id: int | None, other_epoch: int | None, code: int
) -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker, version)
    reader.ask({("t", 0): 0})
    request = reader.request({("t", 0): 7})
    request.max_wait_ms = 10_000
    request.session_id = reader.session_id if other_id is None else other_id
    request.session_epoch = reader.epoch if other_epoch is None else other_epoch
    response = reader.client.ask(request, version)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])
    assert reader.told() == []


def test_a_request_that_comes_again_is_noticed() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker)
    reader.ask({("t", 0): 0})
    again = reader.request()
    reader.ask()
    assert reader.client.ask(again, 13).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize(("opened_in", "then"), [(12, 13), (13, 12)])
def test_a_session_keeps_to_names_or_ids(opened_in: int, then: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker, opened_in)
    reader.ask({("t", 0): 0})
    response = reader.client.ask(reader.request(), then)
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)
    assert reader.told() == []


def test_epochs_go_on_from_1_after_the_largest() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker)
    reader.ask({("t", 0): 0})
    session = broker.broker.fetch_sessions._sessions[reader.session_id]
    session.epoch = reader.epoch = INT_MAX
    reader.ask()
    reader.epoch = 1
    assert reader.ask().error_code == 0


def test_of_two_requests_of_a_session_at_a_time_the_first_is_overtaken() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader, other = Reader(broker), broker.client()
    reader.ask({("t", 0): 0})
    waits = reader.request()
    waits.max_wait_ms, waits.min_bytes = 10_000, 1
    reader.client.send(waits, 13)
    overtakes = FetchRequest(session_id=reader.session_id, session_epoch=reader.epoch + 1)
    assert other.ask(overtakes, 13).error_code == 0
    fill(broker)
    message = reader.client.answer().message
    assert (message.error_code, message.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, reader.session_id)
    assert message.responses == []


# -- what is new -------------------------------------------------------------------------------------------------------


@BOTH_WAYS
def test_a_partition_is_told_of_when_its_log_start_moves(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    fill(broker)
    fill(broker)
    reader = Reader(broker, version)
    reader.ask({("t", 0): 2})
    broker.partition().log.delete_records_before(1)
    assert reader.told() == [("t", 0, 0, 2, 1)]
    assert reader.told() == []


@BOTH_WAYS
def test_a_partition_is_told_of_when_its_high_watermark_moves_though_there_is_nothing_to_read(version: int) -> None:
    broker = VirtualBroker()
    log = broker.topic().partitions[0].log
    reader = Reader(broker, version)
    reader.isolation_level = 1
    reader.ask({("t", 0): 0})
    open_transaction = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.append(memoryview(bytearray(open_transaction)), WALL_START_MS, 0).error_code == 0
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    assert reader.told() == [("t", 0, 0, 1, 0)]
    assert reader.told() == []


@BOTH_WAYS
def test_a_partition_that_fails_is_told_of_every_time_and_once_more_when_it_is_well(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker, version)
    out_of_range = [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)]
    assert reader.told({("t", 0): 5}) == out_of_range
    assert reader.told() == out_of_range
    assert reader.told({("t", 0): 0}) == [("t", 0, 0, 0, 0)]
    assert reader.told() == []


@BOTH_WAYS
def test_partitions_that_had_records_go_to_the_end(version: int) -> None:
    broker = VirtualBroker()
    broker.topic(partitions=3)
    reader = Reader(broker, version)
    reader.ask({("t", index): 0 for index in range(3)})
    for index in range(3):
        fill(broker, partition=index)

    def order(max_bytes: int) -> list[int]:
        request = reader.request()
        request.max_bytes = max_bytes
        response = reader.take(reader.client.ask(request, version))
        return [one.partition_index for one in response.responses[0].partitions if records_of(one)]

    assert [order(1_000) for _ in range(4)] == [[0], [1], [2], [0]], "each gets its turn"
    assert order(2_000) == [1, 2]
    assert order(3_000) == [0, 1, 2]


@BOTH_WAYS
def test_a_fetch_in_a_session_waits_for_all_its_partitions(version: int) -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    reader = Reader(broker, version)
    reader.ask({("t", 0): 0, ("t", 1): 0})
    request = reader.request()
    request.max_wait_ms, request.min_bytes = 500, 1
    reader.client.send(request, version)
    broker.advance(200)
    fill(broker, partition=1)
    answer = reader.client.answer()
    assert answer.at_ms == 200
    assert [one.partition_index for one in reader.take(answer.message).responses[0].partitions] == [1]
    request = reader.request({("t", 1): 1})
    request.max_wait_ms, request.min_bytes = 500, 1
    reader.client.send(request, version)
    broker.advance(500)
    answer = reader.client.answer()
    assert (answer.at_ms, answer.message.responses, answer.message.session_id) == (700, [], reader.session_id)


# -- topics that come and go -------------------------------------------------------------------------------------------


def delete(broker: VirtualBroker, topic: str = "t") -> None:
    assert error_codes(broker.client().ask(DeleteTopicsRequest(topic_names=[topic]), 5)) == []


def hide(broker: VirtualBroker, topic: Topic) -> None:
    """Makes a topic one that the broker has not heard of yet."""
    del broker.broker.cluster.topics[topic.name], broker.broker.cluster.topics_by_id[topic.topic_id]


def show(broker: VirtualBroker, topic: Topic) -> None:
    broker.broker.cluster.topics[topic.name] = broker.broker.cluster.topics_by_id[topic.topic_id] = topic


@pytest.mark.parametrize(
    ("version", "code"), [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_a_topic_that_is_not_known_yet_is_found_later(version: int, code: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    reader = Reader(broker, version)
    reader.id_of("t")
    hide(broker, topic)
    assert reader.told({("t", 0): 0}) == [("t", 0, code, -1, -1)]
    assert reader.told() == [("t", 0, code, -1, -1)]
    show(broker, topic)
    assert reader.told() == [("t", 0, 0, 0, 0)]
    assert reader.told() == []


def test_a_session_by_name_goes_on_with_the_topic_of_that_name() -> None:
    broker = VirtualBroker()
    broker.topic()
    fill(broker)
    reader = Reader(broker, 12)
    reader.ask({("t", 0): 1})
    delete(broker)
    assert reader.told() == [("t", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
    broker.topic()
    assert reader.told() == [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)]
    assert reader.told({("t", 0): 0}) == [("t", 0, 0, 0, 0)]


def test_a_session_by_id_is_told_that_the_name_is_another_topics_now() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker, 13)
    reader.ask({("t", 0): 0})
    delete(broker)
    gone = [("t", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
    assert reader.told() == gone, "as in Kafka: the id was known, now there is no topic of that name"
    broker.topic()
    inconsistent = [("t", 0, ErrorCode.INCONSISTENT_TOPIC_ID, -1, -1)]
    assert reader.told() == inconsistent
    request = reader.request()
    request.max_wait_ms, request.min_bytes = 10_000, 1
    assert error_codes(reader.take(reader.client.ask(request, 13))) == [ErrorCode.INCONSISTENT_TOPIC_ID]
    old_id = reader.ids.pop("t")
    request = reader.request({("t", 0): 0})
    request.forgotten_topics_data = [ForgottenTopic(topic_id=old_id, partitions=[0])]
    (topic,) = reader.take(reader.client.ask(request, 13)).responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (reader.ids["t"], 0)
    assert reader.told() == []


def test_a_topic_that_is_deleted_ends_the_wait() -> None:
    broker = VirtualBroker()
    broker.topic()
    reader = Reader(broker)
    reader.ask({("t", 0): 0})
    request = reader.request()
    request.max_wait_ms, request.min_bytes = 10_000, 1
    reader.client.send(request, 13)
    delete(broker)
    answer = reader.client.answer()
    assert (answer.at_ms, error_codes(answer.message)) == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])


# -- who has to go -----------------------------------------------------------------------------------------------------

TWO_MINUTES = 120_000
SLOTS = 2


@cache
def no_topics() -> MetadataCache:
    return VirtualBroker().broker.metadata


def sessions_of(*in_use: tuple[int, bool, int, int]) -> tuple[FetchSessionCache, list[int]]:
    """A cache whose slots are taken by these: how many partitions, a follower's or not, opened, and last used (ms)."""
    cluster = no_topics()
    sessions = FetchSessionCache(SLOTS, Random(1))
    ids = []
    for partitions, privileged, opened_ms, _ in in_use:
        ids.append(sessions.open(told(partitions), opened_ms, privileged=privileged, by_id=False))
    for session_id, (_, _, opened_ms, used_ms) in zip(ids, in_use, strict=True):
        if used_ms != opened_ms:
            request = FetchRequest(session_id=session_id, session_epoch=1)
            assert not isinstance(sessions.resume(request, False, used_ms, cluster), ErrorCode)
    return sessions, ids


def told(partitions: int) -> list[ResponsePartition]:
    wanted = [RequestedPartition("t", FetchPartition(partition=index), no_topics()) for index in range(partitions)]
    return [ResponsePartition(item, 0, 0, False) for item in wanted]


def is_there(sessions: FetchSessionCache, session_id: int) -> bool:
    request = FetchRequest(session_id=session_id, session_epoch=-3)
    code = sessions.resume(request, False, 0, no_topics())
    return code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


CONSUMER, FOLLOWER = False, True


@pytest.mark.parametrize(
    ("in_use", "now_ms", "new", "goes"),
    [
        pytest.param([(5, CONSUMER, 0, 0)], 0, (1, CONSUMER), None, id="there is room: nobody"),
        pytest.param(
            [(5, CONSUMER, 0, 0), (5, CONSUMER, 1, 1)], TWO_MINUTES + 1, (1, CONSUMER), 0,
            id="not used for two minutes: the one that was not for longest, however small the new one",
        ),
        pytest.param(
            [(5, CONSUMER, 0, 50), (5, CONSUMER, 1, 1)], TWO_MINUTES + 2, (1, CONSUMER), 1,
            id="not used for longest, though opened later",
        ),
        pytest.param(
            [(1, CONSUMER, 0, 0), (1, CONSUMER, 0, 0)], TWO_MINUTES, (9, CONSUMER), "the new one",
            id="two minutes are not more than two minutes",
        ),
        pytest.param(
            [(5, FOLLOWER, 0, 0), (5, FOLLOWER, 1, 1)], TWO_MINUTES + 1, (1, CONSUMER), 0,
            id="even a follower's that was not used goes for a consumer's",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (4, CONSUMER), 1,
            id="used for more than two minutes: the smallest goes for a larger one",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES)], TWO_MINUTES + 2, (4, CONSUMER), 0,
            id="the smallest is too young",
        ),
        pytest.param(
            [(3, CONSUMER, 0, TWO_MINUTES + 1), (2, CONSUMER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (2, CONSUMER),
            "the new one", id="one as small as the smallest gets no place",
        ),
        pytest.param(
            [(9, CONSUMER, 0, 0), (8, CONSUMER, 0, 0)], 1, (1, FOLLOWER), 1,
            id="any consumer's, however young, goes for a follower's",
        ),
        pytest.param(
            [(9, CONSUMER, 0, 0), (1, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES, (1, FOLLOWER), 0,
            id="a large consumer's before a small follower's",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, TWO_MINUTES + 1), (2, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (9, CONSUMER),
            "the new one", id="no follower's in use goes for a consumer's",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, 0), (2, FOLLOWER, 0, 0)], 1, (9, FOLLOWER), "the new one",
            id="no young follower's goes for a follower's",
        ),
        pytest.param(
            [(1, FOLLOWER, 0, TWO_MINUTES + 1), (2, FOLLOWER, 0, TWO_MINUTES + 1)], TWO_MINUTES + 2, (9, FOLLOWER), 0,
            id="an old small follower's goes for a larger follower's",
        ),
    ],
)  # fmt: skip
def test_one_session_goes_for_another_by_kafka_s_rules(
    in_use: list[tuple[int, bool, int, int]], now_ms: int, new: tuple[int, bool], goes: int | str | None
) -> None:
    sessions, ids = sessions_of(*in_use)
    opened = sessions.open(told(new[0]), now_ms, privileged=new[1], by_id=False)
    assert (opened == 0) == (goes == "the new one")
    expected = [number for number in range(len(ids)) if number != goes]
    assert [number for number, session_id in enumerate(ids) if is_there(sessions, session_id)] == expected
    assert sessions.evictions == int(isinstance(goes, int))
    assert sessions.partitions == sum(in_use[number][0] for number in expected) + (new[0] if opened else 0)


def test_without_slots_nobody_has_a_session() -> None:
    broker = VirtualBroker("max.incremental.fetch.session.cache.slots=0")
    broker.topic()
    reader = Reader(broker)
    for _ in range(2):
        assert len(reader.told({("t", 0): 0})) == 1
        assert reader.session_id == 0


def test_a_client_that_got_no_place_goes_on_in_full_and_one_that_lost_it_is_told() -> None:
    broker = VirtualBroker("max.incremental.fetch.session.cache.slots=1")
    broker.topic()
    first, second = Reader(broker), Reader(broker)
    first.ask({("t", 0): 0})
    assert len(second.told({("t", 0): 0})) == 1
    assert second.session_id == 0
    broker.advance(TWO_MINUTES + 1)
    second.ask({("t", 0): 0})
    assert second.session_id != 0
    assert first.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# -- throttling --------------------------------------------------------------------------------------------------------

QUOTA = 1_000  # bytes/s; ten times that within the window
FIRST = {("t", 0): 0, ("t", 1): 0}


def over_quota(profile: str = "kafka-4.4") -> tuple[VirtualBroker, Reader]:
    """A client whose next fetch of records is over quota by one second and more, and which has a session."""
    broker = VirtualBroker(f"quota.consumer.default={QUOTA}", f"quota.profile={profile}")
    broker.topic(partitions=2)
    return broker, Reader(broker, 12)


def use_up(broker: VirtualBroker, reader: Reader) -> None:
    """Another connection of the same client takes all it may have."""
    now_ms = broker.clock.wall_ms()
    broker.broker.quotas.fetch.record_no_throttle("ANONYMOUS", reader.client.client_id or "", 12 * QUOTA, now_ms)


def test_a_full_fetch_over_quota_opens_no_session() -> None:
    broker, reader = over_quota()
    use_up(broker, reader)
    response = reader.ask(FIRST)
    assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
    assert response.throttle_time_ms > 0
    assert sessions(broker) == 0


def test_an_incremental_fetch_over_quota_keeps_its_session_and_is_told_nothing() -> None:
    broker, reader = over_quota()
    reader.ask(FIRST)
    fill(broker)
    use_up(broker, reader)
    response = reader.ask()
    assert (response.error_code, response.session_id, response.responses) == (0, reader.session_id, [])
    assert response.throttle_time_ms > 0
    broker.advance(30_000)
    assert reader.told() == [("t", 0, 0, 1, 0)], "the epoch went on, and what was not sent is still news"


def test_a_throttled_request_changes_its_session_s_partitions_all_the_same() -> None:
    broker, reader = over_quota()
    reader.ask(FIRST)
    fill(broker, partition=0)
    use_up(broker, reader)
    assert reader.ask({("t", 0): 1}, forget=[("t", 1)]).throttle_time_ms > 0
    broker.advance(30_000)
    fill(broker, partition=1)
    assert reader.told() == [("t", 0, 0, 1, 0)], "partition 1 is forgotten, and 0 is read from 1 on"


@pytest.mark.parametrize(("session_id", "epoch"), [(7, 1), (None, 5)], ids=["another id", "another epoch"])
def test_a_throttle_hides_the_error_of_a_session(session_id: int | None, epoch: int) -> None:
    broker, reader = over_quota()
    reader.ask(FIRST)
    use_up(broker, reader)
    request = FetchRequest(session_id=reader.session_id if session_id is None else session_id, session_epoch=epoch)
    response = reader.client.ask(request, 12)
    assert (response.error_code, response.session_id, response.throttle_time_ms > 0) == (0, 0, True)


def test_a_session_is_charged_for_what_its_answer_has() -> None:
    broker = VirtualBroker(f"quota.consumer.default={QUOTA}")
    broker.topic(partitions=100)
    reader = Reader(broker, 12)
    assert reader.ask({("t", index): 0 for index in range(100)}).throttle_time_ms == 0
    for _ in range(200):
        # A full answer has about 4,000 bytes, and the third would be over quota; one without news has 21.
        response = reader.ask()
        assert response.throttle_time_ms == 0
        assert response.responses == []


@pytest.mark.parametrize("profile", ["kip-13", "kafka-1.1"])
def test_a_fetch_in_a_session_that_is_held_is_answered_with_its_news(profile: str) -> None:
    broker, reader = over_quota(profile)
    reader.ask(FIRST)
    fill(broker)
    use_up(broker, reader)
    reader.client.send(reader.request(), 12)
    assert reader.client.answers == []
    broker.advance(60_000)
    response = reader.take(reader.client.answer().message)
    assert response.throttle_time_ms > 0
    assert [one.partition_index for one in response.responses[0].partitions] == [0]
    assert reader.told({("t", 0): 1}) == []


@pytest.mark.parametrize("profile", ["kip-13", "kafka-1.1"])
def test_a_full_fetch_that_is_held_opens_its_session(profile: str) -> None:
    broker, reader = over_quota(profile)
    fill(broker)
    use_up(broker, reader)
    reader.client.send(reader.request(FIRST), 12)
    assert reader.client.answers == []
    broker.advance(60_000)
    assert reader.take(reader.client.answer().message).session_id != 0
    assert reader.told({("t", 0): 1}) == []
