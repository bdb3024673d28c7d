"""Recovery of metadata logs after a crash, damage, or writes by a newer Kafka."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sluice.broker.controller.metadata_log.batches import BatchStart, control_batch, metadata_batch
from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.controller.metadata_log.metadata_log import MetadataLog, open_metadata_log
from sluice.broker.controller.metadata_log.recovery import recover, segment_name
from sluice.errors import SluiceError
from sluice.protocol.metadata.control import KRaftVersionRecord, RegisteredVoter, VotersRecord
from sluice.protocol.metadata.settings import FeatureLevelRecord
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.unit.broker.controller.metadata_log.logs import (
    FEATURES,
    START_MS,
    metadata_files,
    open_log,
    partition,
    state,
    topic,
)

LEVEL = 33


def segment_of(directory: Path, base_offset: int = 0) -> Path:
    return directory / METADATA_DIRECTORY / segment_name(base_offset)


def append(path: Path, batch: bytes) -> None:
    path.write_bytes(path.read_bytes() + batch)


def start_error(directory: Path) -> str:
    with pytest.raises(SluiceError) as caught:
        open_log(directory)
    return str(caught.value)


def raw(offset: int, value: bytes | None, key: bytes | None = None, *, control: bool = False) -> bytes:
    """Return a batch with one record of arbitrary content."""
    record = Record(offset, START_MS, key, value)
    return build_batch([record], base_offset=offset, partition_leader_epoch=1, control=control)


def test_log_torn_at_any_byte_of_its_last_batch_recovers_the_state_before_it(log: MetadataLog, tmp_path: Path) -> None:
    log.append(topic(1))
    before, offset = state(log.image), log.end_offset
    start = segment_of(tmp_path).stat().st_size
    log.append(topic(2, 2, retention_ms="1"))
    log.close()
    data = segment_of(tmp_path).read_bytes()
    for end in range(start, len(data)):
        segment_of(tmp_path).write_bytes(data[:end])
        recovered = recover(segment_of(tmp_path).parent)
        assert state(recovered.image) == before
        assert (recovered.end_offset, recovered.segment_bytes) == (offset, start)
        assert (recovered.cut is None) == (end == start)


def test_torn_end_is_truncated_with_one_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    size = segment_of(tmp_path).stat().st_size
    log.append(topic(1))
    path = segment_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    torn = path.stat().st_size - size
    again = open_log(tmp_path)
    (line,) = caplog.records
    assert line.message == "truncated the metadata log"
    logged_fields = {name: vars(line)[name] for name in ("file", "position", "bytes", "reason")}
    assert logged_fields == {"file": str(path), "position": size, "bytes": torn, "reason": "incomplete batch"}
    again.append(topic(2))
    third = open_log(tmp_path)
    assert state(third.image) == state(again.image)
    assert len(caplog.records) == 1


def test_flipped_bit_is_an_error_or_removes_only_a_last_batch_that_became_incomplete(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(topic(1))
    before, size = state(log.image), segment_of(tmp_path).stat().st_size
    log.append(topic(2))
    log.close()
    data = segment_of(tmp_path).read_bytes()
    removed = []
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        segment_of(tmp_path).write_bytes(damaged)
        with suppress(SluiceError):
            recovered = recover(segment_of(tmp_path).parent)
            assert (state(recovered.image), recovered.segment_bytes) == (before, size), f"byte {position}"
            removed.append(position)
    length_at = size + 8
    assert removed == [length_at, length_at + 1, length_at + 2], "a longer batch looks like one torn by a crash"


UNREADABLE = {
    "random bytes": (lambda data: Random(1).randbytes(len(data)), "damaged at byte 0 of 454, after offset -1: "),
    "zeros": (lambda data: bytes(len(data)), "damaged at byte 0 of 454, after offset -1: "),
    "empty": (lambda data: b"", "the log ends at offset 0, but epoch 1 begins at 0; "),
}


@pytest.mark.parametrize(("damage", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_log_is_an_error_until_the_user_accepts_the_loss(
    log: MetadataLog, tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    log.append(topic(1))
    log.close()
    segment_of(tmp_path).write_bytes(damage(segment_of(tmp_path).read_bytes()))
    error = start_error(tmp_path)
    assert reason in error
    assert "start with --override sluice.metadata.truncate.damaged=true" in error
    open_metadata_log(str(tmp_path), 1, FEATURES, lambda: START_MS, truncate_damaged=True).close()
    assert not open_log(tmp_path).image.topics


def test_damage_before_the_last_segment_removes_later_segments_if_the_user_accepts_the_loss(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(topic(1))
    position = segment_of(tmp_path).stat().st_size
    log.append(topic(2))
    size = segment_of(tmp_path).stat().st_size
    later = segment_of(tmp_path, log.end_offset)
    later.write_bytes(metadata_batch(topic(3), LEVEL, BatchStart(log.end_offset, 1, START_MS)))
    segment_of(tmp_path).write_bytes(segment_of(tmp_path).read_bytes()[:-1])
    with pytest.raises(SluiceError) as caught:
        recover(later.parent)
    removed = size - 1 - position + later.stat().st_size
    assert str(caught.value) == (
        f"{segment_of(tmp_path)}: damaged at byte {position} of {size - 1}, after offset 7: incomplete batch; restore "
        "the file from a copy, or start with --override sluice.metadata.truncate.damaged=true, which removes the last "
        f"{removed} bytes of the metadata log and so all later changes of topics, configs and ACLs"
    )
    again = open_metadata_log(str(tmp_path), 1, FEATURES, lambda: START_MS, truncate_damaged=True)
    assert [one.name for one in again.image.topics.values()] == ["topic-1"]
    assert not later.exists()


def test_missing_segment_is_an_error(log: MetadataLog, tmp_path: Path) -> None:
    end = log.end_offset
    segment_of(tmp_path, end + 2).write_bytes(b"")
    with pytest.raises(SluiceError) as caught:
        recover(segment_of(tmp_path).parent)
    assert (
        str(caught.value) == f"{segment_of(tmp_path, end + 2)}: the records from offset {end} to {end + 2} are missing"
    )


UNKNOWN = {
    "newer record type": (b"\1\x1e\0", "record type 30, version 0 (supported: types up to 29)"),
    "newer record version": (b"\1\3\3", "PartitionRecord (type 3) version 3 (supported: 0 to 2)"),
    "newer frame version": (b"\2\3\0", "frame version 2 (supported: 1)"),
    "record without a value": (None, "record without a value"),
    "truncated record": (b"\1\2\0\5ab", "TopicRecord v0: truncated (at byte 1 of 3)"),
}


@pytest.mark.parametrize(("value", "reason"), UNKNOWN.values(), ids=UNKNOWN)
def test_unsupported_record_is_an_error_with_its_offset(tmp_path: Path, value: bytes | None, reason: str) -> None:
    log = open_log(tmp_path)
    append(segment_of(tmp_path), raw(log.end_offset, value))
    assert start_error(tmp_path) == f"{segment_of(tmp_path)}: cannot interpret the record at offset 6: {reason}"


UNSUPPORTED = {
    "newer type": (b"\0\0\0\7", b"\0\0\0", "control record type 7; expected 2 to 6"),
    "without a type": (b"\0\0", b"\0\0\0", "control record without type or value"),
    "without a value": (b"\0\0\0\2", None, "control record without type or value"),
    "truncated": (b"\0\0\0\4", b"\0", "SnapshotFooterRecord v0: truncated (at byte 0 of 1)"),
}


@pytest.mark.parametrize(("key", "value", "reason"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_control_record_is_an_error_with_its_offset(
    log: MetadataLog, tmp_path: Path, key: bytes, value: bytes | None, reason: str
) -> None:
    append(segment_of(tmp_path), raw(log.end_offset, value, key, control=True))
    assert start_error(tmp_path) == f"{segment_of(tmp_path)}: cannot interpret the record at offset 6: {reason}"


def test_newer_metadata_version_is_an_error(log: MetadataLog, tmp_path: Path) -> None:
    log.append([FeatureLevelRecord(name="metadata.version", feature_level=34)])
    reason = "cannot interpret the record at offset 6: metadata.version 34; expected at most 33"
    assert start_error(tmp_path) == f"{segment_of(tmp_path)}: {reason}"


def test_record_of_an_unknown_topic_is_an_error(log: MetadataLog, tmp_path: Path) -> None:
    append(segment_of(tmp_path), metadata_batch([partition()], LEVEL, BatchStart(log.end_offset, 1, START_MS)))
    assert "cannot interpret the record at offset 6: unknown topic id 0000" in start_error(tmp_path)


BROKEN = {
    "empty": lambda data: b"",
    "without its last byte": lambda data: data[:-1],
    "without its footer": lambda data: data[:-80],
    "with a changed byte": lambda data: data[:100] + b"?" + data[101:],
}


class TestCorruptSnapshot:
    """A corrupt snapshot is ignored if the log has all its records; otherwise the start fails."""

    @pytest.fixture
    def checkpoint(self, log: MetadataLog, tmp_path: Path) -> Path:
        """Return the snapshot of a log with one topic before it and one after it."""
        log.append(topic(1))
        log.compact()
        log.append(topic(2))
        log.close()
        return tmp_path / METADATA_DIRECTORY / metadata_files(tmp_path)[0]

    @pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
    def test_without_its_records_in_the_log_is_an_error(
        self, tmp_path: Path, checkpoint: Path, broken: Callable[[bytes], bytes]
    ) -> None:
        checkpoint.write_bytes(broken(checkpoint.read_bytes()))
        error = start_error(tmp_path)
        assert error.startswith(f"{checkpoint}: ")
        assert error.endswith("; restore the directory from a copy")

    def test_missing_file_is_an_error(self, tmp_path: Path, checkpoint: Path) -> None:
        checkpoint.unlink()
        assert "no snapshot of the records before offset 8; restore" in start_error(tmp_path)

    def test_is_ignored_if_the_log_has_all_records(self, log: MetadataLog, tmp_path: Path) -> None:
        log.append(topic(1))
        data = segment_of(tmp_path).read_bytes()
        log.compact()
        segment_of(tmp_path).write_bytes(data)
        checkpoint = tmp_path / METADATA_DIRECTORY / metadata_files(tmp_path)[1]
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
        recovered = recover(checkpoint.parent)
        assert state(recovered.image) == state(log.image)
        assert recovered.snapshot is None

    def test_unsupported_record_in_it_is_an_error(self, tmp_path: Path, checkpoint: Path) -> None:
        append(checkpoint, raw(99, b"\1\x1e\0"))
        reason = "record type 30, version 0 (supported: types up to 29)"
        assert start_error(tmp_path) == f"{checkpoint}: cannot interpret the record at offset 99: {reason}"


def test_dynamic_voters_survive_compaction(log: MetadataLog, tmp_path: Path) -> None:
    voters = VotersRecord(voters=[RegisteredVoter(voter_id=1, voter_directory_id=bytes(range(16)))])
    place = BatchStart(log.end_offset, 1, START_MS)
    append(segment_of(tmp_path), control_batch([KRaftVersionRecord(kraft_version=1), voters], 0, place))
    again = open_log(tmp_path)
    assert '"data_version":1' in (tmp_path / METADATA_DIRECTORY / "quorum-state").read_text()
    again.compact()
    recovered = recover(tmp_path / METADATA_DIRECTORY)
    assert recovered.voters == (1, voters)
    assert recovered.snapshot == (again.end_offset, 2)
