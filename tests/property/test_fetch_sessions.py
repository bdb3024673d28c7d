"""Clients with fetch sessions under all operations, in virtual time.

The model is a client's state: its positions, and a picture of each partition built only from the responses of its
session. After every response, the picture must equal a full fetch by another client at the same moment. A response must
not repeat what the client knows, and the records must be those of the log, in order, without gaps or duplicates.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Topic
from sluice.broker.replica.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import batch_bounds
from sluice.protocol.records.record import Record, iter_records
from tests.support.records import batch, produce, records_of
from tests.support.virtual_broker import VirtualBroker

NAMES = ["a", "b"]
PARTITIONS = 2
VERSIONS = (12, 13, 18)  # with topic names, with topic ids
SLOTS = 2  # fewer than readers
NAME = st.sampled_from(NAMES)
INDEX = st.integers(0, PARTITIONS - 1)
READER = st.integers(0, len(VERSIONS) - 1)
QUOTA = 2_000  # bytes/s
MAX_WAIT_MS = 500
TWO_MINUTES = 120_000
# With topic ids, a session reports that a topic has another name, where a single fetch only returns UNKNOWN_TOPIC_ID.
BY_ID_GONE = {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID}

Key = tuple[str | bytes, int]  # topic name or id, and partition
Place = tuple[str, int]


class Picture(NamedTuple):
    """A client's view of a partition."""

    error_code: int
    high_watermark: int
    log_start_offset: int


class Flight(NamedTuple):
    """A pending request."""

    full: bool
    offsets: dict[Key, int]  # of the whole session, with this request
    added: set[Key]
    is_lost: bool  # the client never reads the response


class Reader:
    """A correct client: it sends what has changed, and starts a new session after an error."""

    def __init__(self, broker: VirtualBroker, version: int) -> None:
        self.broker = broker
        self.version = version
        self.client = broker.client("reader")
        self.wanted: dict[Place, int] = {}  # positions
        self.ids: dict[str, bytes] = {}
        self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH
        self.offsets: dict[Key, int] = {}  # partitions of the session
        self.pictures: dict[Key, Picture] = {}
        self.flight: Flight | None = None
        self.created: set[str | bytes] = set()  # topics, since the request was sent
        self.missed_a_response = False  # in this session

    def key(self, place: Place) -> Key:
        name, index = place
        return (self.ids.get(name, bytes(16)) if self.version >= 13 else name), index

    def fetch(self, max_bytes: int, max_wait_ms: int, *, is_lost: bool = False) -> None:
        """Send the next request, unless one is pending."""
        if self.flight is not None:
            return
        offsets = {self.key(place): offset for place, offset in self.wanted.items()}
        full = self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        known = {} if full else self.offsets
        named = {key: offset for key, offset in offsets.items() if known.get(key) != offset}
        request = request_of(named, max_bytes, max_wait_ms)
        request.session_id, request.session_epoch = self.session_id, self.epoch
        request.forgotten_topics_data = [
            ForgottenTopic(**topic_of(topic), partitions=[index])
            for topic, index in known
            if (topic, index) not in offsets
        ]
        self.flight = Flight(full, offsets, offsets.keys() - known.keys(), is_lost)
        self.created = set()
        self.offsets = offsets
        self.client.send(request, self.version)

    def take(self, message: Any) -> dict[Key, PartitionData] | None:
        """Process a response; return its partitions, or None for an error."""
        flight, self.flight = self.flight, None
        assert flight is not None
        if flight.is_lost:
            self.missed_a_response = not flight.full
            return None
        if flight.full:
            self.missed_a_response = False
        elif self.missed_a_response and not message.throttle_time_ms:
            assert message.error_code, "the broker did not notice the missing session epoch"
        if message.error_code:
            assert message.error_code in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ), message
            assert not flight.full
            assert message.responses == []
            if message.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.epoch = INITIAL_EPOCH
            return None
        if message.session_id == NO_SESSION:
            self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH
        else:
            assert flight.full or message.session_id == self.session_id
            self.session_id, self.epoch = message.session_id, self.epoch + 1
        if message.throttle_time_ms:
            assert message.responses == []
            return None
        received = by_key(message)
        if flight.full:
            assert received.keys() == flight.offsets.keys()
            self.pictures = {}
        self._look(flight, received)
        return received

    def _look(self, flight: Flight, received: Mapping[Key, PartitionData]) -> None:
        assert received.keys() <= flight.offsets.keys(), "the response has a forgotten partition"
        assert flight.added <= received.keys(), "a new partition of the session is missing"
        for key, data in received.items():
            picture = Picture(data.error_code, data.high_watermark, data.log_start_offset)
            news = key in flight.added or picture != self.pictures.get(key) or data.error_code or records_of(data)
            assert news, f"{key} was returned without a change: {picture}"
            self.pictures[key] = picture
        self.pictures = {key: picture for key, picture in self.pictures.items() if key in flight.offsets}


class FetchSessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.broker = VirtualBroker(
            "connections.max.idle.ms=-1",  # the test skips hours
            f"max.incremental.fetch.session.cache.slots={SLOTS}",
            f"quota.consumer.override=reader:{QUOTA}",
        )
        self.admin = self.broker.client("admin")
        self.values: dict[bytes, list[list[bytes | None]]] = {}  # topic id -> all values ever written, by partition
        self.written = 0
        self.readers = [Reader(self.broker, version) for version in VERSIONS]
        self.create("a")
        for number, reader in enumerate(self.readers):
            self.learn_ids(number)
            reader.wanted = {("a", index): 0 for index in range(PARTITIONS)}

    # -- topics --------------------------------------------------------------------------------------------------------

    @rule(name=NAME)
    def create(self, name: str) -> None:
        topic = self.broker.broker.cluster.create(NewTopic(name, PARTITIONS))
        if isinstance(topic, Topic):
            self.values[topic.topic_id] = [[] for _ in range(PARTITIONS)]
            for reader in self.readers:
                reader.created.add(name)

    @rule(name=NAME)
    def delete(self, name: str) -> None:
        self.admin.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)

    @rule(name=NAME)
    def replace(self, name: str) -> None:
        self.delete(name)
        self.picture_equals_a_full_fetch()
        self.create(name)

    @rule(name=NAME, index=INDEX, count=st.integers(1, 3), size=st.sampled_from([1, 400]))
    def write(self, name: str, index: int, count: int, size: int) -> None:
        topic = self.broker.broker.cluster.topics.get(name)
        if topic is not None:
            values = [f"{self.written + number}".encode().ljust(size) for number in range(count)]
            self.written += count
            self.admin.call(produce(9, batch(*values), topic=name, partition=index), 9)
            self.values[topic.topic_id][index] += values

    @rule()
    def delete_records(self) -> None:
        """Delete half of every partition, a change without records."""
        for topic in self.broker.broker.cluster.topics.values():
            for log in (partition.log for partition in topic.partitions):
                log.delete_records_before((log.log_start_offset + log.high_watermark + 1) // 2)

    # -- readers -------------------------------------------------------------------------------------------------------

    @rule(reader=READER, name=NAME, index=INDEX, offset=st.integers(0, 4))
    def assign_or_seek(self, reader: int, name: str, index: int, offset: int) -> None:
        self.readers[reader].wanted[name, index] = offset

    @rule(reader=READER, name=NAME, index=INDEX)
    def unassign(self, reader: int, name: str, index: int) -> None:
        self.readers[reader].wanted.pop((name, index), None)

    @rule(reader=READER)
    def learn_ids(self, reader: int) -> None:
        topics = self.broker.broker.cluster.topics
        self.readers[reader].ids = {name: topic.topic_id for name, topic in topics.items()}

    @rule(max_bytes=st.sampled_from([1, 600, 1 << 20]))
    def fetch(self, max_bytes: int) -> None:
        for reader in self.readers:
            reader.fetch(max_bytes, 0)

    @rule(times=st.integers(2, 4))
    def catch_up(self, times: int) -> None:
        for _ in range(times):
            self.fetch(1 << 20)
            self.picture_equals_a_full_fetch()

    @rule()
    def fetch_over_quota(self) -> None:
        now_ms = self.broker.clock.wall_ms()
        self.broker.broker.quotas.fetch.record_no_throttle("ANONYMOUS", "reader", 12 * QUOTA, now_ms)
        self.fetch(1 << 20)

    @rule(reader=READER)
    def fetch_and_wait(self, reader: int) -> None:
        self.readers[reader].fetch(1 << 20, MAX_WAIT_MS)

    @rule()
    def fetch_and_lose_the_responses(self) -> None:
        for reader in self.readers:
            reader.fetch(1 << 20, 0, is_lost=True)

    @rule(reader=READER)
    def leave_the_session(self, reader: int) -> None:
        if self.readers[reader].flight is None:
            self.readers[reader].epoch = INITIAL_EPOCH

    @rule(reader=READER)
    def evict(self, reader: int) -> None:
        self.broker.broker.fetch_sessions.close(self.readers[reader].session_id)

    @rule(ms=st.sampled_from([100, MAX_WAIT_MS, 15_000, TWO_MINUTES + 1]))
    def let_time_pass(self, ms: int) -> None:
        self.broker.advance(ms)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def picture_equals_a_full_fetch(self) -> None:
        self.broker.settle()
        for reader in self.readers:
            for response in reader.client.take_responses():
                flight = reader.flight
                received = reader.take(response.message)
                if received is not None and flight is not None:
                    self.check_pictures(reader, flight)
                    self.check_records(reader, flight, received)

    @invariant()
    def sessions_do_not_exceed_the_slots(self) -> None:
        assert len(self.broker.broker.fetch_sessions) <= SLOTS

    def check_pictures(self, reader: Reader, flight: Flight) -> None:
        whole = by_key(self.admin.call(request_of(flight.offsets, 1 << 20, 0), reader.version))
        assert reader.pictures.keys() == whole.keys()
        for key, data in whole.items():
            expected = Picture(data.error_code, data.high_watermark, data.log_start_offset)
            if data.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                assert reader.pictures[key].error_code in BY_ID_GONE
                expected = expected._replace(error_code=reader.pictures[key].error_code)
            # As in Kafka, a Fetch that waits for other partitions has the errors of its beginning.
            if key[0] in reader.created and reader.pictures[key].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            assert reader.pictures[key] == expected, f"{key} at {flight.offsets[key]}"

    def check_records(self, reader: Reader, flight: Flight, received: Mapping[Key, PartitionData]) -> None:
        cluster = self.broker.broker.cluster
        for place, position in list(reader.wanted.items()):
            key = reader.key(place)
            data = received.get(key)
            if data is None or flight.offsets.get(key) != position:
                continue
            topic = cluster.topics[key[0]] if isinstance(key[0], str) and key[0] in cluster.topics else None
            topic = topic or (cluster.topics_by_id.get(key[0]) if isinstance(key[0], bytes) else None)
            for record in records(data):
                if record.offset < position:
                    continue  # earlier records of the same batch
                assert topic is not None
                assert record.offset == position, "a record is missing or repeated"
                assert record.value == self.values[topic.topic_id][place[1]][position]
                position += 1
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and topic is not None:
                position = topic.partitions[place[1]].log.log_start_offset
            reader.wanted[place] = position

    def teardown(self) -> None:
        """In the end every reader gets every record: none starves, and no session is stuck."""
        topics = self.broker.broker.cluster.topics
        for reader in self.readers:
            reader.wanted = {place: offset for place, offset in reader.wanted.items() if place[0] in topics}
            reader.ids = {name: topic.topic_id for name, topic in topics.items()}
        for _ in range(60):
            for reader in self.readers:
                reader.fetch(600, 0)
            self.broker.advance(15_000)
            self.picture_equals_a_full_fetch()
        for reader in self.readers:
            ends = {(name, index): topics[name].partitions[index].log.log_end_offset for name, index in reader.wanted}
            assert reader.wanted == ends


def request_of(offsets: Mapping[Key, int], max_bytes: int, max_wait_ms: int) -> FetchRequest:
    """Return a full fetch of these partitions."""
    topics = [
        FetchTopic(
            **topic_of(topic),
            partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)],
        )
        for (topic, index), offset in offsets.items()
    ]
    return FetchRequest(max_bytes=max_bytes, max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)


def topic_of(topic: str | bytes) -> dict[str, Any]:
    return {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}


def by_key(message: Any) -> dict[Key, PartitionData]:
    """Return the partitions of a response, each of which occurs once."""
    found: dict[Key, PartitionData] = {}
    for topic in message.responses:
        for data in topic.partitions:
            key = (topic.topic or topic.topic_id, data.partition_index)
            assert key not in found
            found[key] = data
    return found


def records(data: PartitionData) -> list[Record]:
    view = memoryview(records_of(data))
    return [
        record for position, size, _ in batch_bounds(view) for record in iter_records(view[position : position + size])
    ]


TestFetchSessions = FetchSessionMachine.TestCase
TestFetchSessions.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=50)
