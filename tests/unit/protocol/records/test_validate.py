"""Validation of produced records by the broker: in place if possible, with rejections in Kafka's order."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import LOG_APPEND_TIME, BatchHeader, batch_bounds, ensure_valid, read_header
from sluice.protocol.records.build import COMMIT, build_batch, build_transaction_marker, stamp_checksum
from sluice.protocol.records.compression import GZIP, NAMES, NONE, ZSTD
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge
from sluice.protocol.records.legacy import build_message_set, iter_messages, read_message
from sluice.protocol.records.log_validator import CLIENT, COORDINATOR, Appendable, AppendConfig, LogValidator
from sluice.protocol.records.record import Record, iter_records
from sluice.protocol.records.validate import analyze, check_produced, validate
from tests.unit.protocol.records.samples import NOW_MS, PLAIN, record_lists

CODECS = range(len(NAMES))
DEFAULTS = AppendConfig()
KEYED = [Record(r.offset, r.timestamp, r.key or b"k", r.value, r.headers) for r in PLAIN]
OLD = [Record(r.offset, r.timestamp, r.key, r.value) for r in PLAIN]
FIRST_OFFSET, LEADER_EPOCH = 1000, 7
MAX_TIMESTAMP = max(record.timestamp for record in PLAIN)


def changed(batch: bytes, at: int, form: str, value: int) -> bytes:
    """Return `batch` with one field changed and a valid checksum."""
    copy = bytearray(batch)
    struct.pack_into(form, copy, at, value)
    stamp_checksum(copy)
    return bytes(copy)


def append(data: bytes, config: AppendConfig = DEFAULTS, origin: int = CLIENT) -> Appendable:
    return validate(memoryview(bytearray(data)), FIRST_OFFSET, NOW_MS, LEADER_EPOCH, config, origin)


def header_of(stored: Appendable) -> BatchHeader:
    assert stored.header is not None
    return stored.header


def refusal(data: bytes, config: AppendConfig = DEFAULTS) -> InvalidRecords:
    """Return the error for `data`, and check that `data` is unchanged."""
    buffer = bytearray(data)
    with pytest.raises(InvalidRecords) as error:
        validate(memoryview(buffer), FIRST_OFFSET, NOW_MS, LEADER_EPOCH, config)
    assert buffer == data, "rejected data is unchanged"
    return error.value


def test_defaults_are_kafkas() -> None:
    limits = DEFAULTS.max_message_bytes, DEFAULTS.before_max_ms, DEFAULTS.after_max_ms
    assert limits == (1_048_588, 9_223_372_036_854_775_807, 3_600_000)


def the_long_way(data: bytes, config: AppendConfig) -> Appendable:
    valid_bytes, codec = analyze(data, config, CLIENT)
    view = memoryview(bytearray(data))[:valid_bytes]
    return LogValidator(view, codec, FIRST_OFFSET, NOW_MS, LEADER_EPOCH, config, CLIENT).assign_offsets()


def moved(records: list[Record]) -> list[Record]:
    return [Record(FIRST_OFFSET + i, r.timestamp, r.key, r.value, r.headers) for i, r in enumerate(records)]


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_common_batch_is_updated_in_the_callers_buffer(codec: int) -> None:
    batch = build_batch(PLAIN, compression=codec, producer_id=5, producer_epoch=1, base_sequence=9, transactional=True)
    buffer = bytearray(batch)
    data = memoryview(buffer)
    stored = validate(data, FIRST_OFFSET, NOW_MS, LEADER_EPOCH, DEFAULTS)
    assert stored.data.obj is buffer
    assert (bytes(buffer[8:12]), bytes(buffer[16:])) == (batch[8:12], batch[16:]), (
        "only base offset and leader epoch are written"
    )
    ensure_valid(stored.data)
    assert list(iter_records(stored.data)) == moved(PLAIN)
    assert stored.header == read_header(buffer)
    assert (header_of(stored).base_offset, header_of(stored).partition_leader_epoch) == (FIRST_OFFSET, LEADER_EPOCH)
    assert (stored.max_timestamp, stored.log_append_time_ms) == (MAX_TIMESTAMP, -1)


CONFIGS = st.builds(
    AppendConfig,
    compression=st.sampled_from((None, NONE, GZIP)),
    timestamp_type=st.sampled_from((0, 0, 0, LOG_APPEND_TIME)),
    before_max_ms=st.sampled_from((2**63 - 1, 60_000)),
    after_max_ms=st.sampled_from((3_600_000, 60_000)),
    compacted=st.booleans(),
    deep_max_bytes=st.sampled_from((None, None, 0, 200)),
)


@given(
    records=record_lists(),
    codec=st.sampled_from(CODECS),
    config=CONFIGS,
    change=st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    mend=st.booleans(),
)
def test_fast_path_equals_the_general_path(
    records: list[Record], codec: int, config: AppendConfig, change: tuple[int, int] | None, mend: bool
) -> None:
    batch = bytearray(build_batch(records, compression=codec))
    if change is not None:
        position, byte = change
        batch[17 + position % (len(batch) - 17)] = byte  # before the checksum, the bytes may not be a batch
        if mend:
            stamp_checksum(batch)
    outcomes: list[object] = []
    for way in (append, the_long_way):
        try:
            stored = way(bytes(batch), config)
        except InvalidRecords as error:
            outcomes.append((error.code, error.message, error.record_errors))
        else:
            outcomes.append((bytes(stored.data), stored.header, stored.max_timestamp, stored.log_append_time_ms))
    assert outcomes[0] == outcomes[1]


def test_first_batch_of_a_producer_is_accepted() -> None:
    batch = build_batch(PLAIN, producer_id=5, producer_epoch=1, base_sequence=0)
    assert [header_of(validated(batch, DEFAULTS)).base_sequence for validated in (append, the_long_way)] == [0, 0]


def test_batch_of_the_maximum_size_is_accepted_and_one_byte_more_rejected() -> None:
    batch = build_batch(PLAIN)
    append(batch, AppendConfig(max_message_bytes=len(batch)))
    error = refusal(batch, AppendConfig(max_message_bytes=len(batch) - 1, partition="t-0"))
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE
    assert error.message == (
        f"The record batch size in the append to t-0 is {len(batch)} bytes"
        f" which exceeds the maximum configured value of {len(batch) - 1}."
    )


def test_batch_that_exceeds_the_maximum_after_recompression_is_rejected() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(5000))], compression=GZIP)
    error = refusal(batch, AppendConfig(max_message_bytes=5000, compression=NONE))
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE


BATCH = build_batch(PLAIN)
INVALID, CORRUPT, UNKNOWN = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR
# Besides what vectors refuse.
REFUSED = {
    "a length that ends before the offsets": (changed(BATCH, 8, ">i", 14), UNKNOWN, "26 bytes"),
    "no records": (changed(BATCH[:61], 8, ">i", 49), INVALID, "premature EOF"),
    "a codec that does not match the bytes": (changed(BATCH, 21, ">h", GZIP), UNKNOWN, "Not in GZIP format"),
    "zstd in a message of magic 1": (
        build_message_set(OLD, 1, compression=ZSTD),
        INVALID,
        "Invalid wrapper compressionType",
    ),
    "two compressed sets": (
        build_message_set(OLD, 1, compression=GZIP) * 2,
        INVALID,
        "Compressed outer record has more than one batch",
    ),
    "messages of two magics": (
        build_message_set(OLD[:1], 1) + build_message_set(OLD[1:2], 0),
        INVALID,
        "Batch magic 0 is not the same as the first batch's magic byte 1",
    ),
}


@pytest.mark.parametrize(("data", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_rejected(data: bytes, code: ErrorCode, message: str) -> None:
    error = refusal(data)
    assert error.code == code
    with pytest.raises(InvalidRecords, match=message):
        raise error


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_out_of_range_timestamps_are_reported_with_the_range(codec: int) -> None:
    config = AppendConfig(before_max_ms=4, after_max_ms=69_999)
    error = refusal(build_batch(PLAIN, compression=codec), config)
    assert (error.code, error.message) == (
        ErrorCode.INVALID_TIMESTAMP,
        "One or more records have been rejected due to invalid timestamp",
    )
    allowed = f"out of range. The timestamp should be within [{NOW_MS - 4}, {NOW_MS + 69_999}]"
    assert error.record_errors == [
        (1, f"Timestamp {NOW_MS + 70_000} of message with offset 1 is {allowed}"),
        (2, f"Timestamp {NOW_MS - 5} of message with offset 2 is {allowed}"),
    ]
    assert append(build_batch(PLAIN, compression=codec), AppendConfig(before_max_ms=5, after_max_ms=70_000)).header


def test_timestamp_that_overflows_javas_arithmetic_is_accepted() -> None:
    config = AppendConfig(before_max_ms=0, after_max_ms=0)
    batch = build_batch([Record(0, 0, None, b"x")])
    assert append(changed(batch, 27, ">q", NOW_MS - 2**63), config).max_timestamp == -1
    assert refusal(changed(batch, 27, ">q", NOW_MS - 2**63 + 1), config).code == ErrorCode.INVALID_TIMESTAMP


def test_missing_timestamp_is_never_out_of_range() -> None:
    batch = build_batch([Record(0, -1, None, b"x")])
    assert append(batch, AppendConfig(before_max_ms=0)).max_timestamp == -1


@pytest.mark.parametrize(
    ("codec", "magic", "summary"),
    [
        (NONE, 2, f"DefaultRecord(offset=1, timestamp={NOW_MS}, key=0 bytes, value=100 bytes)"),
        (GZIP, 2, f"PartialDefaultRecord(offset=1, timestamp={NOW_MS}, key=-1 bytes, value=100 bytes)"),
        (
            GZIP,
            1,
            "LegacyRecordBatch(offset=1, Record(magic=1, attributes=8, compression=none, crc={crc}, "
            f"LogAppendTime={NOW_MS}, key=0 bytes, value=100 bytes))",
        ),
    ],
    ids=["an uncompressed record", "a compressed record", "a message of magic 1"],
)
def test_record_is_described_as_in_kafka_without_its_content(codec: int, magic: int, summary: str) -> None:
    options: dict[str, Any] = {"compression": codec, "timestamp_type": LOG_APPEND_TIME, "log_append_time": NOW_MS}
    data = build_batch(PLAIN, **options) if magic == 2 else build_message_set(OLD, magic, **options)
    crc = next(m.crc for m in iter_messages(read_message(data)) if m.offset == 1) if magic < 2 else None
    error = refusal(data, AppendConfig(timestamp_type=LOG_APPEND_TIME))
    assert error.record_errors[1] == (
        1,
        f"Invalid timestamp type in message {summary.format(crc=crc)}."
        " Producer should not set timestamp type to LogAppendTime.",
    )


def test_log_append_time_from_a_producer_is_rejected_by_a_topic_that_sets_it() -> None:
    batch = build_batch(PLAIN, timestamp_type=LOG_APPEND_TIME, log_append_time=NOW_MS)
    error = refusal(batch, AppendConfig(timestamp_type=LOG_APPEND_TIME))
    assert (error.code, len(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, len(PLAIN))
    stored = append(batch)
    assert header_of(stored).timestamp_type != LOG_APPEND_TIME, "a topic with create time treats it as create time"
    ensure_valid(stored.data)


def test_unordered_offsets_in_a_compressed_batch_raise_kafkas_error() -> None:
    records = [Record(1, NOW_MS, None, b"x"), Record(2, NOW_MS, None, b"y")]
    batch = changed(build_batch(records, compression=GZIP), 57, ">i", 2)
    batch = changed(changed(batch, 23, ">i", 1), 0, ">q", 0)
    error = refusal(batch)
    assert (error.code, error.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "key is skipped in PartialDefaultRecord")


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_number_of_returned_record_errors_is_bounded(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.protocol.records.log_validator.MOST_RECORD_ERRORS", 3)
    batch = build_batch([Record(offset, NOW_MS, None, b"x") for offset in range(5)], compression=codec)
    error = refusal(batch, AppendConfig(compacted=True))
    assert [index for index, _ in error.record_errors] == [0, 1, 2]
    assert "5 record errors in total" in error.message


@pytest.mark.parametrize("data", [BATCH, BATCH + BATCH], ids=["a batch", "two batches"])
def test_more_records_than_may_be_checked_are_rejected(data: bytes) -> None:
    error = refusal(data, AppendConfig(max_records=2))
    assert (error.code, error.message) == (INVALID, "the batch has more than 2 records")


@pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
def test_decompression_bomb_is_rejected(codec: int) -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(300_000))], compression=codec)
    limited = AppendConfig(max_section_bytes=100_000)
    assert isinstance(refusal(batch, limited), SectionTooLarge)
    converting = replace(limited, compression=NONE, deep_max_bytes=100)
    assert isinstance(refusal(batch, converting), SectionTooLarge)


class TestDeepMaxBytes:
    """Large batches are validated by their header only."""

    WRONG = changed(BATCH, 61, ">b", 0)  # the first record has no length
    TRUSTING = AppendConfig(deep_max_bytes=100)

    def test_records_of_large_batches_are_not_walked(self) -> None:
        assert append(self.WRONG, self.TRUSTING).max_timestamp == MAX_TIMESTAMP
        assert refusal(self.WRONG).code == ErrorCode.INVALID_RECORD
        assert refusal(self.WRONG, AppendConfig(deep_max_bytes=len(BATCH) - 61)).code == ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("codec", CODECS[1:], ids=NAMES[1:])
    def test_records_of_batches_large_only_after_decompression_are_not_walked(self, codec: int) -> None:
        batch = build_batch([Record(0, NOW_MS, None, bytes(100_000))], compression=codec)
        wrong = changed(batch, 35, ">q", NOW_MS + 1)
        assert append(wrong, self.TRUSTING).max_timestamp == NOW_MS + 1
        assert append(wrong, AppendConfig(deep_max_bytes=200_000)).max_timestamp == NOW_MS

    def test_log_append_time_is_set_without_a_walk(self) -> None:
        stored = append(self.WRONG, AppendConfig(deep_max_bytes=100, timestamp_type=LOG_APPEND_TIME))
        assert stored.max_timestamp == NOW_MS
        ensure_valid(stored.data)

    @pytest.mark.parametrize(
        "config",
        [
            AppendConfig(deep_max_bytes=100, compacted=True),
            AppendConfig(deep_max_bytes=100, after_max_ms=10),
            AppendConfig(deep_max_bytes=100, compression=GZIP),
        ],
        ids=["keys are required", "timestamps are out of range", "the records are decoded anyway"],
    )
    def test_records_of_large_batches_are_walked_if(self, config: AppendConfig) -> None:
        assert refusal(self.WRONG, config).code == ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (changed(BATCH, 57, ">i", 5), ErrorCode.INVALID_RECORD),
            (BATCH[:-1] + b"\1", ErrorCode.CORRUPT_MESSAGE),
            (changed(BATCH, 0, ">q", 1), ErrorCode.INVALID_RECORD),
        ],
        ids=["count", "checksum", "base offset"],
    )
    def test_header_errors_are_rejected(self, data: bytes, code: ErrorCode) -> None:
        assert refusal(data, self.TRUSTING).code == code


class TestCoordinator:
    MARKER = build_transaction_marker(
        COMMIT, offset=0, timestamp=1, producer_id=5, producer_epoch=0, coordinator_epoch=2
    )

    def test_coordinator_writes_control_batches(self) -> None:
        stored = append(self.MARKER, origin=COORDINATOR)
        assert header_of(stored).is_control
        assert header_of(stored).base_offset == FIRST_OFFSET
        assert refusal(self.MARKER).message.startswith("Clients are not allowed to write control records")

    def test_control_batches_are_not_compressed(self) -> None:
        assert header_of(append(self.MARKER, AppendConfig(compression=ZSTD), COORDINATOR)).compression == NONE


class TestProduceVersions:
    ZSTD_BATCH = build_batch(PLAIN, compression=ZSTD)
    MESSAGES = build_message_set(OLD, 1)

    @pytest.mark.parametrize("data", [b"", BATCH[:-1], BATCH * 2, MESSAGES, ZSTD_BATCH], ids=len)
    def test_old_produce_versions_accept_any_format(self, data: bytes) -> None:
        check_produced(2, data)

    @pytest.mark.parametrize("version", [3, 9, 13])
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "must have at least one record batch per partition"),
            (BATCH[:-1], "must have at least one record batch per partition"),
            (BATCH * 2, "are only allowed to contain exactly one record batch per partition"),
            (MESSAGES, "are only allowed to contain record batches with magic version 2"),
        ],
        ids=["nothing", "a truncated batch", "two batches", "messages"],
    )
    def test_produce_version_3_and_later_accepts_one_batch(self, version: int, data: bytes, message: str) -> None:
        with pytest.raises(InvalidRecords, match=f"Produce requests with version {version} {message}") as error:
            check_produced(version, data)
        assert error.value.code == ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("data", [BATCH, BATCH + BATCH[:-1]], ids=["one batch", "one batch and a truncated one"])
    def test_single_batch_variant_is_accepted(self, data: bytes) -> None:
        for version in (3, 7, 13):
            check_produced(version, data)

    @pytest.mark.parametrize("tail", [b"", b"cut"], ids=["one batch", "one batch and a truncated one"])
    def test_zstd_requires_produce_version_7(self, tail: bytes) -> None:
        with pytest.raises(InvalidRecords, match="with version 6 are not allowed to use ZStandard") as error:
            check_produced(6, self.ZSTD_BATCH + tail)
        assert error.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        check_produced(7, self.ZSTD_BATCH + tail)

    def test_unknown_codec_is_checked_only_before_version_7(self) -> None:
        data = changed(BATCH, 21, ">h", 6)
        with pytest.raises(InvalidRecords, match="Unknown compression type id: 6"):
            check_produced(6, data)
        check_produced(7, data)

    def test_impossible_length_is_corrupt(self) -> None:
        with pytest.raises(InvalidRecords) as error:
            check_produced(9, changed(BATCH, 8, ">i", -1))
        assert error.value.code == ErrorCode.CORRUPT_MESSAGE


def test_boundaries_of_stored_data_come_from_the_headers() -> None:
    stored = append(build_message_set(OLD, 0))
    assert [size for _, size, _ in batch_bounds(stored.data)] == [header_of(stored).size_in_bytes]
