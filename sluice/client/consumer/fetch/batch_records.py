"""The records of one batch, read a few at a time. `take` is the hot loop of a consumer.

The records section is converted to `bytes` once: indexing bytes takes half the time of indexing a memoryview.
"""

from struct import Struct, iter_unpack, unpack_from

from sluice.client.consumer.record import ConsumerRecord
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from sluice.protocol.records.compression import MAX_SECTION_BYTES, decompress
from sluice.protocol.records.record import read_varlong

from .record_loop import RecordPlaces, read_records

_STOP = b"\0"  # terminates a varint whose last byte has the continuation bit
# `_take_alike` is tried after this many records of one size in a row, less often if it then reads fewer than this.
_ALIKE, _WORTH_IT = 2, 10
# For an offset delta of one or two bytes: the mask of its continuation bits, and their value if the varint ends with
# the field.
_ENDS = {1: (0x80, 0), 2: (0x8080, 0x80)}
_CONTROL_KEY = Struct(">hh")
ABORT_MARKER = 0


class BatchRecords:
    def __init__(self, partition: TopicPartition, header: BatchHeader, batch: memoryview) -> None:
        """Raise InvalidRecords if decompression fails."""
        self.partition = partition
        self.header = header
        section, failure = decompress(header.compression, batch[HEADER_BYTES:], header.magic, MAX_SECTION_BYTES)
        if failure is not None:
            raise failure
        self.section = bytes(section)
        self.position = 0
        self.left = header.record_count

    def take(self, records: list[ConsumerRecord], most: int, first_offset: int) -> None:
        """Append up to `most` records, from `first_offset` on; raise InvalidRecords."""
        stop = max(self.left - most, 0)
        run = _ALIKE
        while self.left > stop:
            stop, like = read_records(self, records, stop, first_offset, run)
            if like is None:
                return
            if self._take_alike(like, records, self.left - stop, first_offset) < _WORTH_IT:
                run *= 4

    def _take_alike(self, like: RecordPlaces, records: list[ConsumerRecord], most: int, first_offset: int) -> int:
        """Append up to `most` records after `like` that have its layout; return their number.

        A record has the same layout if its lengths are equal, and if each varint ends with its field.
        """
        section, header = self.section, self.header
        topic, partition = self.partition
        base_offset, base_timestamp, epoch = header.base_offset, header.base_timestamp, header.partition_leader_epoch
        timestamp_type = header.timestamp_type
        is_set, timestamp = timestamp_type == LOG_APPEND_TIME, header.max_timestamp
        size = like.end - like.start
        count = min(most, (len(section) - like.end) // size)
        rest = memoryview(section)[like.end : like.end + count * size]
        layout, (continued, ends) = like.layout, _ENDS[like.key_at - like.offset_at]
        (same_head, _, _, same_key_length, _, same_value_length, _, _) = unpack_from(layout, section, like.start)
        stamp_before, has_key = b"", like.key is not None
        append, record_of, before = records.append, ConsumerRecord, len(records)
        for head, stamp, delta, key_length, key, value_length, value, headers in iter_unpack(layout, rest):
            if head != same_head or key_length != same_key_length or value_length != same_value_length or headers:
                break
            if stamp != stamp_before and not is_set:
                timestamp_delta, width = read_varlong(stamp + _STOP, 0)
                if width != len(stamp):
                    break
                timestamp, stamp_before = base_timestamp + timestamp_delta, stamp
            offset = base_offset + (delta >> 8 << 6 | (delta & 127) >> 1)
            if delta & continued != ends or offset < first_offset:
                break
            append(
                record_of(
                    topic, partition, offset, timestamp, timestamp_type, key if has_key else None, value, (), epoch
                )
            )
        taken = len(records) - before
        self.left -= taken
        self.position += taken * size
        return taken

    def is_abort_marker(self) -> bool:
        records: list[ConsumerRecord] = []
        self.take(records, 1, self.header.base_offset)
        key = records[0].key if records else None
        return key is not None and len(key) >= _CONTROL_KEY.size and _CONTROL_KEY.unpack_from(key)[1] == ABORT_MARKER
