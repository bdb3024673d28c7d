"""Metadata log on disk: durability, atomic appends, snapshots, and full disks."""

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log import metadata_log as module
from sluice.broker.controller.metadata_log.batches import batches_in, messages_in
from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.controller.metadata_log.metadata_log import MetadataLog, open_metadata_log
from sluice.broker.controller.metadata_log.recovery import segment_name
from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata.control import LeaderChangeMessage
from sluice.protocol.metadata.log import AbortTransactionRecord, BeginTransactionRecord, NoOpRecord
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.settings import FeatureLevelRecord
from sluice.protocol.metadata.topics import RemoveTopicRecord
from tests.support.kafka_data import unpack
from tests.unit.broker.controller.metadata_log.logs import (
    FEATURES,
    START_MS,
    metadata_files,
    open_log,
    reopened,
    state,
    topic,
    topic_id,
)

LEVELS: list[MetadataMessage] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURES.items()]
# A new log: leader change, begin, three levels, end.
NEW_END = 6
FIRST_SEGMENT = segment_name(0)


def file(directory: Path, name: str = FIRST_SEGMENT) -> Path:
    return directory / METADATA_DIRECTORY / name


def written(path: Path) -> list[tuple[int, int, MetadataMessage]]:
    """Return epoch, offset and message of each record in a file."""
    return [
        (batch.header.partition_leader_epoch, offset, message)
        for batch in batches_in(path.read_bytes())
        for offset, message in messages_in(batch)
    ]


@contextmanager
def file_size_limit(path: Path, size: int) -> Iterator[None]:
    """Limit files of this process to the size of this file plus `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_new_log_starts_with_kafkas_records_and_files(log: MetadataLog, tmp_path: Path) -> None:
    log.close()
    assert state(log.image) == LEVELS
    names = [(epoch, offset, type(message).__name__) for epoch, offset, message in written(file(tmp_path))]
    assert names == [
        (1, 0, "LeaderChangeMessage"),
        (1, 1, "BeginTransactionRecord"),
        (1, 2, "FeatureLevelRecord"),
        (1, 3, "FeatureLevelRecord"),
        (1, 4, "FeatureLevelRecord"),
        (1, 5, "EndTransactionRecord"),
    ]
    assert metadata_files(tmp_path) == [FIRST_SEGMENT, "leader-epoch-checkpoint", "partition.metadata", "quorum-state"]
    assert file(tmp_path, "partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_new_log_at_an_old_metadata_version_has_no_transaction(tmp_path: Path) -> None:
    open_metadata_log(str(tmp_path), 1, {"metadata.version": 8}, lambda: START_MS).close()
    names = [type(message).__name__ for _, _, message in written(file(tmp_path))]
    assert names == ["LeaderChangeMessage", "FeatureLevelRecord"]


FORMATTED = {
    "by Kafka 4.4": ("4.4.0", "__cluster_metadata-0/*.checkpoint", 33),
    "by Kafka 3.9": ("3.9.1", "bootstrap.checkpoint", 21),
}


@pytest.mark.parametrize(("release", "kept", "level"), FORMATTED.values(), ids=FORMATTED)
def test_formatted_directory_starts_at_its_metadata_version(
    release: str, kept: str, level: int, tmp_path: Path
) -> None:
    (from_kafka,) = unpack(release, tmp_path).glob(kept)
    directory = tmp_path / "formatted"
    checkpoint = directory / from_kafka.relative_to(tmp_path / "data")
    checkpoint.parent.mkdir(parents=True)
    from_kafka.rename(checkpoint)
    log = open_log(directory)
    assert log.image.features["metadata.version"] == level
    names = [type(message).__name__ for _, _, message in written(file(directory))]
    assert names[:3] == ["LeaderChangeMessage", "BeginTransactionRecord", "FeatureLevelRecord"]
    assert names[-1] == "EndTransactionRecord"
    checkpoint.unlink()
    assert state(reopened(directory)) == state(log.image), "the log holds the level without the checkpoint"


def test_appended_records_survive_a_kill(log: MetadataLog, tmp_path: Path) -> None:
    assert log.append(topic(1, 2, retention_ms="5")) == ErrorCode.NONE
    assert log.append(topic(2)) == ErrorCode.NONE
    assert log.append([RemoveTopicRecord(topic_id=topic_id(2))]) == ErrorCode.NONE
    assert log.end_offset == NEW_END + 4 + 2 + 1
    killed = reopened(tmp_path)
    assert state(killed) == state(log.image)
    assert [topic_image.name for topic_image in killed.topics.values()] == ["topic-1"]


def test_append_writes_one_batch_with_the_append_time(log: MetadataLog, tmp_path: Path) -> None:
    log.append(topic(1, 2))
    *_, last = batches_in(file(tmp_path).read_bytes())
    assert (last.header.base_offset, last.header.record_count) == (NEW_END, 3)
    assert last.header.base_timestamp == last.header.max_timestamp >= START_MS
    assert (last.header.producer_id, last.header.producer_epoch, last.header.base_sequence) == (-1, -1, -1)


def test_each_start_begins_a_leader_epoch(tmp_path: Path) -> None:
    for _ in range(3):
        open_log(tmp_path).close()
    leaders = [record for record in written(file(tmp_path)) if isinstance(record[2], LeaderChangeMessage)]
    assert [(epoch, offset) for epoch, offset, _ in leaders] == [(1, 0), (2, NEW_END), (3, NEW_END + 1)]
    assert file(tmp_path, "leader-epoch-checkpoint").read_text() == f"0\n3\n1 0\n2 {NEW_END}\n3 {NEW_END + 1}\n"
    assert json.loads(file(tmp_path, "quorum-state").read_text()) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 3,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


def test_epoch_in_quorum_state_is_not_reused(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    quorum_state = file(tmp_path, "quorum-state")
    quorum_state.write_text(quorum_state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":41'))
    open_log(tmp_path).close()
    assert written(file(tmp_path))[-1][:2] == (42, NEW_END)


def test_open_transaction_is_aborted_on_start(log: MetadataLog, tmp_path: Path) -> None:
    log.append(topic(1))
    before = state(log.image)
    log.append([BeginTransactionRecord(), *topic(2)])
    log.append(topic(3))
    again = open_log(tmp_path)
    assert state(again.image) == before
    assert again.append(topic(4)) == ErrorCode.NONE
    assert isinstance(written(file(tmp_path))[-3][2], AbortTransactionRecord)
    assert state(reopened(tmp_path)) == state(again.image)
    assert len(again.image.topics) == 2


SNAPSHOTS = {
    "a kill before the old records are deleted": False,
    "newer than the log, as on a controller that fetched it from its leader": True,
}


class TestSnapshot:
    """KIP-630: a snapshot replaces all records before it."""

    def test_replaces_the_records(self, log: MetadataLog, tmp_path: Path) -> None:
        log.append(topic(1, 3))
        end = log.end_offset
        log.compact()
        assert log.append(topic(2)) == ErrorCode.NONE
        log.close()
        assert metadata_files(tmp_path)[:2] == [f"{end:020}-0000000001.checkpoint", segment_name(end)]
        assert file(tmp_path, "leader-epoch-checkpoint").read_text() == f"0\n1\n1 {end}\n"
        assert written(file(tmp_path, segment_name(end)))[0][1] == end
        again = open_log(tmp_path)
        assert state(again.image) == state(log.image)
        assert again.end_offset == log.end_offset + 1

    def test_is_written_after_many_records(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_RECORDS_BEFORE_SNAPSHOT", 100)
        log = open_log(tmp_path)
        for _ in range(5):
            log.append([NoOpRecord()] * 40)
        assert metadata_files(tmp_path)[:2] == [f"{126:020}-0000000001.checkpoint", segment_name(126)]
        assert log.end_offset == 206

    def test_is_written_early_on_close(self, log: MetadataLog, tmp_path: Path) -> None:
        log.append([NoOpRecord()] * 1000)
        log.close()
        assert len(metadata_files(tmp_path)) == 5
        assert file(tmp_path, segment_name(log.end_offset)).read_bytes() == b""

    def test_of_many_partitions_is_split_into_batches(self, log: MetadataLog, tmp_path: Path) -> None:
        log.append(topic(1, 2500))
        log.compact()
        *batches, footer = batches_in(file(tmp_path, f"{log.end_offset:020}-0000000001.checkpoint").read_bytes())
        assert [batch.header.record_count for batch in batches] == [1, 1000, 1000, 504]
        assert footer.header.base_offset == 2505
        assert state(reopened(tmp_path)) == state(log.image)

    def test_unfinished_file_is_deleted(self, log: MetadataLog, tmp_path: Path) -> None:
        log.append(topic(1))
        log.close()
        unfinished = [file(tmp_path, f"{3:020}-0000000001-1234567890.checkpoint.part")]
        unfinished += [file(tmp_path, f"{3:020}-0000000001.checkpoint{end}") for end in (".tmp", ".deleted")]
        for path in unfinished:
            path.write_bytes(b"half")
        assert state(reopened(tmp_path)) == state(log.image)
        assert not [path for path in unfinished if path.exists()]

    @pytest.mark.parametrize("is_newer", SNAPSHOTS.values(), ids=SNAPSHOTS)
    def test_beside_old_records_sets_the_log_end_and_loses_nothing(self, tmp_path: Path, is_newer: bool) -> None:
        log = open_log(tmp_path)
        empty = file(tmp_path).read_bytes()
        log.append(topic(1, 3))
        old = empty if is_newer else file(tmp_path).read_bytes()
        log.compact()
        file(tmp_path).write_bytes(old)
        file(tmp_path, segment_name(log.end_offset)).unlink()
        again = open_log(tmp_path)
        assert state(again.image) == state(log.image)
        assert again.append(topic(2)) == ErrorCode.NONE
        assert state(reopened(tmp_path)) == state(again.image)

    def test_failed_write_is_logged_and_loses_nothing(
        self, log: MetadataLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        log.append(topic(1, 50))
        with file_size_limit(file(tmp_path), -100):
            log.compact()
        assert [record.message for record in caplog.records] == ["metadata snapshot failed"]
        assert log.append(topic(2)) == ErrorCode.NONE
        assert state(reopened(tmp_path)) == state(log.image)


class TestFullDisk:
    """Batches that were not fully written have no effect."""

    @pytest.mark.parametrize("room", [0, 1, 30, 100])
    def test_partial_batch_is_removed(self, tmp_path: Path, room: int, caplog: pytest.LogCaptureFixture) -> None:
        log = open_log(tmp_path)
        log.append(topic(1))
        before, size = state(log.image), file(tmp_path).stat().st_size
        with file_size_limit(file(tmp_path), room):
            assert log.append(topic(2)) == ErrorCode.KAFKA_STORAGE_ERROR
        assert file(tmp_path).stat().st_size == size
        assert state(log.image) == before
        assert [(record.message, vars(record)["reason"]) for record in caplog.records] == [
            ("metadata not written", "File too large")
        ]
        assert log.append(topic(3)) == ErrorCode.NONE, "appends succeed once there is space"
        assert state(reopened(tmp_path)) == state(log.image)

    def test_failed_truncation_closes_the_log(self, log: MetadataLog, monkeypatch: pytest.MonkeyPatch) -> None:

        def broken(*_: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "ftruncate", broken)
        monkeypatch.setattr(os, "fdatasync", broken)
        assert log.append(topic(1)) == ErrorCode.KAFKA_STORAGE_ERROR
        monkeypatch.undo()
        assert log.append(topic(2)) == ErrorCode.KAFKA_STORAGE_ERROR, "recovery would truncate batches after a torn one"
        assert state(log.image) == LEVELS

    def test_error_at_start_is_one_line(self, tmp_path: Path) -> None:
        open_log(tmp_path).close()
        with file_size_limit(file(tmp_path), 10), pytest.raises(SluiceError) as caught:
            open_log(tmp_path)
        assert str(caught.value) == f"{tmp_path / METADATA_DIRECTORY}: File too large"


def test_file_in_place_of_the_directory_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / METADATA_DIRECTORY).write_text("")
    with pytest.raises(SluiceError) as caught:
        open_log(tmp_path)
    assert str(caught.value) == f"{tmp_path / METADATA_DIRECTORY}: File exists"


INVALID_QUORUM_STATES = {
    "empty file": ("", "Input data was truncated"),
    "missing epoch": ("{}", "'leaderEpoch'"),
    "epoch not a number": ('{"leaderEpoch":"one"}', "leaderEpoch is 'one'"),
}


@pytest.mark.parametrize(("text", "reason"), INVALID_QUORUM_STATES.values(), ids=INVALID_QUORUM_STATES)
def test_invalid_quorum_state_is_a_one_line_error(tmp_path: Path, text: str, reason: str) -> None:
    open_log(tmp_path).close()
    file(tmp_path, "quorum-state").write_text(text)
    with pytest.raises(SluiceError) as caught:
        open_log(tmp_path)
    expected = f"{file(tmp_path, 'quorum-state')}: invalid quorum state ({reason}); restore the file or delete it"
    assert str(caught.value) == expected
