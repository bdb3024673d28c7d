"""The fetched data of one partition, read batch by batch on demand (Kafka's CompletedFetch).

With `isolation.level=read_committed`, records of aborted transactions are skipped: from the first offset in the
response to the producer's abort marker.
"""

from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from struct import Struct
from typing import NamedTuple

from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.records.batch import NO_PRODUCER_ID, BatchHeader, batch_bounds, ensure_valid, read_header
from sluice.protocol.records.build import ABORT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import iter_messages, read_message
from sluice.protocol.records.record import iter_records

from .fetch_session import FetchFrom

_MAGIC = 2
_CONTROL_KEY = Struct(">hh")  # version and type


class FetchSettings(NamedTuple):
    checks_crcs: bool
    read_committed: bool


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
        self._unread = self._read()
        self._next: ConsumerRecord | None = None
        self._end = position.offset, NO_EPOCH  # of the last batch that was read, and its leader epoch
        self._broken: InvalidRecords | None = None  # set at the first unreadable record
        self._aborted = deque(sorted(data.aborted_transactions or (), key=attrgetter("first_offset")))
        self._aborting: set[int] = set()  # producers within an aborted transaction

    def take(self, records: list[ConsumerRecord], most: int) -> bool:
        """Append up to `most` records; return whether there may be more.

        Raise KafkaException at an unreadable record, after appending those before it.
        """
        before = len(records)
        try:
            while (record := self._peek()) is not None:
                if len(records) - before == most:
                    return True
                self._next = None
                records.append(record)
                self.next_offset, self.last_epoch = record.offset + 1, record.leader_epoch
        except InvalidRecords as error:
            self._broken = error
            raise KafkaException(
                f"the next record of {self.partition}, at offset {self.next_offset}, cannot be read: {error}; "
                "seek past it to continue"
            ) from error
        return False

    def _peek(self) -> ConsumerRecord | None:
        if self._broken is not None:
            raise self._broken
        if self._next is None:
            try:
                self._next = next(self._unread, None)
            finally:
                if self._end[0] > self.next_offset:  # compaction can remove the last records of a batch
                    self.next_offset, self.last_epoch = self._end
        return self._next

    def _read(self) -> Iterator[ConsumerRecord]:
        data = self.data.records or b""
        assert isinstance(data, bytes | memoryview), "only a sender has records in parts"
        records = memoryview(data)
        for position, size, magic in batch_bounds(records):
            batch = records[position : position + size]
            if magic < _MAGIC:
                yield from self._message_set_records(batch)
                continue
            header = read_header(batch)
            if header.last_offset < self.next_offset:
                continue
            if self._settings.checks_crcs:
                ensure_valid(batch)
            if not self._is_skipped(header, batch):
                yield from self._batch_records(header, batch)
            self._end = header.last_offset + 1, header.partition_leader_epoch

    def _batch_records(self, header: BatchHeader, batch: memoryview) -> Iterator[ConsumerRecord]:
        for record in iter_records(batch):
            if record.offset >= self.next_offset:
                yield ConsumerRecord(
                    *self.partition,
                    record.offset,
                    record.timestamp,
                    header.timestamp_type,
                    record.key,
                    record.value,
                    record.headers,
                    header.partition_leader_epoch,
                )

    def _is_skipped(self, header: BatchHeader, batch: memoryview) -> bool:
        if not self._settings.read_committed or header.producer_id == NO_PRODUCER_ID:
            return header.is_control
        while self._aborted and self._aborted[0].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.popleft().producer_id)
        if header.is_control:
            if _is_abort_marker(batch):
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


def _is_abort_marker(batch: memoryview) -> bool:
    record = next(iter_records(batch), None)
    key = b"" if record is None else record.key or b""
    return len(key) >= _CONTROL_KEY.size and _CONTROL_KEY.unpack_from(key)[1] == ABORT
