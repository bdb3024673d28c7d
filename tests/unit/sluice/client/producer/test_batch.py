from dataclasses import dataclass

import pytest

from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, Header, ProducerBatch, ProducerState, RecordMetadata, size_upper_bound
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record, iter_records


@dataclass
class RecordingFuture:
    """A future that records its results."""

    result: RecordMetadata | None = None
    error: KafkaException | None = None
    cancelled: bool = False

    def done(self) -> bool:
        return self.cancelled or self.result is not None or self.error is not None

    def set_result(self, result: RecordMetadata, /) -> None:
        assert not self.done()
        self.result = result

    def set_exception(self, exception: KafkaException, /) -> None:
        assert not self.done()
        self.error = exception


Fields = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]
RECORDS: list[Fields] = [
    (1000, None, b"value", ()),
    (1005, b"key", None, (("name", b"content"), ("nothing", None))),
    (990, b"", b"", ()),
    (10_000_000, b"k" * 200, b"v" * 70_000, (("ü" * 100, b"x" * 300),)),
]


def batch_of(*records: Fields, **fields: int) -> ProducerBatch:
    batch = ProducerBatch(
        TopicPartition("t", 3), Codec(fields.pop("codec", 0)), fields.pop("limit", 1 << 20), 500, memory=0, ratio=1.0
    )
    for record in records:
        assert batch.try_append(*record, RecordingFuture())
    return batch


def futures_of(batch: ProducerBatch) -> list[RecordingFuture]:
    return [future for future in batch.deliveries if isinstance(future, RecordingFuture)]


@pytest.fixture
def batch() -> ProducerBatch:
    return batch_of(RECORDS[0])


class TestBytes:
    @pytest.mark.parametrize(
        "state",
        [ProducerState(), ProducerState(7, 3, 2**31 - 2), ProducerState(7, 3, 5, is_transactional=True)],
        ids=["nobody's", "of an idempotent producer", "of a transaction"],
    )
    def test_batch_bytes_are_a_record_batch(self, state: ProducerState) -> None:
        batch = batch_of(*RECORDS)
        batch.set_state(state)
        expected = build_batch(
            [Record(offset, *record) for offset, record in enumerate(RECORDS)],
            producer_id=state.producer_id,
            producer_epoch=state.epoch,
            base_sequence=state.base_sequence,
            transactional=state.is_transactional,
        )
        assert batch.estimated_bytes == len(expected)
        assert bytes(batch.records()) == expected

    @pytest.mark.parametrize("codec", range(5))
    def test_records_are_compressed(self, codec: int) -> None:
        batch = batch_of(*RECORDS, codec=codec)
        found = [(r.timestamp, r.key, r.value, r.headers) for r in iter_records(batch.records())]
        assert found == RECORDS
        assert (batch.compression_ratio < 1) == (codec > 0)

    def test_batch_restarts_under_a_new_epoch(self, batch: ProducerBatch) -> None:
        batch.set_state(ProducerState(7, 3, 10))
        before = bytes(batch.records())
        batch.reset_state(ProducerState(7, 4, 0))
        assert bytes(batch.records()) == build_batch(
            [Record(0, *RECORDS[0])], producer_id=7, producer_epoch=4, base_sequence=0
        )
        assert bytes(batch.records()) != before
        assert batch.sequence_was_reset


class TestRoom:
    def test_first_record_always_fits(self) -> None:
        batch = batch_of((0, None, b"x" * 1000, ()), limit=100)
        assert batch.is_full
        assert not batch.try_append(0, None, b"", (), RecordingFuture())

    def test_record_that_exceeds_the_batch_size_does_not_fit(self) -> None:
        batch = batch_of((0, None, bytes(50), ()), limit=200)
        while batch.try_append(0, None, b"", (), RecordingFuture()):
            pass
        assert 200 - 8 < len(batch.records()) <= 200

    def test_compressible_records_have_more_room(self) -> None:
        batch = ProducerBatch(TopicPartition("t", 0), Codec(1), 1000, 0, memory=0, ratio=0.1)
        count = 0
        while batch.try_append(0, None, bytes(100), (), RecordingFuture()):
            count += 1
        assert count > 50
        assert len(batch.records()) < 1000

    def test_closed_batch_accepts_no_record(self, batch: ProducerBatch) -> None:
        batch.close()
        assert batch.is_full
        assert not batch.try_append(0, None, b"", (), RecordingFuture())

    @pytest.mark.parametrize("record", RECORDS, ids=["small", "headers", "empty", "large"])
    def test_estimated_size_never_exceeds_the_limit(self, record: Fields) -> None:
        assert len(batch_of(record).records()) <= size_upper_bound(*record[1:])


class TestItsEnd:
    def test_completed_batch_reports_each_offset(self) -> None:
        batch = batch_of(*RECORDS[:2])
        assert batch.complete(100, -1)
        assert [future.result for future in futures_of(batch)] == [("t", 3, 100, 1000), ("t", 3, 101, 1005)]

    def test_completed_batch_reports_log_append_time(self, batch: ProducerBatch) -> None:
        batch.complete(100, 777)
        assert [future.result for future in futures_of(batch)] == [("t", 3, 100, 777)]

    def test_batch_completes_once(self, batch: ProducerBatch) -> None:
        assert batch.fail(KafkaException("first"))
        assert not batch.complete(1, -1)
        assert not batch.fail(KafkaException("second"))
        assert [str(future.error) for future in futures_of(batch)] == ["first"]

    def test_cancelled_futures_are_skipped(self) -> None:
        batch = ProducerBatch(TopicPartition("t", 0), Codec(), 1000, 0, memory=0, ratio=1.0)
        delivered = RecordingFuture(cancelled=True)
        batch.try_append(0, None, b"", (), delivered)
        batch.complete(0, -1)
        assert delivered.result is None

    def test_some_records_can_have_a_different_error(self) -> None:
        batch = batch_of(*RECORDS[:3])
        batch.fail(KafkaException("the batch"), {1: KafkaException("this one")})
        assert [str(future.error) for future in futures_of(batch)] == ["the batch", "this one", "the batch"]


class TestSplitting:
    @pytest.mark.parametrize("codec", [0, 4])
    def test_split_keeps_order_futures_creation_time_and_sequences(self, codec: int) -> None:
        records = [(1000 + number, b"%d" % number, bytes(100), ()) for number in range(20)]
        batch = batch_of(*records, codec=codec)
        batch.set_state(ProducerState(7, 3, 2**31 - 5))
        parts = batch.split(500)
        assert len(parts) > 3
        assert [d for part in parts for d in part.deliveries] == list(batch.deliveries)
        assert [r.key for part in parts for r in iter_records(part.records())] == [r[1] for r in records]
        assert {part.created_ms for part in parts} == {500}
        sequence = 2**31 - 5
        for part in parts:
            assert part.state.base_sequence == sequence % 2**31
            sequence += part.record_count
        assert all(part.is_split for part in parts)
        assert batch.is_done


class TestTime:
    def test_waited_time_counts_from_the_last_attempt(self, batch: ProducerBatch) -> None:
        assert batch.waited_ms(520) == 20
        batch.reenqueued(530)
        assert (batch.waited_ms(540), batch.attempts) == (10, 1)

    def test_new_leader_counts_for_one_retry(self, batch: ProducerBatch) -> None:
        batch.update_leader_epoch(5)
        is_new = [batch.leader_changed_for_this_retry]
        for epoch in (5, 6, 6):
            batch.reenqueued(600)
            batch.update_leader_epoch(epoch)
            is_new.append(batch.leader_changed_for_this_retry)
        assert is_new == [False, False, True, False]
