"""The data directory: identity, deleted partitions, topic ids and checkpoints."""

from pathlib import Path
from random import Random

import pytest

from sluice.broker.log.disk.file_names import CLEANED_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.broker.log.disk.meta_properties import Owner
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.retention import enforce_retention
from sluice.errors import SluiceError
from sluice.protocol.records.log_validator import AppendConfig
from tests.support.disk_logs import NOW_MS, TOPIC_ID, Disk, append, batch, batches_in

OTHER_ID = bytes(15) + b"\7"


def open_as(path: Path, cluster_id: str = "mine", node_id: int = 1, *, adopts_cluster_id: bool = False) -> LogDirectory:
    owner = Owner(cluster_id, node_id, adopts_cluster_id)
    return LogDirectory(str(path), owner, lambda: NOW_MS, Random(1).randbytes)


def test_new_directory_gets_the_identity_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    directory = open_as(path)
    lines = (path / "meta.properties").read_text().splitlines()
    assert {"version=1", "cluster.id=mine", "node.id=1"} < set(lines)
    directory.unlock()
    assert open_as(path).directory_id == directory.directory_id


def test_owner_can_adopt_the_cluster_id_of_the_directory(tmp_path: Path) -> None:
    open_as(tmp_path, "theirs").unlock()
    assert open_as(tmp_path, "default", adopts_cluster_id=True).cluster_id == "theirs"


OTHER_BROKERS = {
    "another cluster": ("version=1\ncluster.id=other\nnode.id=1\n", "got cluster.id=other"),
    "another node": ("version=1\ncluster.id=mine\nnode.id=7\n", "got node.id=7"),
    "newer format": ("version=2\ncluster.id=mine\nnode.id=1\n", "unsupported version; expected 0 or 1, got 2"),
    "malformed properties": ("version=1\ncluster.id=\\u00\n", "meta.properties: "),
}


@pytest.mark.parametrize(("meta", "message"), OTHER_BROKERS.values(), ids=OTHER_BROKERS)
def test_directory_of_another_broker_is_rejected_with_a_one_line_error(tmp_path: Path, meta: str, message: str) -> None:
    (tmp_path / "meta.properties").write_text(meta)
    with pytest.raises(SluiceError) as raised:
        open_as(tmp_path)
    assert message in str(raised.value)
    assert str(tmp_path / "meta.properties") in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", [b"\xff", b"", b"version: 0\ntopic_id: a/b", b"version: 0\ntopic_id: a\0b"])
def test_invalid_topic_id_is_written_again(disk: Disk, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    append(disk.log(), batch())
    path = disk.file("partition.metadata")
    before = path.read_bytes()
    path.write_bytes(content)
    disk.stop()
    assert batches_in(disk.log()) == [(0, 0)]
    assert "rewriting an invalid topic id" in caplog.messages
    assert path.read_bytes() == before


def test_file_instead_of_a_directory_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(SluiceError, match=f"{path}: log.dirs is a file; expected a directory"):
        open_as(path)


def test_directory_that_cannot_be_created_is_rejected() -> None:
    with pytest.raises(SluiceError, match="/proc/data: "):
        open_as(Path("/proc/data"))


def test_deleted_partition_is_removed_after_the_delete_delay(disk: Disk, tmp_path: Path) -> None:
    log = disk.log(config=LogConfig(AppendConfig(), file_delete_delay_ms=500))
    append(log, batch())
    log.close()
    (deleted_path,) = tmp_path.glob("t-0.*-delete")
    assert not (tmp_path / "t-0").exists()
    disk.now_ms += 499
    disk.directory.tick()
    assert deleted_path.exists()
    disk.now_ms += 1
    disk.directory.tick()
    assert not deleted_path.exists()
    assert disk.log().log_end_offset == 0, "a new topic of the same name starts empty"


def test_leader_epoch_after_a_deletion_is_not_written(log: PartitionLog, caplog: pytest.LogCaptureFixture) -> None:
    log.close()
    log.begin_epoch(7)
    assert not caplog.messages


def test_remaining_deleted_partitions_are_removed_at_start(log: PartitionLog, disk: Disk, tmp_path: Path) -> None:
    append(log, batch())
    log.close()
    disk.crash()
    assert list(tmp_path.glob("*-delete")) == []


def test_retention_deletes_files(disk: Disk) -> None:
    log = disk.log(config=LogConfig(AppendConfig(), segment_bytes=1000, retention_ms=1000, file_delete_delay_ms=10))
    for _ in range(20):
        append(log, batch([bytes(100)]))
    enforce_retention(log, NOW_MS + 1001)
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (20, 20, 0)
    assert len(list(disk.file("").glob("*.log"))) == 1, "an empty segment preserves the log end offset"
    disk.now_ms += 10
    disk.directory.tick()
    assert list(disk.file("").glob("*.deleted")) == []
    disk.stop()
    reopened = disk.log()
    assert (reopened.log_start_offset, reopened.log_end_offset) == (20, 20)
    assert append(reopened, batch()) == 20


def test_directory_with_another_topic_id_is_renamed_as_stray(disk: Disk, tmp_path: Path) -> None:
    append(disk.log(), batch())
    disk.stop()
    other = disk.log(topic_id=OTHER_ID)
    assert other.log_end_offset == 0
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1


def test_directory_of_a_topic_with_the_longest_name_can_be_stray(disk: Disk, tmp_path: Path) -> None:
    names = [f"{'n' * 249}-{index}" for index in range(2)]
    for name in names:
        append(disk.log(name), batch())
    disk.stop()
    for name in names:
        assert disk.log(name, topic_id=OTHER_ID).log_end_offset == 0
    assert len(list(tmp_path.glob("*-stray"))) == 2


@pytest.mark.parametrize(
    "name", ["__cluster_metadata-0", "__cluster_metadata-1", "..-0", "../t-0", "t", "meta.properties"]
)
def test_directory_that_is_no_partition_is_refused(disk: Disk, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.parent.rglob("*"))
    with pytest.raises(SluiceError) as caught:
        disk.log(name)
    expected = "<topic>-<partition> with a valid topic name other than __cluster_metadata"
    assert str(caught.value) == (
        f"{tmp_path}: invalid name of a partition's directory; expected {expected}, got {name!r}"
    )
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_directory_of_an_open_log_is_refused_to_a_name_that_differs_by_case(disk: Disk, tmp_path: Path) -> None:
    log = disk.log("t-0")
    (tmp_path / "T-0").symlink_to("t-0")  # as on a case-insensitive file system
    with pytest.raises(FileExistsError, match="The file system is case-insensitive and has t-0"):
        disk.log("T-0", topic_id=OTHER_ID)
    append(log, batch(3))
    disk.stop()
    assert batches_in(disk.log("t-0")) == [(0, 2)]


def test_partitions_are_listed_with_their_topic_ids(disk: Disk, tmp_path: Path) -> None:
    for name in ("b-1", "a.b-0", "b-0"):
        disk.log(name)
    (tmp_path / "c").mkdir()
    assert [found[:2] for found in disk.directory.partitions()] == [("a.b", 0), ("b", 0), ("b", 1)]
    assert {found[2] for found in disk.directory.partitions()} == {"AAECAwQFBgcICQoLDA0ODw"}
    assert bytes(range(16)) == TOPIC_ID


@pytest.mark.parametrize("name", [RECOVERY_POINTS, LOG_STARTS, CLEANED_OFFSETS])
def test_directory_instead_of_a_checkpoint_is_a_one_line_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(SluiceError, match=f"{name}: Is a directory$"):
        Disk(tmp_path)


def test_unreadable_checkpoint_is_logged_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(tmp_path)
    append(disk.log(), batch(3))
    disk.directory.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n5\n")
    reopened = Disk(tmp_path).log()
    assert batches_in(reopened) == [(0, 2)]
    (line,) = [record for record in caplog.records if record.message == "ignoring an unreadable checkpoint"]
    assert "recovery-point-offset-checkpoint: wrong number of entries; expected 5, got 0" in line.reason  # type: ignore[attr-defined]


def test_topic_with_the_name_of_a_deleted_one_starts_at_0_even_after_a_crash(log: PartitionLog, disk: Disk) -> None:
    append(log, batch(5))
    append(log, batch(5))
    log.delete_records_before(7)
    disk.stop()
    log = disk.log()
    assert log.log_start_offset == 7
    log.close()
    assert append(disk.log(), batch(2)) == 0
    disk.crash()
    assert batches_in(disk.log()) == [(0, 1)]
