"""What one fetch brought of one partition, read batch by batch as records are asked for: Kafka's CompletedFetch.

`isolation.level=read_committed` leaves out the records of transactions that were aborted. The answer names those
(producer and first offset, up to the last stable offset); a producer's records are left out from there to its abort
marker. Control batches are nobody's records.

Records of magic 0 and 1, which a log may still hold, are read by `protocol.records.legacy`.
"""

from collections import deque
from collections.abc import Iterator
from operator import attrgetter

from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.records.batch import NO_PRODUCER_ID, BatchHeader, batch_bounds, ensure_valid, read_header
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import iter_messages, read_message

from .batch_records import BatchRecords
from .fetch_session import FetchFrom

_MAGIC = 2


class FetchSettings:
    """How records are read."""

    __slots__ = ("checks_crcs", "read_committed")

    def __init__(self, *, checks_crcs: bool, read_committed: bool) -> None:
        self.checks_crcs = checks_crcs
        self.read_committed = read_committed


class CompletedFetch:
    """Records of one partition, from `next_offset` on. `data` is the answer's; it is looked at when its turn comes."""

    __slots__ = (
        "_aborted",
        "_aborting",
        "_batch",
        "_batches",
        "_broken",
        "_messages",
        "_settings",
        "data",
        "is_initialized",
        "last_epoch",
        "leader_epoch",
        "next_offset",
        "partition",
        "records",
    )

    def __init__(
        self, partition: TopicPartition, position: FetchFrom, data: PartitionData, settings: FetchSettings
    ) -> None:
        self.partition = partition
        self.next_offset = position.offset
        self.leader_epoch = position.leader_epoch  # by which the leader was asked
        self.data = data
        self.is_initialized = False
        self.last_epoch = NO_EPOCH  # of the last record that was taken
        self._settings = settings
        records = data.records or b""
        assert isinstance(records, bytes | memoryview), "records in parts are for who sends them"
        self.records = memoryview(records)
        self._batches = batch_bounds(self.records)
        self._batch: BatchRecords | None = None
        self._broken: InvalidRecords | None = None  # why nothing more can be read
        self._messages: deque[ConsumerRecord] = deque()  # of a message set
        self._aborted = deque(sorted(data.aborted_transactions or (), key=attrgetter("first_offset")))
        self._aborting: set[int] = set()  # producers within a transaction that was aborted

    def take(self, records: list[ConsumerRecord], most: int) -> bool:
        """Appends up to `most` records; whether there may be more. Raises KafkaException at what cannot be read: then
        `next_offset` is where that is, and what was appended is good.
        """
        before = len(records)
        try:
            if self._broken is not None:
                raise self._broken
            while (room := most - len(records) + before) > 0:
                if not self._take_from_batch(records, room):
                    return False
            return self._has_more()
        except InvalidRecords as error:
            self._broken = error
            raise KafkaException(
                f"the next record of {self.partition}, at offset {self.next_offset}, cannot be read: {error}; "
                "seek past it to go on"
            ) from error

    def _take_from_batch(self, records: list[ConsumerRecord], room: int) -> bool:
        """Goes on where the last one ended; whether that was not the end of all."""
        if not self._has_more():
            return False
        while self._messages and room:
            record = self._messages.popleft()
            self.next_offset = record.offset + 1
            records.append(record)
            room -= 1
        batch = self._batch
        if batch is not None:
            before = len(records)
            try:
                batch.take(records, room, self.next_offset)
            finally:
                if len(records) > before:
                    self.next_offset = records[-1].offset + 1
                    self.last_epoch = batch.header.partition_leader_epoch
        return True

    def _has_more(self) -> bool:
        """Whether there is a batch with records left: the next one, if that which is read is at its end."""
        while True:
            if self._messages:
                return True
            batch = self._batch
            if batch is not None:
                if batch.left:
                    return True
                self.next_offset = batch.header.last_offset + 1  # compaction may have taken its last records
                self.last_epoch = batch.header.partition_leader_epoch
                self._batch = None
            bounds = next(self._batches, None)
            if bounds is None:
                return False
            self._open(*bounds)

    def _open(self, position: int, size: int, magic: int) -> None:
        batch = self.records[position : position + size]
        if magic < _MAGIC:
            self._messages.extend(self._of_message_set(batch))
            return
        header = read_header(batch)
        if header.last_offset < self.next_offset:
            return
        if self._settings.checks_crcs:
            ensure_valid(batch)
        if self._is_left_out(header, batch):
            self.next_offset = header.last_offset + 1
            self.last_epoch = header.partition_leader_epoch
        else:
            self._batch = BatchRecords(self.partition, header, batch)

    def _is_left_out(self, header: BatchHeader, batch: memoryview) -> bool:
        if not self._settings.read_committed or header.producer_id == NO_PRODUCER_ID:
            return header.is_control
        while self._aborted and self._aborted[0].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.popleft().producer_id)
        if header.is_control:
            if BatchRecords(self.partition, header, batch).is_abort_marker():
                self._aborting.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborting

    def _of_message_set(self, batch: memoryview) -> Iterator[ConsumerRecord]:
        outer = read_message(batch)
        if self._settings.checks_crcs:
            outer.ensure_valid()
        for message in iter_messages(outer):
            record = message.record()
            if record.offset >= self.next_offset:
                yield ConsumerRecord(
                    *self.partition,
                    record.offset,
                    record.timestamp,
                    message.timestamp_type,
                    record.key,
                    record.value,
                    (),
                    NO_EPOCH,
                )
