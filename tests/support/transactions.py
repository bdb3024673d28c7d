"""Transactional producers for tests: each request as a function call, in any version."""

from typing import Any

from sluice.protocol.apis import add_partitions_to_txn as api
from sluice.protocol.apis import txn_offset_commit
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.end_txn import EndTxnRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.records.batch import BatchHeader, iter_batches
from sluice.protocol.records.record import iter_records
from tests.support.records import batch, produce
from tests.support.virtual_broker import Client, VirtualBroker

TIMEOUT_MS = 60_000  # of transactions, as in a Java producer
# Versions of a client that adds its partitions (Java 3.9), and of one with transaction version 2 (Java 4).
LEGACY = {"init": 5, "add": 3, "produce": 11, "end": 4, "offsets": 4}
NEW = LEGACY | {"produce": 12, "end": 5, "offsets": 5}
FIRST_FROM_BROKERS = 4  # AddPartitionsToTxn

Partitions = tuple[tuple[str, int], ...]
T_0: Partitions = (("t", 0),)


def init_request(transactional_id: str | None = "tx", **fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        **({"transactional_id": transactional_id, "transaction_timeout_ms": TIMEOUT_MS} | fields)
    )


def add_request(
    version: int,
    producer_id: int,
    epoch: int,
    partitions: Partitions = T_0,
    transactional_id: str = "tx",
    *,
    verify_only: bool = False,
) -> api.AddPartitionsToTxnRequest:
    names = dict.fromkeys(topic for topic, _ in partitions)
    topics = [
        api.AddPartitionsToTxnTopic(name=name, partitions=[index for topic, index in partitions if topic == name])
        for name in names
    ]
    if version < FIRST_FROM_BROKERS:
        return api.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
    transaction = api.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=verify_only,
        topics=topics,
    )
    return api.AddPartitionsToTxnRequest(transactions=[transaction])


def added_codes(response: Any) -> dict[tuple[str, int], int]:
    """Return the error code of each partition in an AddPartitionsToTxn response of one transaction."""
    results = response.results_by_transaction
    topics = results[0].topic_results if results else response.results_by_topic_v3_and_below
    return {
        (topic.name, one.partition_index): one.partition_error_code
        for topic in topics
        for one in topic.results_by_partition
    }


def end_request(producer_id: int, epoch: int, committed: bool = True, transactional_id: str = "tx") -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=committed
    )


def offsets_request(
    producer_id: int, epoch: int, group_id: str, offset: int = 1, transactional_id: str = "tx", topic: str = "t"
) -> txn_offset_commit.TxnOffsetCommitRequest:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


def produce_request(
    version: int,
    producer_id: int,
    epoch: int,
    sequence: int = 0,
    *values: bytes,
    transactional_id: str | None = "tx",
    transactional: bool = True,
    **fields: Any,
) -> ProduceRequest:
    """Return one batch for partition 0 of "t"; `fields` as of `tests.support.records.produce`."""
    data = batch(
        *values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    request = produce(version, data, **fields)
    request.transactional_id = transactional_id
    return request


class Producer:
    """A producer with a transactional id on its own connection; it applies the responses."""

    def __init__(
        self,
        broker: VirtualBroker,
        versions: dict[str, int] = LEGACY,
        *,
        transactional_id: str = "tx",
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self.client: Client = broker.client()
        self.versions = versions
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def adds_partitions(self) -> bool:
        return self.versions["end"] < NEW["end"]

    def init(self, **fields: Any) -> int:
        """Request producer id and epoch; return the error."""
        request = init_request(self.transactional_id, **({"transaction_timeout_ms": self.timeout_ms} | fields))
        response = self.client.call(request, self.versions["init"])
        if not response.error_code:
            self._take(response.producer_id, response.producer_epoch)
        return int(response.error_code)

    def add(self, *partitions: tuple[str, int]) -> set[int]:
        """Add partitions; return the errors."""
        request = add_request(
            self.versions["add"], self.producer_id, self.epoch, partitions or T_0, self.transactional_id
        )
        return set(added_codes(self.client.call(request, self.versions["add"])).values())

    def add_offsets(self, group_id: str) -> int:
        """Add the offsets of a group to the transaction; return the error."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        return int(self.client.call(request, 3).error_code)

    def commit_offset(self, group_id: str, offset: int) -> int:
        """Commit an offset of partition 0 of "t" in the transaction; return the error."""
        request = offsets_request(self.producer_id, self.epoch, group_id, offset, self.transactional_id)
        response = self.client.call(request, self.versions["offsets"])
        return int(response.topics[0].partitions[0].error_code)

    def send(self, *values: bytes, topic: str = "t", partition: int = 0) -> int:
        """Produce one batch with the next sequence number, which counts if it is accepted; return the error."""
        where = topic, partition
        sequence = self._sequences.get(where, 0)
        response = self.client.call(
            produce_request(
                self.versions["produce"],
                self.producer_id,
                self.epoch,
                sequence,
                *values,
                transactional_id=self.transactional_id,
                topic=topic,
                partition=partition,
            ),
            self.versions["produce"],
        )
        code = int(response.responses[0].partition_responses[0].error_code)
        if not code:
            self._sequences[where] = sequence + len(values)
        return code

    def end(self, committed: bool = True) -> int:
        """Commit or abort; return the error."""
        request = end_request(self.producer_id, self.epoch, committed, self.transactional_id)
        response = self.client.call(request, self.versions["end"])
        if not response.error_code and not self.adds_partitions:
            self._take(response.producer_id, response.producer_epoch)
        return int(response.error_code)

    def commit_values(self, *values: bytes, committed: bool = True) -> None:
        """Run one transaction with one batch in partition 0 of "t"."""
        if self.adds_partitions:
            assert self.add() == {0}
        assert self.send(*values) == 0
        assert self.end(committed) == 0

    def _take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


def initialized(broker: VirtualBroker, versions: dict[str, int] = LEGACY, **more: Any) -> Producer:
    """Return a producer with its producer id and epoch, without a transaction."""
    producer = Producer(broker, versions, **more)
    assert producer.init() == 0
    return producer


def begun(broker: VirtualBroker, versions: dict[str, int] = LEGACY, **more: Any) -> Producer:
    """Return a producer with an open transaction in partition 0 of "t", with one record "v"."""
    producer = initialized(broker, versions, **more)
    if producer.adds_partitions:
        assert producer.add() == {0}
    assert producer.send(b"v") == 0
    return producer


def stored(broker: VirtualBroker, topic: str = "t", partition: int = 0) -> list[tuple[BatchHeader, list[bytes | None]]]:
    """Return all batches of a partition: header, and the values of the records."""
    log = broker.partition(topic, partition).log
    found = log.read(log.log_start_offset, 2**31 - 1, log.log_end_offset, True)
    data = b"".join(found.parts)
    return [
        (header, [record.value for record in iter_records(memoryview(data)[place:][: header.size_in_bytes])])
        for place, header in iter_batches(data)
    ]
