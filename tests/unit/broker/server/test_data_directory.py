"""A broker with a data directory: restarts, copied partitions, and errors of a failing disk."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import SluiceError
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, fetch, fetched, produce, records_of
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

PRODUCE_VERSION, FETCH_VERSION = 9, 11


def started(path: Path, *overrides: str) -> VirtualBroker:
    return VirtualBroker(f"log.dirs={path}", *overrides)


def produced(broker: VirtualBroker) -> Any:
    response = broker.client().call(produce(PRODUCE_VERSION, batch(b"value")), PRODUCE_VERSION)
    return response.responses[0].partition_responses[0]


def read(broker: VirtualBroker) -> PartitionData:
    return fetched(broker.client().call(fetch(), FETCH_VERSION))


def test_topics_and_records_are_restored_after_a_restart(tmp_path: Path) -> None:
    broker = started(tmp_path)
    topic_id = broker.topic("t", partitions=2, retention_ms="77").topic_id
    assert produced(broker).base_offset == 0
    broker.cluster.close()
    restarted = started(tmp_path)
    topic = restarted.cluster.topics["t"]
    assert (topic.topic_id, len(topic.partitions), topic.config.own) == (topic_id, 2, {"retention.ms": "77"})
    assert topic.partitions[0].leader_epoch == 1, "each start elects a leader"
    assert records_of(read(restarted)).endswith(b"value\0")
    assert produced(restarted).base_offset == 1


def test_copied_partitions_become_topics(tmp_path: Path) -> None:
    broker = started(tmp_path / "from")
    topic_id = broker.topic("t").topic_id
    produced(broker)
    broker.cluster.close()
    shutil.copytree(tmp_path / "from" / "t-0", tmp_path / "to" / "t-0")
    restarted = started(tmp_path / "to")
    assert restarted.cluster.topics["t"].topic_id == topic_id
    assert produced(restarted).base_offset == 1
    restarted.cluster.close()
    assert started(tmp_path / "to").cluster.topics["t"].partitions[0].log.log_end_offset == 2


def test_several_log_dirs_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(SluiceError, match=r"log\.dirs: expected one directory"):
        started(Path("/a,/b"))


def test_default_segment_size_on_disk_is_kafkas(tmp_path: Path) -> None:
    assert started(tmp_path / "a").topic().partitions[0].log.config.segment_bytes == 2**30
    assert (
        started(tmp_path / "b", "log.segment.bytes=5000000").topic().partitions[0].log.config.segment_bytes == 5000000
    )
    assert VirtualBroker().topic().partitions[0].log.config.segment_bytes == 4 * 2**20


def test_describe_log_dirs_returns_the_directory_and_volume_size(tmp_path: Path) -> None:
    broker = started(tmp_path)
    broker.topic()
    (result,) = broker.client().call(DescribeLogDirsRequest(topics=None), 4).results
    assert result.log_dir == str(tmp_path)
    assert 0 < result.usable_bytes <= result.total_bytes


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VirtualBroker:
    """Return a broker with one record and a disk that fails every read and write."""
    broker = started(tmp_path)
    broker.topic()
    assert produced(broker).error_code == ErrorCode.NONE

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path))

    for name in ("pwrite", "pread", "makedirs"):
        monkeypatch.setattr(os, name, fail)
    return broker


def test_produce_to_a_failing_disk_returns_a_storage_error(failing: VirtualBroker) -> None:
    response = produced(failing)
    assert (response.error_code, response.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_fetch_from_a_failing_disk_returns_a_storage_error(failing: VirtualBroker) -> None:
    assert read(failing).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("timestamp", [WALL_START_MS, -3])
def test_list_offsets_on_a_failing_disk_returns_a_storage_error(failing: VirtualBroker, timestamp: int) -> None:
    topic = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=timestamp)])
    response = failing.client().call(ListOffsetsRequest(topics=[topic]), 7)
    assert response.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_create_topics_on_a_failing_disk_returns_a_storage_error_and_creates_none(failing: VirtualBroker) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)])
    (response,) = failing.client().call(request, 5).topics
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "new" not in failing.cluster.topics


def test_records_are_deleted_on_a_failing_disk_but_not_their_segment(failing: VirtualBroker) -> None:
    log = failing.partition().log
    topic = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(offset=1)])
    response = failing.client().call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (ErrorCode.NONE, 1)
    size = log.size_in_bytes
    assert log.drop_oldest_segments(1) == 0
    assert (log.log_start_offset, log.size_in_bytes) == (1, size)
