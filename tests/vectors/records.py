"""Vectors of record batches and message sets: read, built, invalid, appended, converted to older formats.

Kafka's compressed bytes depend on its libraries, so compressed results are compared by their description, without
checksum and size, and by their decompressed content. Errors are compared by their code, and those of corrupt or
invalid records by their message too.
"""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct, convert

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP_TYPE,
    BatchHeader,
    add_to_sequence,
    batch_bounds,
    ensure_valid,
    read_header,
)
from sluice.protocol.records.build import ABORT, COMMIT, build_batch, transaction_marker
from sluice.protocol.records.compression import MAX_SECTION_BYTES, NAMES, NONE, check_codec, decompress
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import Message, build_message_set, iter_messages, read_message
from sluice.protocol.records.log_validator import CLIENT, AppendConfig, LogValidator
from sluice.protocol.records.record import Record, iter_records, read_varint
from sluice.protocol.records.validate import check_produced, validate
from tests.vectors import Check, Vector

TIMESTAMP_TYPES = {
    "NO_TIMESTAMP_TYPE": NO_TIMESTAMP_TYPE,
    "CREATE_TIME": CREATE_TIME,
    "LOG_APPEND_TIME": LOG_APPEND_TIME,
}
CONTROL_TYPES = {"ABORT": ABORT, "COMMIT": COMMIT}
CODECS = {name: codec for codec, name in enumerate(NAMES)} | {"uncompressed": NONE}
SAME_MESSAGES = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
UNKNOWN = -1  # code of an error that Kafka does not have
# The parts that differ between two compressed forms of the same content.
OF_THE_COMPRESSED_BYTES = ("crc", "size_in_bytes")
# The settings of `log_validator` and `broker_append` for the invalid records, which the files do not contain.
INVALID_NOW_MS = 1700002000000
INVALID_FIRST_OFFSET = 100
INVALID_LEADER_EPOCH = 3


class RecordForm(Struct):
    offset: int
    timestamp: int
    key: str | None = None
    value: str | None = None
    headers: list[tuple[str, str | None]] = []
    control_type: str | None = None
    coordinator_epoch: int = -1

    def record(self) -> Record:
        if self.control_type is not None:
            return transaction_marker(
                CONTROL_TYPES[self.control_type],
                offset=self.offset,
                timestamp=self.timestamp,
                coordinator_epoch=self.coordinator_epoch,
            )
        headers = tuple((name, unhex(value)) for name, value in self.headers)
        return Record(self.offset, self.timestamp, unhex(self.key), unhex(self.value), headers)


class BuildForm(Struct):
    magic: int
    compression: str
    level: int | None
    base_offset: int
    last_offset: int | None
    timestamp_type: str
    log_append_time: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    partition_leader_epoch: int
    delete_horizon_ms: int
    records: list[RecordForm]

    def build(self) -> bytes:
        records = [form.record() for form in self.records]
        codec, timestamp_type = CODECS[self.compression], TIMESTAMP_TYPES[self.timestamp_type]
        if self.magic < 2:
            return build_message_set(
                records,
                self.magic,
                compression=codec,
                level=self.level,
                timestamp_type=timestamp_type,
                log_append_time=self.log_append_time,
                base_offset=self.base_offset,
            )
        return build_batch(
            records,
            base_offset=self.base_offset,
            last_offset=self.last_offset,
            compression=codec,
            level=self.level,
            timestamp_type=timestamp_type,
            log_append_time=self.log_append_time,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            transactional=self.transactional,
            control=self.control,
            partition_leader_epoch=self.partition_leader_epoch,
            delete_horizon_ms=self.delete_horizon_ms if self.delete_horizon_ms >= 0 else None,
        )


class RecordsVector(Struct):
    hex: str
    build: list[BuildForm]
    batches: list[Vector]


class ErrorForm(Struct):
    code: int
    message: str | None = None


class Outcome(Struct):
    """The result or the error of one step."""

    error: ErrorForm | None = None
    output_hex: str | None = None
    sizes: list[int] = []
    count: int = -1
    first_offset: int = -1
    last_offset: int = -1


class InvalidVector(Struct):
    hex: str
    batches: Outcome
    ensure_valid: list[ErrorForm | None]
    records: list[Outcome]
    produce_request: dict[str, ErrorForm | None]
    log_validator: Outcome
    broker_append: Outcome | None = None


class ConfigForm(Struct):
    compression: str
    timestamp_type: str
    now_ms: int
    first_offset: int
    leader_epoch: int
    compacted: bool
    before_max_ms: int
    after_max_ms: int


class RecordError(Struct):
    batch_index: int
    message: str


class AppendError(ErrorForm):
    record_errors: list[RecordError] = []


class AppendVector(Struct):
    input_hex: str
    config: ConfigForm
    error: AppendError | None
    output_hex: str | None = None
    batches: list[Vector] | None = None


class DownConvertVector(Struct):
    to_magic: int
    first_offset: int
    input_hex: str
    error: ErrorForm | None
    output_hex: str | None = None
    input_batches: list[Vector] | None = None
    output_batches: list[Vector] | None = None


def check_records(vector: Vector) -> list[str]:
    """Check the description of bytes, and bytes built from their source."""
    given = convert(vector, RecordsVector)
    data = bytes.fromhex(given.hex)
    built = b"".join(form.build() for form in given.build)
    return differences("batches", describe(data), given.batches) + same_records(
        "built", built, given.hex, given.batches
    )


def check_invalid(vector: Vector) -> list[str]:
    """Check the result of each of Kafka's steps for invalid bytes."""
    given = convert(vector, InvalidVector)
    data = bytes.fromhex(given.hex)
    batches, code = until_error(batch_bounds(data))
    failures = differences("batches.sizes", [size for _, size, _ in batches], given.batches.sizes)
    failures += differences("batches.error", code, code_of(given.batches.error))
    for index, (position, size, magic) in enumerate(batches):
        batch = memoryview(data)[position : position + size]
        code = error_code(partial(ensure_valid, batch) if magic == 2 else read_message(batch).ensure_valid)
        failures += differences(f"ensure_valid[{index}]", code, code_of(given.ensure_valid[index]))
        count, code = count_records(batch, magic)
        failures += differences(f"records[{index}].count", count, given.records[index].count)
        failures += differences(f"records[{index}].error", code, code_of(given.records[index].error))
    for version, error in given.produce_request.items():
        code = error_code(partial(check_produced, int(version), data))
        failures += differences(f"produce_request.{version}", code, code_of(error))
    failures += check_log_validator(data, given.log_validator)
    if given.broker_append is not None:
        failures += check_broker_append(data, given.broker_append)
    return failures


def check_log_validator(data: bytes, expected: Outcome) -> list[str]:
    """Check `LogValidator` alone, with the codec of the batches and without their checksums."""
    output = b""

    def append() -> None:
        nonlocal output
        codecs = [codec_of(data[position : position + size], magic) for position, size, magic in batch_bounds(data)]
        codec = next((codec for codec in codecs if codec != NONE), NONE)
        output = bytes(
            LogValidator(
                memoryview(data),
                codec,
                INVALID_FIRST_OFFSET,
                INVALID_NOW_MS,
                INVALID_LEADER_EPOCH,
                AppendConfig(partition="t-0"),
                CLIENT,
            )
            .assign_offsets()
            .data
        )

    code = error_code(append)
    failures = differences("log_validator.error", code, code_of(expected.error))
    if code is None and expected.output_hex is not None:
        failures += same_records("log_validator", output, expected.output_hex)
    return failures


def check_broker_append(data: bytes, expected: Outcome) -> list[str]:
    """Check a broker's response on an empty log: the offsets of the records, or the error and its message."""
    buffer = bytearray(data)
    try:
        header = validate(memoryview(buffer), 0, INVALID_NOW_MS, 0, AppendConfig(partition="t-0")).header
    except InvalidRecords as error:
        failures = differences("broker_append.error", int(error.code), code_of(expected.error))
        if expected.error is not None and error.code in SAME_MESSAGES:
            failures += differences("broker_append.error.message", error.message, expected.error.message)
        return failures + differences("the refused records", buffer.hex(), data.hex())
    failures = differences("broker_append.error", None, code_of(expected.error))
    offsets = (-1, -1) if header is None else (header.base_offset, header.last_offset)
    return failures + differences("broker_append offsets", offsets, (expected.first_offset, expected.last_offset))


def check_append(vector: Vector) -> list[str]:
    given = convert(vector, AppendVector)
    config = AppendConfig(
        timestamp_type=TIMESTAMP_TYPES[given.config.timestamp_type],
        compression=None if given.config.compression == "producer" else CODECS[given.config.compression],
        before_max_ms=given.config.before_max_ms,
        after_max_ms=given.config.after_max_ms,
        compacted=given.config.compacted,
        partition="t-0",
    )
    try:
        # In place and with a copy: a broker's receive buffer is writable, these bytes are not.
        given_bytes = memoryview(bytearray.fromhex(given.input_hex))
        first_offset, now_ms, leader_epoch = given.config.first_offset, given.config.now_ms, given.config.leader_epoch
        appendable = validate(given_bytes, first_offset, now_ms, leader_epoch, config)
        copied = validate(bytes.fromhex(given.input_hex), first_offset, now_ms, leader_epoch, config)
    except InvalidRecords as error:
        failures = differences("error", int(error.code), code_of(given.error))
        errors = [(form.batch_index, form.message) for form in given.error.record_errors] if given.error else []
        return failures + differences("record_errors", error.record_errors, errors)
    if given.error is not None or given.output_hex is None:
        return differences("error", None, code_of(given.error))
    failures = same_records("output", bytes(appendable.data), given.output_hex, given.batches)
    failures += differences("copied", bytes(copied.data).hex(), bytes(appendable.data).hex())
    headers = [read_header(appendable.data, position) for position, _, _ in batch_bounds(appendable.data)]
    return failures + differences("headers", [appendable.header], headers)


def check_down_convert(vector: Vector) -> list[str]:
    """Check stored batches as sent to old consumers."""
    given = convert(vector, DownConvertVector)
    data = bytes.fromhex(given.input_hex)
    failures = [] if given.input_batches is None else differences("input", describe(data), given.input_batches)
    try:
        output = down_convert(data, given.to_magic, given.first_offset)
    except InvalidRecords as error:
        return failures + differences("error", int(error.code), code_of(given.error))
    if given.error is not None or given.output_hex is None:
        return failures + differences("error", None, code_of(given.error))
    return failures + same_records("output", output, given.output_hex, given.output_batches)


def same_records(what: str, actual: bytes, expected_hex: str, batches: list[Vector] | None = None) -> list[str]:
    """Return the differences of `actual` from the expected bytes, or from their content if they are compressed."""
    expected = bytes.fromhex(expected_hex)
    described = describe(expected) if batches is None else batches
    if any(codec_of(expected[at : at + size], magic) for at, size, magic in batch_bounds(expected)):
        return differences(what, without_compressed(describe(actual)), without_compressed(described))
    return differences(f"{what} bytes", actual.hex(), expected_hex) + differences(what, describe(actual), described)


def without_compressed(batches: list[Vector]) -> list[Vector]:
    return [
        {
            key: value
            for key, value in batch.items()
            if "uncompressed_hex" not in batch or key not in OF_THE_COMPRESSED_BYTES
        }
        for batch in batches
    ]


def describe(data: bytes) -> list[Vector]:
    """Return the vectors' description of `data`."""
    return [
        describe_batch(data[position : position + size])
        if magic == 2
        else describe_message(data[position : position + size])
        for position, size, magic in batch_bounds(data)
    ]


def describe_batch(batch: bytes) -> Vector:
    """Describe one magic 2 batch."""
    header = read_header(batch)
    section, _ = decompress(header.compression, batch[HEADER_BYTES:], 2, MAX_SECTION_BYTES)
    records = zip(iter_records(batch), record_sizes(bytes(section)), strict=False)
    form: Vector = {
        "magic": header.magic,
        "size_in_bytes": header.size_in_bytes,
        "compression": NAMES[header.compression],
        "attributes": header.attributes,
        "crc": header.crc,
        "is_valid": error_code(lambda: ensure_valid(memoryview(batch))) is None,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "next_offset": header.last_offset + 1,
        "timestamp_type": name_of(TIMESTAMP_TYPES, header.timestamp_type),
        "max_timestamp": header.max_timestamp,
        "count": header.record_count,
        "base_timestamp": header.base_timestamp,
        "partition_leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "records": [describe_record(record, size, header) for record, size in records],
    }
    if header.has_delete_horizon:
        form["delete_horizon_ms"] = header.base_timestamp
    if header.compression != NONE:
        form["uncompressed_hex"] = bytes(section).hex()
    return form


def record_sizes(section: bytes) -> Iterator[int]:
    """Yield the size in bytes of each record, including its length field."""
    position = 0
    while position < len(section):
        size, body = read_varint(section, position)
        yield body + size - position
        position = body + size


def describe_record(record: Record, size: int, header: BatchHeader) -> Vector:
    """Describe one record of a magic 2 batch."""
    form: Vector = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "size_in_bytes": size,
        "sequence": -1
        if header.base_sequence < 0
        else add_to_sequence(header.base_sequence, record.offset - header.base_offset),
        "key": hexed(record.key),
        "value": hexed(record.value),
        "headers": [[name, hexed(value)] for name, value in record.headers],
    }
    if header.is_control and record.key is not None and record.value is not None:
        form["control_type"] = name_of(CONTROL_TYPES, int.from_bytes(record.key[2:4], "big"))
        form["coordinator_epoch"] = int.from_bytes(record.value[2:6], "big")
    return form


def describe_message(data: bytes) -> Vector:
    """Describe one message of magic 0 or 1, or a compressed set."""
    outer = read_message(data)
    messages = list(iter_messages(outer))
    form: Vector = {
        "magic": outer.magic,
        "size_in_bytes": len(data),
        "compression": NAMES[outer.compression],
        "attributes": outer.attributes,
        "crc": outer.crc,
        "is_valid": outer.crc == outer.computed_crc,
        "base_offset": messages[0].offset,
        "last_offset": outer.offset,
        "next_offset": outer.offset + 1,
        "timestamp_type": name_of(TIMESTAMP_TYPES, outer.timestamp_type),
        "max_timestamp": outer.timestamp,
        "count": None,
        "records": [describe_inner(message) for message in messages],
    }
    if outer.compression != NONE:
        section, _ = decompress(outer.compression, outer.value or b"", outer.magic, MAX_SECTION_BYTES)
        form["uncompressed_hex"] = bytes(section).hex()
    return form


def describe_inner(message: Message) -> Vector:
    """Describe the content of one uncompressed message."""
    record = message.record()
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "size_in_bytes": LOG_OVERHEAD + len(message.body),
        "key": hexed(record.key),
        "value": hexed(record.value),
    }


def count_records(batch: memoryview, magic: int) -> tuple[int, int | None]:
    """Return the number of iterated records, the checksum of checked messages, and the code of the final error."""
    count = 0
    try:
        if magic == 2:
            if len(batch) < HEADER_BYTES:  # Java reads beyond its buffer here; we raise an error
                return 0, UNKNOWN
            for _ in iter_records(batch):
                count += 1
        else:
            for message in iter_messages(read_message(batch)):
                message.ensure_valid()
                count += 1
    except InvalidRecords as error:
        return count, int(error.code)
    return count, None


def codec_of(batch: bytes, magic: int) -> int:
    """Return the codec id of one batch or message. Raise InvalidRecords for an unknown one."""
    return read_message(batch).compression if magic < 2 else check_codec(batch[ATTRIBUTES_AT + 1] & CODEC_MASK)


def until_error(items: Iterator[tuple[int, int, int]]) -> tuple[list[tuple[int, int, int]], int | None]:
    """Return the items, and the code of the error that ends them."""
    given = []
    try:
        for item in items:
            given.append(item)  # noqa: PERF402  items before the error count
    except InvalidRecords as error:
        return given, int(error.code)
    return given, None


def error_code(step: Callable[[], object]) -> int | None:
    """Return the code of the error that `step` raises; None without one."""
    try:
        step()
    except InvalidRecords as error:
        return int(error.code)
    return None


def code_of(error: ErrorForm | None) -> int | None:
    return None if error is None else error.code


def name_of(names: dict[str, int], value: int) -> str:
    return next(name for name, number in names.items() if number == value)


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def hexed(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def differences(what: str, actual: object, expected: object) -> list[str]:
    """Return the first difference and its two sides; nothing if equal."""
    if actual == expected:
        return []
    if isinstance(actual, dict) and isinstance(expected, dict):
        missing = object()
        for key in [*expected, *(key for key in actual if key not in expected)]:
            inner = differences(f"{what}.{key}", actual.get(key, missing), expected.get(key, missing))
            if inner:
                return inner
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for index, (left, right) in enumerate(zip(actual, expected, strict=True)):
            inner = differences(f"{what}[{index}]", left, right)
            if inner:
                return inner
    return [f"{what} is {shown(actual)}, expected {shown(expected)}"]


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


KINDS: dict[str, Check] = {
    "records-": check_records,
    "records_invalid-": check_invalid,
    "records_append-": check_append,
    "records_downconvert-": check_down_convert,
}
