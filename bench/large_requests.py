"""The largest requests of an API: each array, string, bytes and tagged field in turn is as large as the size allows.

They are built as bytes from the declarations of the fields, because millions of message objects need gigabytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.wire import MAX_ELEMENTS, MAX_TAGGED_FIELDS
from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from sluice.protocol.types import GROUP_ID, PARTITION, TOPIC_ID, TOPIC_NAME
from tests.support.records import produce
from tests.support.wire import frame

T = TypeVar("T")
TOPIC = "t"
_NAMES = {TOPIC_NAME: TOPIC.encode(), GROUP_ID: b"g"}
# Without these, most requests would be refused before their elements are looked at. Names may follow that of an API.
_UNSET = "replica_id timestamp session_epoch current_leader_epoch generation_id generation_id_or_member_epoch"
_NUMBERS = dict.fromkeys([*_UNSET.split(), "num_partitions", "replication_factor"], -1)
_NUMBERS |= {"acks": 1, "timeout_ms": 30_000, "max_bytes": 1000, "partition_max_bytes": 1000, "count": 1001}
_NUMBERS |= {"resource_type": 2, "resource_type_filter": 2, "pattern_type_filter": 3, "resource_pattern_type": 3}
_NUMBERS |= {"operation": 3, "permission_type": 3, "endpoint_type": 1, "mechanism": 1, "iterations": 4096}
_NUMBERS |= dict.fromkeys(("session_timeout_ms", "rebalance_timeout_ms", "transaction_timeout_ms"), 10_000)
_NUMBERS |= {"response_partition_limit": 2000, "AlterClientQuotas.value": 0x40F86A0000000000}  # 100,000.0
_NUMBERS |= {"StreamsGroupHeartbeat.replication_factor": 1}
_TEXTS = {"member_id": b"AAAAAAAAAAAAAAAAAAAAAQ", "JoinGroup.member_id": b"", "principal": b"User:x", "host": b"*"}
_TEXTS |= {"protocol_type": b"consumer", "server_assignor": b"uniform", "entity_type": b"client-id"}
_TEXTS |= {"AlterClientQuotas.key": b"producer_byte_rate", "value": b"1000", "resource_name": b"t"}
_TEXTS |= {"AlterConfigs.name": b"retention.ms", "IncrementalAlterConfigs.name": b"retention.ms"}
# Arrays that other fields exclude, or that must be empty at first.
_EMPTY = {"assignments", "source_topic_regex", "active_tasks", "standby_tasks", "warmup_tasks", "broker_ids"}
_EMPTY |= {"acknowledgement_batches", "ConsumerGroupHeartbeat.topic_partitions", "copartition_groups", "task_offsets"}
_EMPTY |= {"task_end_offsets", "repartition_sink_topics", "repartition_source_topics", "CreateTopics.configs"}
_MARK = b"\xfeMARKED8"  # replaced by a number of the same length; no other field has these bytes
_INDEX_MARK = b"\xfe\xfdM4"  # likewise, of a partition index
_HEADER = 40  # more than a header needs
_LONGEST_STRING = 32_767  # before flexible versions


class Shape(NamedTuple):
    """One large request of an API."""

    name: str
    frame: bytes


def shapes(api_key: int, version: int, size: int, topic_id: bytes) -> Iterator[Shape]:
    """Yield the requests of `size` bytes, or of as many as the limits of elements allow, for the topic `t`."""
    api = API_KEYS[api_key]
    encoder = _Encoder(api.name, version, api.flexible_since <= version, size - _HEADER, topic_id)
    for path in _paths(api.request, version):
        name = ".".join(field.name for field in path)
        for distinct in (False, True) if path[-1].is_array else (False,):
            body = encoder.encode(api.request, path, distinct=distinct)
            if body is not None:
                yield Shape(f"{name}{' distinct' if distinct else ''}", _frame(api_key, version, body))
    if encoder.flexible:
        body = encoder.encode(api.request, (), distinct=False)
        assert body is not None
        one, many = body[:-1] + b"\1" + _tagged(100, size - _HEADER), body[:-1] + _many_tagged(size)
        yield Shape("one tagged field", _frame(api_key, version, one))
        yield Shape("10,000 tagged fields", _frame(api_key, version, many))


def record_shapes(size: int) -> Iterator[Shape]:
    """Yield Produce requests with records of `size` bytes, and with compressed ones that expand."""
    now_ms = 1_700_000_000_000
    tiny = [Record(offset, now_ms, None, None) for offset in range(min(size // 8, 2_000_000))]
    bomb = [Record(0, now_ms, None, bytes(size - 100))]
    for name, records in (("one record", bomb), ("tiny records", tiny)):
        for codec, label in ((0, "plain"), (1, "gzip"), (2, "snappy"), (3, "lz4"), (4, "zstd")):
            request = produce(9, build_batch(records, compression=codec))
            yield Shape(f"{name}, {label}", frame(request, 9, client_id="bench"))


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    api = API_KEYS[api_key]
    header = api_key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\0\5bench"
    if api.request_header_version(version) == 2:
        header += b"\0"
    return (len(header) + len(body)).to_bytes(4) + header + body


def _paths(cls: type[Message], version: int) -> Iterator[tuple[Field, ...]]:
    """Yield the paths of the fields of variable length."""
    for field in fields_of(cls):
        if version not in field.versions or field.tag is not None:
            continue
        if field.is_array or (field.type is not None and field.type.name in ("string", "bytes", "records")):
            yield (field,)
        if field.struct is not None:
            yield from ((field, *rest) for rest in _paths(field.struct, version))


class _Encoder(NamedTuple):
    api: str
    version: int
    flexible: bool
    size: int
    topic_id: bytes

    def encode(self, cls: type[Message], path: Sequence[Field], *, distinct: bool) -> bytes | None:
        """Return a body whose last field of `path` is as large as the size allows; None if it cannot be large."""
        if path and not path[-1].is_array and not self._is_long(path[-1]):
            return None
        if distinct and not _marks(self._element(path[-1], (), True)):
            return None
        return self._struct(cls, path, distinct)

    def _is_long(self, field: Field) -> bool:
        return self.flexible or (field.type is not None and field.type.name != "string") or self.size < _LONGEST_STRING

    def _struct(self, cls: type[Message], path: Sequence[Field], distinct: bool, marked: bool = False) -> bytes:
        out = b""
        for field in fields_of(cls):
            if self.version not in field.versions or field.tag is not None:
                continue
            if not path or field is not path[0]:
                out += self._usual(field, marked)
                marked = marked and not _marks(out)
            elif len(path) > 1:
                element = self._element(field, path[1:], distinct)
                count = min(max(self.size // len(element), 1), MAX_ELEMENTS)
                out += self._count(count) + element * count if field.is_array else self._presence(field) + element
            elif field.is_array:
                out += self._filled(field, distinct)
            else:
                out += self._sized(field, b"x" * self.size)
        return out + b"\0" if self.flexible else out

    def _element(self, field: Field, path: Sequence[Field], distinct: bool) -> bytes:
        if field.struct is not None:
            return self._struct(field.struct, path, distinct, marked=distinct and not path)
        return self._scalar(field, distinct)

    def _filled(self, field: Field, distinct: bool) -> bytes:
        element = self._element(field, (), distinct)
        count = min(max(self.size // len(element), 1), MAX_ELEMENTS)
        if not distinct:
            return self._count(count) + element * count
        if _MARK in element:
            before, after = element.split(_MARK, 1)
            return self._count(count) + b"".join(b"%b%08d%b" % (before, number, after) for number in range(count))
        before, after = element.split(_INDEX_MARK, 1)
        return self._count(count) + b"".join(before + number.to_bytes(4) + after for number in range(count))

    def _usual(self, field: Field, marked: bool) -> bytes:
        if not field.is_array:
            if field.struct is not None:
                return self._presence(field) + self._struct(field.struct, (), False)
            return self._scalar(field, marked)
        if field.name in _EMPTY or f"{self.api}.{field.name}" in _EMPTY:
            return self._count(0)
        return self._count(1) + self._element(field, (), False)

    def _presence(self, field: Field) -> bytes:
        return b"\1" if self.version in field.null else b""

    def _scalar(self, field: Field, marked: bool) -> bytes:
        assert field.type is not None
        match field.type.name:
            case "string":
                entity = field.meaning.entity
                name = _NAMES.get(entity, b"x") if isinstance(entity, str) else b"x"
                return self._sized(field, _MARK if marked else self._usual_value(_TEXTS, field, name))
            case "bytes" | "records":
                return self._sized(field, b"")
            case "uuid" if field.meaning.entity == TOPIC_ID:
                return self.topic_id
            case "int32" if marked and field.meaning.entity == PARTITION:
                return _INDEX_MARK
            case _:
                return self._usual_value(_NUMBERS, field, 0).to_bytes(field.type.size, signed=True)

    def _usual_value(self, values: Mapping[str, T], field: Field, default: T) -> T:
        return values.get(f"{self.api}.{field.name}", values.get(field.name, default))

    def _sized(self, field: Field, data: bytes) -> bytes:
        if self.flexible and field.compact:
            return _varint(len(data) + 1) + data
        assert field.type is not None
        return len(data).to_bytes(2 if field.type.name == "string" else 4) + data

    def _count(self, count: int) -> bytes:
        return _varint(count + 1) if self.flexible else count.to_bytes(4)


def _marks(data: bytes) -> bool:
    return _MARK in data or _INDEX_MARK in data


def _many_tagged(size: int) -> bytes:
    each = max((size - _HEADER) // MAX_TAGGED_FIELDS, 1)
    return _varint(MAX_TAGGED_FIELDS) + b"".join(_tagged(100 + tag, each) for tag in range(MAX_TAGGED_FIELDS))


def _tagged(tag: int, size: int) -> bytes:
    return _varint(tag) + _varint(size) + bytes(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
