"""The fetched data of one partition, read batch by batch on demand (Kafka's CompletedFetch).

With `isolation.level=read_committed`, records of aborted transactions are skipped: from the first offset in the
response to the producer's abort marker.
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
    def __init__(self, *, checks_crcs: bool, read_committed: bool) -> None:
        self.checks_crcs = checks_crcs
        self.read_committed = read_committed


class CompletedFetch:
    """Records of one partition from `next_offset` on, parsed on the first `take`."""

    def __init__(
        self, partition: TopicPartition, position: FetchFrom, data: PartitionData, settings: FetchSettings
    ) -> None:
        self.partition = partition
        self.next_offset = position.offset
        self.leader_epoch = position.leader_epoch
        self.data = data
        self.is_initialized = False
        self.last_epoch = NO_EPOCH
        self._settings = settings
        records = data.records or b""
        assert isinstance(records, bytes | memoryview), "only a sender has records in parts"
        self.records = memoryview(records)
        self._batches = batch_bounds(self.records)
        self._batch: BatchRecords | None = None
        self._broken: InvalidRecords | None = None  # set at the first unreadable record
        self._messages: deque[ConsumerRecord] = deque()
        self._aborted = deque(sorted(data.aborted_transactions or (), key=attrgetter("first_offset")))
        self._aborting: set[int] = set()  # producers within an aborted transaction

    def take(self, records: list[ConsumerRecord], most: int) -> bool:
        """Append up to `most` records; return whether there may be more.

        Raise KafkaException at an unreadable record, after appending those before it.
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
                "seek past it to continue"
            ) from error

    def _take_from_batch(self, records: list[ConsumerRecord], room: int) -> bool:
        """Continue at `next_offset`; return False at the end of the data."""
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
        while True:
            if self._messages:
                return True
            batch = self._batch
            if batch is not None:
                if batch.left:
                    return True
                self.next_offset = batch.header.last_offset + 1  # compaction can remove the last records of a batch
                self.last_epoch = batch.header.partition_leader_epoch
                self._batch = None
            bounds = next(self._batches, None)
            if bounds is None:
                return False
            self._open(*bounds)

    def _open(self, position: int, size: int, magic: int) -> None:
        batch = self.records[position : position + size]
        if magic < _MAGIC:
            self._messages.extend(self._message_set_records(batch))
            return
        header = read_header(batch)
        if header.last_offset < self.next_offset:
            return
        if self._settings.checks_crcs:
            ensure_valid(batch)
        if self._is_skipped(header, batch):
            self.next_offset = header.last_offset + 1
            self.last_epoch = header.partition_leader_epoch
        else:
            self._batch = BatchRecords(self.partition, header, batch)

    def _is_skipped(self, header: BatchHeader, batch: memoryview) -> bool:
        if not self._settings.read_committed or header.producer_id == NO_PRODUCER_ID:
            return header.is_control
        while self._aborted and self._aborted[0].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.popleft().producer_id)
        if header.is_control:
            if BatchRecords(self.partition, header, batch).is_abort_marker():
                self._aborting.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborting

    def _message_set_records(self, batch: memoryview) -> Iterator[ConsumerRecord]:
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
