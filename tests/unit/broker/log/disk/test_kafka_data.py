"""A data directory of Kafka 4.4.0 with several segments, compressed batches, transactions and compaction."""

import tarfile
from pathlib import Path

import pytest

from sluice.broker.log.disk.meta_properties import Owner
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records
from sluice.protocol.uuids import uuid_from_printed
from tests.support.disk_logs import CONFIG, TOPIC_ID, Disk, append, batch, batches_in

DATA = Path(__file__).parents[4] / "fixtures" / "kafka-4.4.0-logs.tar.xz"
CLUSTER_ID = "wX3YvrqBSH7sFZEVneSeFQ"


class KafkaDisk(Disk):
    OWNER = Owner("ours", 1, adopts_cluster_id=True)

    def log(self, name: str = "plain-0", config: LogConfig = CONFIG, topic_id: bytes = TOPIC_ID) -> PartitionLog:
        ids = {f"{topic}-{index}": printed for topic, index, printed in self.directory.partitions()}
        return super().log(name, config, uuid_from_printed(ids[name]) or topic_id)


@pytest.fixture(params=[False, True], ids=["after a clean stop", "after a crash"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> KafkaDisk:
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    disk = KafkaDisk(tmp_path)
    if request.param:
        disk.crash()
    return disk


def values(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    read = log.read(log.log_start_offset, 10**9, log.high_watermark, True)
    data = b"".join(read.parts)
    return [
        (record.offset, record.value)
        for position, header in iter_batches(data)
        if not header.is_control
        for record in iter_records(memoryview(data)[position : position + header.size_in_bytes])
    ]


def test_directory_keeps_the_cluster_id_and_partitions_of_kafka(disk: KafkaDisk) -> None:
    assert disk.directory.cluster_id == CLUSTER_ID
    found = {(topic, index) for topic, index, _ in disk.directory.partitions()}
    assert {("plain", 0), ("transactions", 0), ("compacted", 0)} < found


def test_records_of_every_codec_are_readable(disk: KafkaDisk) -> None:
    log = disk.log("plain-0")
    assert len(log.segments) == 3
    assert (log.log_start_offset, log.log_end_offset) == (0, 200)
    assert values(log) == [(number, b"plain-%04d" % number + b"." * 60) for number in range(200)]
    for offset in range(200):
        first, last = batches_in(log, offset)[0]
        assert first <= offset <= last
    assert append(log, batch(3)) == 200


def test_transactions_are_restored(disk: KafkaDisk) -> None:
    log = disk.log("transactions-0")
    assert (log.log_end_offset, log.last_stable_offset) == (49, 48), (
        "the open transaction limits the last stable offset"
    )
    aborted = log.aborted_transactions(0, 48)
    assert [(txn.first_offset, txn.last_offset) for txn in aborted] == [(4, 7), (16, 19), (28, 31), (40, 43)]
    ranges = [range(txn.first_offset, txn.last_offset) for txn in aborted]
    for offset, value in values(log)[:-1]:
        assert (value or b"").startswith(b"aborted") == any(offset in offsets for offsets in ranges)
    assert len(log.producers) == 1


def test_compacted_records_are_found_across_gaps(disk: KafkaDisk) -> None:
    log = disk.log("compacted-0")
    assert (log.log_start_offset, log.log_end_offset) == (0, 161)
    offsets = [offset for offset, _ in values(log)]
    assert offsets == [154, 155, 156, 157, 158, 159, 160]
    assert batches_in(log, 0)[0] == batches_in(log, 100)[0]
    assert batches_in(log, 160) == [(160, 160)]
