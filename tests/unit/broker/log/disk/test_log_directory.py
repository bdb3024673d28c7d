"""The data directory: who may use it, whose it is, and what is deleted when."""

from pathlib import Path
from random import Random

import pytest

from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.broker.log.disk.meta_properties import Owner
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.retention import enforce_retention
from sluice.errors import SluiceError
from sluice.protocol.records.log_validator import AppendConfig
from tests.support.disk_logs import CONFIG, NOW_MS, TOPIC_ID, Disk, append, batch, batches_in


def open_as(path: Path, cluster_id: str = "mine", node_id: int = 1, *, adopts_cluster_id: bool = False) -> LogDirectory:
    owner = Owner(cluster_id, node_id, adopts_cluster_id)
    return LogDirectory(str(path), owner, lambda: NOW_MS, Random(1).randbytes)


def test_a_new_directory_is_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    directory = open_as(path)
    lines = (path / "meta.properties").read_text().splitlines()
    assert {"version=1", "cluster.id=mine", "node.id=1"} < set(lines)
    directory.unlock()
    assert open_as(path).directory_id == directory.directory_id


def test_one_that_has_a_cluster_keeps_it(tmp_path: Path) -> None:
    open_as(tmp_path, "theirs").unlock()
    assert open_as(tmp_path, "default", adopts_cluster_id=True).cluster_id == "theirs"


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        pytest.param("version=1\ncluster.id=other\nnode.id=1\n", "got cluster.id=other", id="cluster"),
        pytest.param("version=1\ncluster.id=mine\nnode.id=7\n", "got node.id=7", id="node"),
        pytest.param(
            "version=2\ncluster.id=mine\nnode.id=1\n",
            "unsupported version; expected 0 or 1, got 2",
            id="a newer format",
        ),
        pytest.param("version=1\ncluster.id=\\u00\n", "meta.properties: ", id="no properties"),
    ],
)
def test_one_of_another_is_refused_in_a_line(tmp_path: Path, meta: str, told: str) -> None:
    (tmp_path / "meta.properties").write_text(meta)
    with pytest.raises(SluiceError) as refused:
        open_as(tmp_path)
    assert told in str(refused.value)
    assert str(tmp_path / "meta.properties") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(SluiceError, match=f"{path}: log.dirs is a file; expected a directory"):
        open_as(path)


def test_one_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(SluiceError, match="/proc/data: "):
        open_as(Path("/proc/data"))


def test_a_deleted_partition_goes_after_its_delay(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log(config=LogConfig(AppendConfig(), file_delete_delay_ms=500))
    append(log, batch())
    log.close()
    (renamed,) = tmp_path.glob("t-0.*-delete")
    assert not (tmp_path / "t-0").exists()
    disk.now_ms += 499
    disk.directory.tick()
    assert renamed.exists()
    disk.now_ms += 1
    disk.directory.tick()
    assert not renamed.exists()
    assert disk.log().log_end_offset == 0, "a topic of the same name is new"


def test_deleted_partitions_that_were_left_go_at_a_start(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log()
    append(log, batch())
    log.close()
    disk.crash()
    assert list(tmp_path.glob("*-delete")) == []


def test_retention_deletes_files(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log(config=LogConfig(AppendConfig(), segment_bytes=1000, retention_ms=1000, file_delete_delay_ms=10))
    for _ in range(20):
        append(log, batch([bytes(100)]))
    enforce_retention(log, NOW_MS + 1001)
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (20, 20, 0)
    assert len(list(disk.file("").glob("*.log"))) == 1, "an empty segment says where the log ends"
    disk.now_ms += 10
    disk.directory.tick()
    assert list(disk.file("").glob("*.deleted")) == []
    disk.stop()
    again = disk.log()
    assert (again.log_start_offset, again.log_end_offset) == (20, 20)
    assert append(again, batch()) == 20


def test_a_directory_of_another_topic_is_put_aside(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    append(disk.log(), batch())
    disk.stop()
    other = disk.directory.open_log("t-0", CONFIG, bytes(15) + b"\7")
    assert other.log_end_offset == 0
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1


def test_found_partitions_have_their_topics_ids(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for name in ("b-1", "a.b-0", "b-0"):
        disk.log(name)
    (tmp_path / "c").mkdir()
    assert [found[:2] for found in disk.directory.partitions()] == [("a.b", 0), ("b", 0), ("b", 1)]
    assert {found[2] for found in disk.directory.partitions()} == {"AAECAwQFBgcICQoLDA0ODw"}
    assert bytes(range(16)) == TOPIC_ID


def test_checkpoints_that_cannot_be_read_are_told_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(tmp_path)
    append(disk.log(), batch(3))
    disk.directory.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n5\n")
    again = Disk(tmp_path).log()
    assert batches_in(again) == [(0, 2)]
    (line,) = [record for record in caplog.records if record.message == "ignoring an unreadable checkpoint"]
    assert "recovery-point-offset-checkpoint: wrong number of entries; expected 5, got 0" in line.reason  # type: ignore[attr-defined]


def test_a_topic_of_a_deleted_ones_name_begins_at_0_also_after_a_crash(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log()
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
