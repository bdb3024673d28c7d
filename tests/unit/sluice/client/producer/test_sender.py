"""The sender, iteration by iteration, at scripted brokers: sending, retries, splits, failures and batch expiry."""

from collections.abc import Callable
from math import inf
from random import Random

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.config import producer_config
from sluice.client.errors import ApiException, KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, RecordMetadata
from sluice.client.producer.buffer_pool import BufferPool
from sluice.client.producer.metadata import ProducerMetadata
from sluice.client.producer.record_accumulator import AccumulatorSettings, RecordAccumulator
from sluice.client.producer.sender import Sender, SenderSettings
from sluice.client.producer.sequences import ProducerIdAndEpoch
from sluice.client.producer.transaction_manager import TransactionManager
from sluice.protocol.apis import produce as api
from sluice.protocol.apis.fetch import LeaderIdAndEpoch, NodeEndpoint
from sluice.protocol.apis.init_producer_id import InitProducerIdResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import read_header
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedBroker, ScriptedResponse, VirtualNetwork

BACKOFF_MS, DELIVERY_MS, REQUEST_MS = 100, 10_000, 4000


class End:
    """A record's future."""

    def __init__(self, at_ms: Callable[[], float]) -> None:
        self._clock = at_ms
        self.at_ms: float | None = None
        self.result: RecordMetadata | None = None
        self.error: KafkaException | None = None

    def done(self) -> bool:
        return self.at_ms is not None

    def set_result(self, result: RecordMetadata, /) -> None:
        self.result, self.at_ms = result, self._clock()

    def set_exception(self, exception: KafkaException, /) -> None:
        self.error, self.at_ms = exception, self._clock()


class Sending:
    """A sender with two partitions of one topic: broker 1 leads partition 0, broker 2 leads 1.

    Without `transactions` it is not idempotent.
    """

    def __init__(
        self,
        *,
        retries: int = 1000,
        acks: int = -1,
        transactions: TransactionManager | None = None,
        reconnect_backoff_ms: int = 0,
    ) -> None:
        self.network = VirtualNetwork()
        self.one, self.two = (self.network.broker(node, f"{name}:9092") for node, name in ((1, "a"), (2, "b")))
        for broker in (self.one, self.two):
            broker.topics["t"] = [1, 2]
            broker.responses["Produce"] = produce_response
        given: dict[str, str | int] = {
            "bootstrap.servers": "a:9092",
            "request.timeout.ms": REQUEST_MS,
            "reconnect.backoff.ms": reconnect_backoff_ms,
        }
        self.metadata = ProducerMetadata(StaticBackoff(BACKOFF_MS), 300_000, 300_000, equivalent_backoff=None)
        self.client = self.network.client(producer_config(given), self.metadata, max_in_flight=5)
        settings = AccumulatorSettings(1000, 0, DELIVERY_MS, Codec())
        self.records = RecordAccumulator(
            settings, BufferPool(1 << 20), StaticBackoff(BACKOFF_MS), Random(0), transactions
        )
        sender = SenderSettings(acks, retries, 1 << 20, REQUEST_MS, keeps_order=False)
        self.sender = Sender(sender, self.records, self.metadata, self.client, transactions)
        self.metadata.add("t", self.network.clock.monotonic_ms())
        self.client.wakeup()
        self.run(10)

    def put(self, *values: bytes, partition: int = 0) -> list[End]:
        memory = self.records.new_batch_bytes(None, values[0], ())
        assert self.records.pool.take(memory)
        where = TopicPartition("t", partition)
        batch = self.records.add_batch(where, memory, self.network.clock.monotonic_ms())
        ends = [End(lambda: self.network.now_ms) for _ in values]
        for value, end in zip(values, ends, strict=True):
            assert batch.try_append(0, None, value, (), end)
        return ends

    def run(self, ms: float) -> None:
        """Run the sender when it is due and at every millisecond, because the state may have changed."""
        until_ms = self.network.now_ms + ms
        while self.network.now_ms < until_ms:
            now_ms = self.network.clock.monotonic_ms()
            for _ in range(10):
                if self.sender.run_once(now_ms) > now_ms:
                    break
                self.network.advance(0)
            self.network.advance(1)

    @property
    def produced(self) -> list[ReceivedRequest]:
        return sorted(self.one.requests("Produce") + self.two.requests("Produce"), key=lambda request: request.at_ms)


@pytest.fixture
def sending() -> Sending:
    return Sending()


def produce_response(request: ReceivedRequest, code: int = 0, **fields: object) -> api.ProduceResponse:
    """Return a response with the same error code for all partitions."""
    offset = -1 if code else 7
    topics = []
    for topic in request.message.topic_data:
        partitions = [
            api.PartitionProduceResponse(
                index=one.index,
                error_code=code,
                base_offset=offset,
                **fields,  # type: ignore[arg-type]  # those of the message, as a test names them
            )
            for one in topic.partition_data
        ]
        topics.append(
            api.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
        )
    return api.ProduceResponse(responses=topics)


def first_then(first: ScriptedResponse | int, broker: ScriptedBroker) -> Callable[[ReceivedRequest], ScriptedResponse]:
    """Answer the first Produce request with this; answer later ones successfully."""

    def handle(request: ReceivedRequest) -> ScriptedResponse:
        if len(broker.requests("Produce")) > 1:
            return produce_response(request)
        return produce_response(request, first) if isinstance(first, int) else first

    return handle


def test_batches_go_to_their_leaders_and_complete_with_offsets(sending: Sending) -> None:
    ends = sending.put(b"a", b"b") + sending.put(b"c", partition=1)
    sending.run(20)
    assert [len(broker.requests("Produce")) for broker in (sending.one, sending.two)] == [1, 1]
    assert [end.result and (end.result.partition, end.result.offset) for end in ends] == [(0, 7), (0, 8), (1, 7)]
    assert not sending.sender.has_work
    assert sending.records.pool.available == sending.records.pool.total


def test_without_acks_a_batch_completes_when_written() -> None:
    sending = Sending(acks=0)
    sending.one.responses["Produce"] = lambda _: None
    (end,) = sending.put(b"a")
    sending.run(20)
    assert end.result is not None
    assert end.result.offset == -1


RETRIABLE = {
    "a retriable error": (ErrorCode.NOT_ENOUGH_REPLICAS, BACKOFF_MS),
    "a lost connection": (DISCONNECT, BACKOFF_MS),
    "no answer in time": (None, REQUEST_MS + 1 + BACKOFF_MS),
}


@pytest.mark.parametrize(("first", "again_ms"), RETRIABLE.values(), ids=RETRIABLE)
def test_retriable_failure_is_retried_after_a_backoff(
    sending: Sending, first: ScriptedResponse | int, again_ms: float
) -> None:
    sending.one.responses["Produce"] = first_then(first, sending.one)
    (end,) = sending.put(b"a")
    sending.run(REQUEST_MS + 500)
    one, two = sending.produced
    assert two.at_ms - one.at_ms == pytest.approx(again_ms, abs=3)
    assert end.result is not None


@pytest.mark.parametrize(
    ("first", "requests_metadata"),
    [(ErrorCode.NOT_LEADER_OR_FOLLOWER, True), (ErrorCode.NOT_ENOUGH_REPLICAS, False)],
    ids=["not the leader", "any other"],
)
def test_stale_leader_requests_a_metadata_update(sending: Sending, first: int, requests_metadata: bool) -> None:
    sending.one.responses["Produce"] = first_then(first, sending.one)
    sending.put(b"a")
    request = len(sending.one.requests("Metadata"))
    sending.run(2 * BACKOFF_MS)
    assert (len(sending.one.requests("Metadata") + sending.two.requests("Metadata")) > request) is requests_metadata


def test_new_leader_named_in_a_response_is_used_at_once(sending: Sending) -> None:
    leader = sending.network.broker(3, "c:9092")  # not in the metadata yet
    leader.responses["Produce"] = produce_response

    def moved(request: ReceivedRequest) -> ScriptedResponse:
        response = produce_response(
            request, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=1)
        )
        response.node_endpoints = [NodeEndpoint(node_id=3, host="c", port=9092)]
        return response

    sending.one.responses["Produce"] = moved
    (end,) = sending.put(b"a")
    sending.run(30)
    assert [len(broker.requests("Produce")) for broker in (sending.one, leader)] == [1, 1]
    assert end.result is not None


def test_invalid_records_are_reported_individually(sending: Sending) -> None:
    wrong = [api.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")]
    sending.one.responses["Produce"] = lambda request: produce_response(
        request, ErrorCode.INVALID_RECORD, record_errors=wrong
    )
    ends = sending.put(b"a", b"b", b"c")
    sending.run(20)
    assert [str(end.error) for end in ends] == [
        "it was in a batch with invalid records, which was not written",
        "no key",
        "it was in a batch with invalid records, which was not written",
    ]


def sequence_of(request: ReceivedRequest) -> tuple[int, int]:
    """Return epoch and base sequence of the only batch in the request."""
    header = read_header(request.message.topic_data[0].partition_data[0].records)
    return header.producer_epoch, header.base_sequence


NEXT_BATCHES = {
    "first attempt was not written: the next batch restarts in a new epoch": (
        [ErrorCode.INVALID_RECORD, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER],
        [(0, 0), (0, 1), (1, 0)],
    ),
    "retry may have been written: the next batch keeps its sequence": (
        [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_RECORD],
        [(0, 0), (0, 1), (0, 0), (0, 1)],
    ),
    "retry of an unwritten batch: the next batch restarts in a new epoch": (
        [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_RECORD],
        [(0, 0), (0, 1), (0, 0), (1, 0)],
    ),
}


@pytest.mark.parametrize(("codes", "expected"), NEXT_BATCHES.values(), ids=NEXT_BATCHES)
def test_next_batch_after_a_rejected_batch(codes: list[ErrorCode], expected: list[tuple[int, int]]) -> None:
    """The next batch is in flight too. With another sequence the broker could write it twice."""
    manager = TransactionManager(StaticBackoff(BACKOFF_MS))
    manager.producer = ProducerIdAndEpoch(1, 0)
    sending = Sending(transactions=manager)
    following = iter(codes)
    sending.one.responses["Produce"] = lambda _: None
    (refused,) = sending.put(b"refused")
    sending.run(2)
    (next_one,) = sending.put(b"next")
    for number in range(len(expected)):
        sending.run(2 * BACKOFF_MS)
        request = sending.produced[number]
        request.respond(produce_response(request, next(following, ErrorCode.NONE)))
    sending.run(2)
    assert [sequence_of(request) for request in sending.produced] == expected
    assert isinstance(refused.error, ApiException)
    assert refused.error.code == ErrorCode.INVALID_RECORD
    assert next_one.result is not None


SEQUENCES = {
    "without retries the epoch stays": (0, [ErrorCode.INVALID_RECORD], (0, 2)),
    "with retries it is bumped": (1, [ErrorCode.INVALID_RECORD], (1, 1)),
    "a retriable error does not bump it": (
        1,
        [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS],
        (0, 2),
    ),
}


@pytest.mark.parametrize(("retries", "codes", "third"), SEQUENCES.values(), ids=SEQUENCES)
def test_sequence_after_a_failed_and_a_written_batch(
    retries: int, codes: list[ErrorCode], third: tuple[int, int]
) -> None:
    manager = TransactionManager(StaticBackoff(BACKOFF_MS))
    manager.producer = ProducerIdAndEpoch(1, 0)
    sending = Sending(transactions=manager, retries=retries)
    sending.one.responses["Produce"] = lambda _: None
    for value in (b"failed", b"written"):
        sending.put(value)
        sending.run(2)
    for number in range(max(2, len(codes))):
        request = sending.produced[number]
        request.respond(produce_response(request, [*codes, ErrorCode.NONE][number]))
        sending.run(2 * BACKOFF_MS)
    sending.put(b"third")
    sending.run(2 * BACKOFF_MS)
    assert sequence_of(sending.produced[-1]) == third


def test_producer_id_is_requested_once_until_the_response() -> None:
    sending = Sending(transactions=TransactionManager(StaticBackoff(BACKOFF_MS)))
    for broker in (sending.one, sending.two):
        broker.responses["InitProducerId"] = lambda _: None
    sending.put(b"a")
    sending.run(50)
    assert len(sending.one.requests("InitProducerId") + sending.two.requests("InitProducerId")) == 1


def test_producer_id_is_requested_when_a_node_is_reachable_again() -> None:
    sending = Sending(transactions=TransactionManager(StaticBackoff(BACKOFF_MS)), reconnect_backoff_ms=1000)
    for broker in (sending.one, sending.two):
        broker.responses["InitProducerId"] = lambda _: InitProducerIdResponse(producer_id=1, producer_epoch=0)
        broker.refuses = True
        broker.drop()
    (end,) = sending.put(b"a")
    sending.run(500)
    sending.one.refuses = sending.two.refuses = False
    sending.run(1500)
    assert end.result is not None


class TestTime:
    def test_retried_batch_expires_behind_a_younger_one(self, sending: Sending) -> None:
        """The retried batch also follows the younger one in the list of requests in flight."""
        sending.one.responses["Produce"] = lambda _: None
        (older,) = sending.put(b"older")
        sending.run(1)
        sending.run(6000)  # the first attempt fails after 4 s, the second is in flight
        (younger,) = sending.put(b"younger")
        sending.run(DELIVERY_MS - 6000 + 50)
        assert older.done(), "the younger batch, not expired, must not hide it"
        assert not younger.done()
        sending.run(6000)
        assert younger.done()

    def test_next_deadline_includes_expiry(self, sending: Sending) -> None:
        sending.put(b"so that there is a connection")
        sending.run(20)
        assert sending.sender.run_once(sending.network.clock.monotonic_ms()) == inf
        sending.one.responses["Produce"] = lambda _: None
        now_ms = sending.network.clock.monotonic_ms()
        sending.put(b"a")
        assert sending.sender.run_once(now_ms) == now_ms, "there may be more batches for the same node"
        assert sending.sender.run_once(now_ms) == now_ms + DELIVERY_MS
