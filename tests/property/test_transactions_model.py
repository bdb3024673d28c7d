"""Log, producer state and transactions together against a simple model, in virtual time.

Producers with and without a transactional id, of old and new clients, including fenced ones, write correct, repeated
and out-of-order batches, begin, commit, abort and time out. After every step, readers of both isolation levels see
exactly the records of the model, filtered as a client does with the list of aborted transactions.
"""

from typing import Any, NamedTuple, Protocol

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import BatchHeader, iter_batches
from sluice.protocol.records.record import iter_records
from tests.support.records import fetch, fetched, records_of
from tests.support.transactions import LEGACY, NEW, add_request, added_codes, end_request, init_request, produce_request
from tests.support.virtual_broker import VirtualBroker

IDS = ("a", "b")
PARTITIONS = (0, 1)
TIMEOUT_MS = 15_000
CHECK_MS = 10_000
RETAINED = 5
READ_COMMITTED = 1
# A fetch returns one or two batches, so aborted transactions are spread over several responses.
FETCH_BYTES = 200


# -- the model ---------------------------------------------------------------------------------------------------------


class Transaction:
    """One transaction: whether it is open, or how it ended."""

    def __init__(self) -> None:
        self.outcome: bool | None = None  # committed?


class Written(NamedTuple):
    """One offset of a partition. A marker has no value."""

    value: bytes | None
    transaction: Transaction | None


class Known:
    """A partition's state of a producer id."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[tuple[int, int]] = []  # first and last sequence
        self.open: Transaction | None = None

    def move_to(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []


class Verification(NamedTuple):
    """The first batch of a transaction that the coordinator has to verify."""

    epoch: int
    lowest: int
    raises_epochs: bool


class ModelPartition:
    """One partition."""

    def __init__(self) -> None:
        self.log: list[Written] = []
        self.known: dict[int, Known] = {}
        self.verifications: dict[int, Verification] = {}

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        known = self.known.get(producer_id)
        return known is not None and known.open is not None and known.epoch == epoch

    def verify(self, producer_id: int, epoch: int, sequence: int, raises_epochs: bool) -> None:
        verification = self.verifications.get(producer_id)
        if verification is None:
            self.verifications[producer_id] = Verification(epoch, sequence, raises_epochs)
        elif epoch > verification.epoch:
            self.verifications[producer_id] = verification._replace(epoch=epoch, lowest=sequence)
        elif epoch == verification.epoch:
            self.verifications[producer_id] = verification._replace(lowest=min(verification.lowest, sequence))

    def append(self, producer_id: int, epoch: int, sequence: int, values: list[bytes], transactional: bool) -> int:
        """Check and store a batch; return the error."""
        known, verification = self.known.get(producer_id), self.verifications.get(producer_id)
        last = sequence + len(values) - 1
        if known is not None and known.epoch == epoch and (sequence, last) in known.batches[-RETAINED:]:
            return 0
        if known is not None and epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        begins = known is None or not known.batches
        if verification is not None and (
            sequence > verification.lowest or (verification.raises_epochs and begins and sequence > 0)
        ):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if known is not None:
            due = known.batches[-1][1] + 1 if known.epoch == epoch and known.batches else 0
            if sequence != due:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            known = self.known[producer_id] = Known(epoch)
        known.move_to(epoch)
        known.batches.append((sequence, last))
        if transactional:
            known.open = known.open or Transaction()
            self.verifications.pop(producer_id, None)
        self.log += [Written(value, known.open if transactional else None) for value in values]
        return 0

    def mark(self, producer_id: int, epoch: int, committed: bool) -> None:
        """Ends a transaction."""
        known = self.known.setdefault(producer_id, Known(epoch))
        if known.open is not None:
            known.open.outcome = committed
            known.open = None
        known.move_to(epoch)
        self.log.append(Written(None, None))
        verification = self.verifications.get(producer_id)
        if verification is not None and not (verification.raises_epochs and verification.epoch == epoch):
            del self.verifications[producer_id]

    def stable_offset(self) -> int:
        """Return the first offset of the oldest open transaction."""
        for offset, written in enumerate(self.log):
            if written.transaction is not None and written.transaction.outcome is None:
                return offset
        return len(self.log)

    def readable(self, start: int, committed_only: bool) -> list[tuple[int, bytes]]:
        """Return offset and value of each record that a reader sees from `start` on."""
        end = self.stable_offset() if committed_only else len(self.log)
        return [
            (offset, written.value)
            for offset, written in enumerate(self.log[:end])
            if offset >= start
            and written.value is not None
            and not (committed_only and written.transaction is not None and not written.transaction.outcome)
        ]


class ModelId:
    """One transactional id."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = -1
        self.state = "Empty"
        self.partitions: set[int] = set()
        self.started_ms = 0.0


class Producer:
    """One instance of a client and its state. Instances with the same id do not know of each other."""

    def __init__(self, transactional_id: str | None, versions: dict[str, int], producer_id: int, epoch: int) -> None:
        self.transactional_id = transactional_id
        self.versions = versions
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequences = dict.fromkeys(PARTITIONS, 0)
        self.last: dict[int, tuple[int, list[bytes]]] = {}

    @property
    def raises_epochs(self) -> bool:
        return self.versions is NEW

    def take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences = dict.fromkeys(PARTITIONS, 0)
            self.last = {}


class RequestSender(Protocol):
    """A client, as the machine uses it."""

    def call(self, request: Message, version: int) -> Any:
        """Send a request and return its response."""


# -- the machine -------------------------------------------------------------------------------------------------------


class Transactions(RuleBasedStateMachine):
    """Sends the same operations to the broker and to the model."""

    @initialize()
    def start(self) -> None:
        self.broker, self.client = self.broker_and_client()
        self.broker.topic(partitions=len(PARTITIONS))
        for broker in self.broker.cluster_server.brokers.values():
            assert list(broker.transactions) == []  # starts the coordinator before the first check
        self.ids: dict[str, ModelId] = {}
        self.partitions = [ModelPartition() for _ in PARTITIONS]
        self.producers: list[Producer] = []
        self.producer_ids = 0
        self.values = 0
        self.seen = [(0, 0) for _ in PARTITIONS]  # last stable offset and log end offset at the last check
        for transactional_id, versions in zip(IDS, (LEGACY, NEW), strict=True):
            self.init(transactional_id, versions)

    def broker_and_client(self) -> tuple[VirtualBroker, RequestSender]:
        broker = VirtualBroker("connections.max.idle.ms=-1")
        return broker, broker.client()

    def a_producer(self, data: st.DataObject) -> Producer:
        # The latest producers are the interesting ones, and fenced predecessors must stay possible.
        return data.draw(st.sampled_from(self.producers[-4:]), label="producer")

    def new_values(self, count: int) -> list[bytes]:
        self.values += count
        return [b"%d" % number for number in range(self.values - count, self.values)]

    # Beginning

    @rule(transactional_id=st.sampled_from(IDS), versions=st.sampled_from([LEGACY, NEW]))
    def init(self, transactional_id: str, versions: dict[str, int]) -> None:
        response = self.client.call(init_request(transactional_id, transaction_timeout_ms=TIMEOUT_MS), 5)
        one = self.ids.get(transactional_id)
        if one is None:
            one = self.ids[transactional_id] = ModelId(self.producer_ids)
            self.producer_ids += 1
        if one.state == "Ongoing":
            assert response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            self.complete(one, False, raised=True)
            return
        one.epoch += 1
        one.state = "Empty"
        assert (response.error_code, response.producer_id, response.producer_epoch) == (0, one.producer_id, one.epoch)
        self.producers.append(Producer(transactional_id, versions, one.producer_id, one.epoch))

    @rule()
    def init_without_transactions(self) -> None:
        response = self.client.call(init_request(None), 5)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (0, self.producer_ids, 0)
        self.producers.append(Producer(None, LEGACY, self.producer_ids, 0))
        self.producer_ids += 1

    @precondition(lambda self: any(one.transactional_id is None for one in self.producers))
    @rule(data=st.data())
    def raise_the_epoch_of_an_idempotent_producer(self, data: st.DataObject) -> None:
        idempotent = [one for one in self.producers if one.transactional_id is None]
        producer = data.draw(st.sampled_from(idempotent), label="producer")
        producer.take(producer.producer_id, producer.epoch + 1)

    @rule(data=st.data(), index=st.sampled_from(PARTITIONS))
    def add(self, data: st.DataObject, index: int) -> None:
        self.add_partition(self.a_producer(data), index)

    def add_partition(self, producer: Producer, index: int) -> None:
        if producer.transactional_id is None or producer.raises_epochs:
            return
        request = add_request(3, producer.producer_id, producer.epoch, (("t", index),), producer.transactional_id)
        (code,) = added_codes(self.client.call(request, 3)).values()
        assert code == self.added(producer, index)

    def added(self, producer: Producer, index: int) -> int:
        one = self.ids[producer.transactional_id or ""]
        if one.epoch != producer.epoch:
            return ErrorCode.PRODUCER_FENCED
        if one.state != "Ongoing":
            one.state, one.started_ms = "Ongoing", self.broker.now_ms
        one.partitions.add(index)
        return 0

    # Writing

    @rule(data=st.data(), index=st.sampled_from(PARTITIONS), count=st.integers(1, 3), adds=st.booleans())
    def send(self, data: st.DataObject, index: int, count: int, adds: bool) -> None:
        producer = self.a_producer(data)
        if adds:
            self.add_partition(producer, index)
        self.send_batch(producer, index, producer.sequences[index], self.new_values(count))

    @rule(data=st.data(), counts=st.tuples(st.integers(1, 2), st.integers(1, 2)))
    def both_send_and_abort_in_turn(self, data: st.DataObject, counts: tuple[int, int]) -> None:
        # Transactions that overlap in one partition.
        pair = [self.a_producer(data) for _ in counts]
        for producer, count in zip(pair, counts, strict=True):
            self.add_partition(producer, 0)
            self.send_batch(producer, 0, producer.sequences[0], self.new_values(count))
        for producer in pair:
            self.end_transaction(producer, False)

    @rule(data=st.data(), index=st.sampled_from(PARTITIONS))
    def send_again(self, data: st.DataObject, index: int) -> None:
        producer = self.a_producer(data)
        if index in producer.last:
            self.send_batch(producer, index, *producer.last[index])

    @rule(data=st.data(), index=st.sampled_from(PARTITIONS), gap=st.integers(1, 2))
    def send_too_early(self, data: st.DataObject, index: int, gap: int) -> None:
        producer = self.a_producer(data)
        self.send_batch(producer, index, producer.sequences[index] + gap, self.new_values(1))

    def send_batch(self, producer: Producer, index: int, sequence: int, values: list[bytes]) -> None:
        transactional = producer.transactional_id is not None
        version = producer.versions["produce"]
        request = produce_request(
            version,
            producer.producer_id,
            producer.epoch,
            sequence,
            *values,
            transactional_id=producer.transactional_id,
            transactional=transactional,
            partition=index,
        )
        (response,) = self.client.call(request, version).responses[0].partition_responses
        code = self.refusal(producer, index, sequence) if transactional else 0
        partition = self.partitions[index]
        code = code or partition.append(producer.producer_id, producer.epoch, sequence, values, transactional)
        assert response.error_code == code
        if not code:
            producer.sequences[index] = max(producer.sequences[index], sequence + len(values))
            producer.last[index] = sequence, values

    def refusal(self, producer: Producer, index: int, sequence: int) -> int:
        """Return the coordinator's error for a transactional batch."""
        one, partition = self.ids[producer.transactional_id or ""], self.partitions[index]
        known = partition.known.get(producer.producer_id)
        if known is not None and producer.epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if partition.is_in_transaction(producer.producer_id, producer.epoch):
            return 0
        partition.verify(producer.producer_id, producer.epoch, sequence, producer.raises_epochs)
        if producer.epoch != one.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if producer.raises_epochs:
            return self.added(producer, index)
        return 0 if index in one.partitions else ErrorCode.TRANSACTION_ABORTABLE

    # Ending

    @rule(data=st.data(), committed=st.booleans())
    def end(self, data: st.DataObject, committed: bool) -> None:
        self.end_transaction(self.a_producer(data), committed)

    def end_transaction(self, producer: Producer, committed: bool) -> None:
        if producer.transactional_id is None:
            return
        one = self.ids[producer.transactional_id]
        version = producer.versions["end"]
        request = end_request(producer.producer_id, producer.epoch, committed, producer.transactional_id)
        response = self.client.call(request, version)
        ends = self.end_of_new_client if producer.raises_epochs else self.end_of_legacy_client
        code = ends(one, producer.epoch, committed)
        assert response.error_code == code
        if not code and producer.raises_epochs:
            assert (response.producer_id, response.producer_epoch) == (one.producer_id, one.epoch)
            producer.take(response.producer_id, response.producer_epoch)

    def end_of_legacy_client(self, one: ModelId, epoch: int, committed: bool) -> int:
        if epoch != one.epoch:
            return ErrorCode.PRODUCER_FENCED
        if one.state == "Ongoing":
            self.complete(one, committed, raised=False)
            return 0
        return 0 if one.state == _complete(committed) else ErrorCode.INVALID_TXN_STATE

    def end_of_new_client(self, one: ModelId, epoch: int, committed: bool) -> int:
        repeats = epoch == one.epoch - 1
        if repeats and one.state.startswith("Complete"):
            return 0 if one.state == _complete(committed) else ErrorCode.INVALID_TXN_STATE
        if epoch != one.epoch:
            return ErrorCode.PRODUCER_FENCED
        if committed and one.state != "Ongoing":
            return ErrorCode.INVALID_TXN_STATE
        self.complete(one, committed, raised=True)
        return 0

    def complete(self, one: ModelId, committed: bool, *, raised: bool) -> None:
        one.epoch += raised
        for index in one.partitions:
            self.partitions[index].mark(one.producer_id, one.epoch, committed)
        one.partitions = set()
        one.state = _complete(committed)

    @rule(ms=st.sampled_from([1, 4_000, 9_999, 31_000]))
    def wait(self, ms: int) -> None:
        before = self.broker.now_ms
        self.broker.advance(ms)
        for number in range(int(before // CHECK_MS) + 1, int(self.broker.now_ms // CHECK_MS) + 1):
            for one in self.ids.values():
                if one.state == "Ongoing" and one.started_ms + TIMEOUT_MS < number * CHECK_MS:
                    self.complete(one, False, raised=True)

    # Reading

    @invariant()
    def readers_see_what_the_model_says(self) -> None:
        if not hasattr(self, "broker"):
            return
        for index, model in enumerate(self.partitions):
            log = self.broker.partition("t", index).log
            assert (log.high_watermark, log.last_stable_offset) == (len(model.log), model.stable_offset())
            stable_offset, end_offset = self.seen[index]
            assert log.last_stable_offset >= stable_offset, "the last stable offset decreased"
            if (log.last_stable_offset, log.log_end_offset) == (stable_offset, end_offset):
                continue
            self.seen[index] = log.last_stable_offset, log.log_end_offset
            assert self.read(index, 0, 0) == model.readable(0, False)
            for start in {0, max(len(model.log) - 5, 0)}:
                assert self.read(index, start, READ_COMMITTED) == model.readable(start, True)

    def read(self, index: int, start: int, isolation_level: int) -> list[tuple[int, bytes]]:
        """Read all records from `start` on as a client does; return offsets and values."""
        seen: list[tuple[int, bytes]] = []
        offset = start
        while True:
            data = fetched(
                self.client.call(
                    fetch(offset, partition=index, isolation_level=isolation_level, partition_max_bytes=FETCH_BYTES), 11
                )
            )
            assert data.error_code == 0
            records = records_of(data)
            aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or [])
            skipped: set[int] = set()
            following = offset
            for position, header in iter_batches(records):
                while aborted and aborted[0][0] <= header.last_offset:
                    skipped.add(aborted.pop(0)[1])
                batch = memoryview(records)[position : position + header.size_in_bytes]
                seen += _delivered(header, batch, skipped, offset)
                following = header.last_offset + 1
            if following == offset:
                return seen
            offset = following


def _complete(committed: bool) -> str:
    return "CompleteCommit" if committed else "CompleteAbort"


def _delivered(header: BatchHeader, batch: memoryview, skipped: set[int], start: int) -> list[tuple[int, bytes]]:
    """Return the records that a client delivers from a batch, given the producer ids with aborted records."""
    if header.is_control:
        (marker,) = iter_records(batch)
        if marker.key is not None and marker.key[3] == 0:  # an abort
            skipped.discard(header.producer_id)
        return []
    if header.is_transactional and header.producer_id in skipped:
        return []
    return [(one.offset, one.value or b"") for one in iter_records(batch) if one.offset >= start]


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=3 * settings().max_examples // 5, stateful_step_count=40)
