"""What is read of a metadata log that a crash, a newer Kafka or somebody else has left."""

from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.batches import BatchStart, control_batch, metadata_batch
from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.controller.metadata_log.recovery import recover, segment_name
from sluice.errors import SluiceError
from sluice.protocol.metadata.control import KRaftVersionRecord, RegisteredVoter, VotersRecord
from sluice.protocol.metadata.settings import FeatureLevelRecord
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.unit.broker.controller.metadata_log.logs import START_MS, metadata_files, open_log, partition, state, topic

LEVEL = 33


def segment_of(directory: Path, base_offset: int = 0) -> Path:
    return directory / METADATA_DIRECTORY / segment_name(base_offset)


def append(path: Path, batch: bytes) -> None:
    path.write_bytes(path.read_bytes() + batch)


def raw(offset: int, value: bytes | None, key: bytes | None = None, *, control: bool = False) -> bytes:
    """A batch of one record, whatever it says."""
    record = Record(offset, START_MS, key, value)
    return build_batch([record], base_offset=offset, partition_leader_epoch=1, control=control)


def test_torn_at_any_byte_of_its_last_batch_it_starts_with_the_state_before(tmp_path: Path) -> None:
    log = open_log(tmp_path)
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
        assert (recovered.torn is None) == (end == start)


def test_a_torn_end_is_cut_off_with_a_line_and_the_log_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    size = segment_of(tmp_path).stat().st_size
    log.append(topic(1))
    path = segment_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    torn = path.stat().st_size - size
    again = open_log(tmp_path)
    (line,) = caplog.records
    assert line.message == "truncated the torn end of the metadata log"
    said = {name: vars(line)[name] for name in ("file", "position", "bytes", "reason")}
    assert said == {"file": str(path), "position": size, "bytes": torn, "reason": "incomplete batch"}
    again.append(topic(2))
    third = open_log(tmp_path)
    assert state(third.image) == state(again.image)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("flipped", [7, 10, 20, 70, 100])
def test_a_bit_that_fell_over_in_the_last_batch_cuts_it_off(tmp_path: Path, flipped: int) -> None:
    log = open_log(tmp_path)
    before, size = state(log.image), segment_of(tmp_path).stat().st_size
    log.append(topic(1))
    data = bytearray(segment_of(tmp_path).read_bytes())
    data[size + flipped] ^= 0x40
    segment_of(tmp_path).write_bytes(data)
    recovered = recover(segment_of(tmp_path).parent)
    assert state(recovered.image) == before
    assert recovered.segment_bytes == size


def test_a_break_before_the_last_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(topic(1))
    data = segment_of(tmp_path).read_bytes()
    log.append(topic(2))
    segment_of(tmp_path, log.end_offset).write_bytes(b"")
    segment_of(tmp_path).write_bytes(segment_of(tmp_path).read_bytes()[:-1])
    with pytest.raises(SluiceError) as caught:
        recover(segment_of(tmp_path).parent)
    said = f"{segment_of(tmp_path)}: no batch at position {len(data)}, after offset 8: incomplete batch"
    assert str(caught.value) == said


def test_a_missing_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end = log.end_offset
    segment_of(tmp_path, end + 2).write_bytes(b"")
    with pytest.raises(SluiceError) as caught:
        recover(segment_of(tmp_path).parent)
    assert (
        str(caught.value) == f"{segment_of(tmp_path, end + 2)}: the records from offset {end} to {end + 2} are missing"
    )


UNKNOWN = [
    ("a record type of a newer Kafka", b"\1\x1e\0", "record type 30, version 0 (supported: types up to 29)"),
    ("a version of a newer Kafka", b"\1\3\3", "PartitionRecord (type 3) version 3 (supported: 0 to 2)"),
    ("a frame of a newer Kafka", b"\2\3\0", "frame version 2 (supported: 1)"),
    ("no value", None, "record without a value"),
    ("half a record", b"\1\2\0\5ab", "TopicRecord v0: truncated (at byte 1 of 3)"),
]


@pytest.mark.parametrize(("value", "reason"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_a_record_that_is_not_understood_is_named_with_its_offset(
    tmp_path: Path, value: bytes | None, reason: str
) -> None:
    log = open_log(tmp_path)
    append(segment_of(tmp_path), raw(log.end_offset, value))
    with pytest.raises(SluiceError) as caught:
        open_log(tmp_path)
    assert str(caught.value) == f"{segment_of(tmp_path)}: cannot interpret the record at offset 6: {reason}"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        pytest.param(b"\0\0\0\7", b"\0\0\0", "control record type 7; expected 2 to 6", id="of a newer quorum"),
        pytest.param(b"\0\0", b"\0\0\0", "control record without type or value", id="without a type"),
        pytest.param(b"\0\0\0\2", None, "control record without type or value", id="without a value"),
        pytest.param(b"\0\0\0\4", b"\0", "SnapshotFooterRecord v0: truncated (at byte 0 of 1)", id="cut short"),
    ],
)
def test_so_is_a_control_record(tmp_path: Path, key: bytes, value: bytes | None, reason: str) -> None:
    log = open_log(tmp_path)
    append(segment_of(tmp_path), raw(log.end_offset, value, key, control=True))
    with pytest.raises(SluiceError) as caught:
        open_log(tmp_path)
    assert str(caught.value) == f"{segment_of(tmp_path)}: cannot interpret the record at offset 6: {reason}"


def test_a_newer_metadata_version_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append([FeatureLevelRecord(name="metadata.version", feature_level=34)])
    with pytest.raises(SluiceError) as caught:
        open_log(tmp_path)
    reason = "cannot interpret the record at offset 6: metadata.version 34; expected at most 33"
    assert str(caught.value) == f"{segment_of(tmp_path)}: {reason}"


def test_a_record_of_something_that_is_not_there_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(segment_of(tmp_path), metadata_batch([partition()], LEVEL, BatchStart(log.end_offset, 1, START_MS)))
    with pytest.raises(SluiceError, match="cannot interpret the record at offset 6: unknown topic id 0000"):
        open_log(tmp_path)


class TestABrokenSnapshot:
    """Its records are still there, or its state is not known."""

    @pytest.fixture
    def checkpoint(self, tmp_path: Path) -> Path:
        """Of a log with a topic before it and another after it."""
        log = open_log(tmp_path)
        log.append(topic(1))
        log.compact()
        log.append(topic(2))
        log.close()
        return tmp_path / METADATA_DIRECTORY / metadata_files(tmp_path)[0]

    @pytest.mark.parametrize(
        "broken",
        [
            pytest.param(lambda data: b"", id="empty"),
            pytest.param(lambda data: data[:-1], id="without its last byte"),
            pytest.param(lambda data: data[:-80], id="without its footer"),
            pytest.param(lambda data: data[:100] + b"?" + data[101:], id="with a byte that is another"),
        ],
    )
    def test_without_the_records_it_stands_for_is_refused(
        self, tmp_path: Path, checkpoint: Path, broken: "object"
    ) -> None:
        assert callable(broken)
        checkpoint.write_bytes(broken(checkpoint.read_bytes()))
        with pytest.raises(SluiceError) as caught:
            open_log(tmp_path)
        assert str(caught.value).startswith(f"{checkpoint}: ")
        assert str(caught.value).endswith("; restore the directory from a copy")

    def test_that_is_gone_is_missed(self, tmp_path: Path, checkpoint: Path) -> None:
        checkpoint.unlink()
        with pytest.raises(SluiceError, match="no snapshot of the records before offset 8; restore"):
            open_log(tmp_path)

    def test_beside_all_records_is_not_needed(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.append(topic(1))
        data = segment_of(tmp_path).read_bytes()
        log.compact()
        segment_of(tmp_path).write_bytes(data)
        checkpoint = tmp_path / METADATA_DIRECTORY / metadata_files(tmp_path)[1]
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
        recovered = recover(checkpoint.parent)
        assert state(recovered.image) == state(log.image)
        assert recovered.snapshot is None

    def test_in_which_something_is_not_understood_is_refused(self, tmp_path: Path, checkpoint: Path) -> None:
        append(checkpoint, raw(99, b"\1\x1e\0"))
        with pytest.raises(SluiceError) as caught:
            open_log(tmp_path)
        reason = "record type 30, version 0 (supported: types up to 29)"
        assert str(caught.value) == f"{checkpoint}: cannot interpret the record at offset 99: {reason}"


def test_voters_that_can_change_stay_known(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    voters = VotersRecord(voters=[RegisteredVoter(voter_id=1, voter_directory_id=bytes(range(16)))])
    place = BatchStart(log.end_offset, 1, START_MS)
    append(segment_of(tmp_path), control_batch([KRaftVersionRecord(kraft_version=1), voters], 0, place))
    again = open_log(tmp_path)
    assert '"data_version":1' in (tmp_path / METADATA_DIRECTORY / "quorum-state").read_text()
    again.compact()
    recovered = recover(tmp_path / METADATA_DIRECTORY)
    assert recovered.voters == (1, voters)
    assert recovered.snapshot == (again.end_offset, 2)
