"""The loop that reads single records, generated as source and compiled once.

A function call for each varint would dominate the cost, so `_VARINT` and `_BYTES` inline the short forms. The result is
    read_records(batch, records, stop, first_offset, run) -> (stop, places)

It appends to `records` until `batch.left` is `stop`. A record below `first_offset` is skipped and lowers `stop`. After
`run` records of one size it returns early, with the field positions of the last one.
"""

import linecache
from collections.abc import Callable
from textwrap import indent
from typing import Any, NamedTuple, Protocol

from sluice.client.consumer.record import ConsumerRecord, Header
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import LOG_APPEND_TIME, BatchHeader
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import VarintError, read_varint, read_varlong

_OFFSET_CODES = {1: "B", 2: "H"}

_VARINT = """
byte = section[position]
if byte < 128:
    position += 1
    {name} = {base}({decode_byte})
elif (second := section[position + 1]) < 128:
    position += 2
    {name} = {base}({decode_two})
else:
    delta, position = {read}(section, position)
    {name} = {base}delta
"""
_BYTES = """
{name}_at = position
byte = section[position]
if byte == 1:  # a length of -1
    position += 1
    {name} = None
elif byte < 128 and not byte & 1:
    position += 1 + (byte >> 1)
    {name} = section[{name}_at + 1 : position]
elif not byte & 1 and (second := section[position + 1]) < 128:
    position += 2 + (second << 6 | (byte & 127) >> 1)
    {name} = section[{name}_at + 2 : position]
else:
    size, position = read_varint(section, position)
    {name} = None if size < 0 else section[position : position + size]
    position += max(size, 0)
"""
_LOOP = """
def read_records(batch, records, stop, first_offset, run):
    section, position, left, header = batch.section, batch.position, batch.left, batch.header
    topic, partition = batch.partition
    base_offset, base_timestamp, epoch = header.base_offset, header.base_timestamp, header.partition_leader_epoch
    timestamp_type = header.timestamp_type
    set_timestamp = header.max_timestamp if timestamp_type == LOG_APPEND_TIME else None
    append, record_of = records.append, ConsumerRecord
    places = None
    size_before = in_a_row = 0
    try:
        while left > stop:
            start = position
{size}
            end = position + size
            position += 1  # past the attributes
            timestamp_at = position
{timestamp}
            offset_at = position
{offset}
{key}
{value}
            if section[position]:
                headers, position = read_headers(section, position)
            else:
                headers = ()
                position += 1
            if position != end:
                raise unreadable_record(header, left)
            left -= 1
            if offset < first_offset:
                if stop:
                    stop -= 1
                continue
            if set_timestamp is not None:
                timestamp = set_timestamp
            append(record_of(topic, partition, offset, timestamp, timestamp_type, key, value, headers, epoch))
            size = end - start
            if size != size_before:
                size_before, in_a_row = size, 0
                continue
            in_a_row += 1
            if in_a_row >= run and value is not None and not headers and key_at - offset_at < 3:
                places = RecordPlaces(start, timestamp_at, offset_at, key_at, key, value_at, value, end)
                break
    except (IndexError, VarintError):
        raise unreadable_record(header, left) from None
    batch.position, batch.left = position, left
    return stop, places
"""


class RecordPlaces(NamedTuple):
    """The field positions of a record without headers, and its key and value."""

    start: int
    timestamp_at: int
    offset_at: int
    key_at: int
    key: bytes | None
    value_at: int
    value: bytes
    end: int

    @property
    def layout(self) -> str:
        """A `struct` format: length + attributes, timestamp, offset, key length, key, value length, value, headers."""
        key_bytes, value_bytes = len(self.key or b""), len(self.value)
        key_length = self.value_at - self.key_at - key_bytes
        value_length = self.end - 1 - value_bytes - self.value_at
        offset = _OFFSET_CODES[self.key_at - self.offset_at]
        return (
            f"<{self.timestamp_at - self.start}s{self.offset_at - self.timestamp_at}s{offset}{key_length}s{key_bytes}s"
            f"{value_length}s{value_bytes}sB"
        )


class _Batch(Protocol):
    section: bytes
    position: int
    left: int

    @property
    def header(self) -> BatchHeader: ...

    @property
    def partition(self) -> TopicPartition: ...


def read_headers(section: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    """Return the headers at `position` and the position after them; raise IndexError or VarintError."""
    count, position = read_varint(section, position)
    if count < 0:
        raise IndexError(position)
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(section, position)
        if size < 0:
            raise IndexError(position)
        name = str(section[position : position + size], "utf-8", "replace")
        size, position = read_varint(section, position + size)
        value = None if size < 0 else section[position : position + size]
        position += max(size, 0)
        headers.append((name, value))
    return tuple(headers), position


def unreadable_record(header: BatchHeader, left: int) -> InvalidRecords:
    """Return the error for a record; `left` counts it and those after it."""
    number = header.record_count - left
    return InvalidRecords(
        ErrorCode.INVALID_RECORD, f"record {number} of the batch at offset {header.base_offset} cannot be read"
    )


def _source() -> str:
    unsigned = {"decode_byte": "byte >> 1", "decode_two": "second << 6 | (byte & 127) >> 1", "read": "read_varint"}
    signed = {
        "decode_byte": "byte >> 1 ^ -(byte & 1)",
        "decode_two": "(second << 6 | (byte & 127) >> 1) ^ -(byte & 1)",
        "read": "read_varlong",
    }
    fields = {
        "size": _VARINT.format(name="size", base="", **unsigned),
        "timestamp": _VARINT.format(name="timestamp", base="base_timestamp + ", **signed),
        "offset": _VARINT.format(name="offset", base="base_offset + ", **unsigned),
        "key": _BYTES.format(name="key"),
        "value": _BYTES.format(name="value"),
    }
    return _LOOP.format(**{name: indent(text.strip(), " " * 12) for name, text in fields.items()})


ReadRecords = Callable[[_Batch, list[ConsumerRecord], int, int, int], tuple[int, RecordPlaces | None]]


def _compile() -> ReadRecords:
    text, file = _source(), f"<{__name__}.read_records>"
    names: dict[str, Any] = {
        "LOG_APPEND_TIME": LOG_APPEND_TIME,
        "ConsumerRecord": ConsumerRecord,
        "RecordPlaces": RecordPlaces,
        "VarintError": VarintError,
        "read_headers": read_headers,
        "read_varint": read_varint,
        "read_varlong": read_varlong,
        "unreadable_record": unreadable_record,
    }
    exec(compile(text, file, "exec"), names)  # noqa: S102  # no external input
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    function: ReadRecords = names["read_records"]
    return function


read_records = _compile()
