from itertools import permutations
from math import inf
from random import Random

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import Cluster, Node, PartitionMetadata, TopicPartition
from sluice.client.producer.batch import Codec, ProducerBatch
from sluice.client.producer.buffer_pool import BufferPool
from sluice.client.producer.record_accumulator import AccumulatorSettings, RecordAccumulator
from sluice.client.producer.sequences import ProducerIdAndEpoch
from sluice.client.producer.transaction_manager import TransactionManager
from tests.support.producing import Nobody

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ONE, TWO = Node(1, "one", 9092), Node(2, "two", 9092)
LINGER_MS, TIMEOUT_MS, BACKOFF_MS = 50, 1000, 100


def cluster(*leaders: int, epoch: int = 0) -> Cluster:
    partitions = {number: PartitionMetadata(leader, epoch) for number, leader in enumerate(leaders)}
    return Cluster({1: ONE, 2: TWO}, topics={"t": partitions})


def accumulator(pool: int = 10_000, batch_size: int = 200) -> RecordAccumulator:
    settings = AccumulatorSettings(batch_size, LINGER_MS, TIMEOUT_MS, Codec())
    return RecordAccumulator(settings, BufferPool(pool), StaticBackoff(BACKOFF_MS), Random(1), None)


@pytest.fixture
def records() -> RecordAccumulator:
    return accumulator()


def put(records: RecordAccumulator, partition: TopicPartition = T0, now_ms: float = 0, size: int = 10) -> ProducerBatch:
    memory = records.new_batch_bytes(None, bytes(size), ())
    assert records.pool.take(memory)
    batch = records.add_batch(partition, memory, now_ms)
    assert batch.try_append(0, None, bytes(size), (), Nobody())
    return batch


class TestWhatIsReady:
    def test_batch_is_ready_after_linger(self, records: RecordAccumulator) -> None:
        put(records, now_ms=100)
        assert records.ready(cluster(1), 149)[:2] == ([], 150)
        assert records.ready(cluster(1), 150)[:2] == ([ONE], inf)

    @pytest.mark.parametrize("reason", ["full", "followed by another", "no memory", "flushing", "closing"])
    def test_full_batch_is_ready_without_linger(self, reason: str) -> None:
        records = accumulator(pool=1000)
        batch = put(records)
        match reason:
            case "full":
                batch.close()
            case "followed by another":
                put(records)
            case "no memory":
                records.pool.queue(10_000, lambda: None)
            case "flushing":
                records.flushes = 1
            case "closing":
                records.is_closing = True
        assert records.ready(cluster(1), 0).nodes == [ONE]

    def test_muted_partition_is_not_ready(self, records: RecordAccumulator) -> None:
        put(records)
        records.mute(T0)
        assert records.ready(cluster(1), 1000).nodes == []
        records.unmute(T0)
        assert records.ready(cluster(1), 1000).nodes == [ONE]

    def test_partition_without_a_leader_is_not_ready(self, records: RecordAccumulator) -> None:
        put(records)
        assert records.ready(cluster(-1), 1000)[::2] == ([], {"t"})
        assert records.ready(Cluster({}), 1000)[::2] == ([], {"t"})

    def test_batch_in_backoff_is_not_ready(self, records: RecordAccumulator) -> None:
        put(records)
        records.ready(cluster(1), 100)
        (batch,) = records.drain(cluster(1), [ONE], 1000, 100)[1]
        records.reenqueue(batch, 500)
        records.flushes = 1
        assert records.ready(cluster(1), 599)[:2] == ([], 600)
        assert records.drain(cluster(1), [ONE], 1000, 599) == {1: []}
        assert records.next_backoff_ms == 600
        assert records.ready(cluster(1), 600).nodes == [ONE]

    def test_batch_with_a_new_leader_is_ready_at_once(self, records: RecordAccumulator) -> None:
        put(records)
        records.ready(cluster(1, epoch=1), 0)
        (batch,) = records.drain(cluster(1), [ONE], 1000, 0)[1]
        records.reenqueue(batch, 500)
        assert records.ready(cluster(2, epoch=2), 500).nodes == [TWO]


class TestDraining:
    def test_drain_takes_the_first_batch_of_each_partition(self, records: RecordAccumulator) -> None:
        first, _, other = put(records), put(records), put(records, T1)
        assert records.drain(cluster(1, 2), [ONE, TWO], 1000, 0) == {1: [first], 2: [other]}

    def test_drain_fills_a_request_and_rotates_partitions(self) -> None:
        records = accumulator(batch_size=1)
        batches = [put(records, TopicPartition("t", number), size=100) for number in range(3)]
        known = cluster(1, 1, 1)
        assert records.drain(known, [ONE], 400, 0)[1] == batches[:2]
        again = put(records, T0, size=100)
        assert records.drain(known, [ONE], 400, 0)[1] == [batches[2], again]

    def test_drain_takes_an_oversized_batch_alone(self, records: RecordAccumulator) -> None:
        batch = put(records, size=1000)
        assert records.drain(cluster(1), [ONE], 10, 0)[1] == [batch]


class TestTime:
    def test_batches_expire_from_the_head_of_the_queue(self, records: RecordAccumulator) -> None:
        first, second, other = put(records, now_ms=0), put(records, now_ms=10), put(records, T1, now_ms=5)
        assert records.expired(999) == ([], 1000)
        assert records.expired(1000) == ([first], 1005)
        assert records.expired(1010) == ([second, other], inf)


class TestItsMemory:
    def test_memory_is_returned_once(self, records: RecordAccumulator) -> None:
        batch = put(records)
        records.give_back(batch)
        records.give_back(batch)
        assert records.pool.available == 10_000

    def test_abort_returns_memory_and_drops_records(self, records: RecordAccumulator) -> None:
        queued, drained = put(records), put(records, T1)
        records.drain(cluster(2, 1), [ONE], 1000, 0)
        records.abort(KafkaException("over"))
        assert (queued.is_done, drained.is_done) == (True, True)
        assert (records.pool.available, records.incomplete) == (10_000, {})


def test_retry_precedes_later_batches(records: RecordAccumulator) -> None:
    first, second = put(records), put(records)
    assert records.drain(cluster(1), [ONE], 1000, 0)[1] == [first]
    records.reenqueue(first, 0)
    assert records.drain(cluster(1), [ONE], 1000, 500)[1] == [first]
    assert records.drain(cluster(1), [ONE], 1000, 500)[1] == [second]


@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
def test_retried_batches_of_an_idempotent_producer_are_in_sequence_again(order: tuple[int, ...]) -> None:
    manager = TransactionManager(StaticBackoff(BACKOFF_MS))
    manager.producer = ProducerIdAndEpoch(1, 0)
    settings = AccumulatorSettings(200, 0, TIMEOUT_MS, Codec())
    records = RecordAccumulator(settings, BufferPool(10_000), StaticBackoff(BACKOFF_MS), Random(0), manager)
    batches = [put(records) for _ in range(3)]
    assert [records.drain(cluster(1), [ONE], 1000, 0)[1] for _ in batches] == [[batch] for batch in batches]
    for number in order:
        records.reenqueue(batches[number], 0)
    assert records.expired(TIMEOUT_MS)[0] == batches


def test_new_batch_closes_the_previous_one(records: RecordAccumulator) -> None:
    first = put(records)
    put(records)
    assert not first.try_append(0, None, b"", (), Nobody())


def test_partitions_of_a_node_unavailable_for_long_are_avoided() -> None:
    settings = AccumulatorSettings(1, 0, TIMEOUT_MS, Codec(), availability_timeout_ms=100)
    records = RecordAccumulator(settings, BufferPool(10_000), StaticBackoff(BACKOFF_MS), Random(1), None)
    known = cluster(1, 2)
    put(records, T0)
    put(records, T1)
    records.node_was_ready(1, 0, is_ready=False)
    records.ready(known, 200)
    partitions = known.topics["t"]
    seen = set()
    for _ in range(20):
        seen.add(records.sticky_partition("t", partitions))
        records.appended(T1, 10, partitions)
    assert 1 in seen
    assert len(seen - {1}) <= 1, "only the partition whose batch was started before"
    records.node_was_ready(1, 300, is_ready=True)
    records.ready(known, 300)
    for _ in range(20):
        seen.add(records.sticky_partition("t", partitions))
        records.appended(T1, 10, partitions)
    assert seen == {0, 1}
