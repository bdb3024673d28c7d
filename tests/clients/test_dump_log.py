"""Kafka's kafka-dump-log reads a data directory and reports no problem."""

from pathlib import Path

import pytest

from sluice.broker.log.log_config import LogConfig
from sluice.protocol.records.build import ABORT, COMMIT
from sluice.protocol.records.log_validator import AppendConfig
from tests.clients.kafka_commands import kafka_command
from tests.support.disk_logs import NOW_MS, Disk, append, batch, end_transaction

pytestmark = pytest.mark.kafka_commands

CONFIG = LogConfig(AppendConfig(), segment_bytes=8_000, index_interval_bytes=1000)
# Its complaints about an index or a time index.
COMPLAINTS = ("mismatch", "Mismatches", "Missing", "Corrupt", "corrupt", "Exception", "out of order", "isvalid: false")


def dump(files: list[Path], *options: str) -> str:
    return kafka_command("DumpLogSegments", "--files", ",".join(map(str, files)), *options).text


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The directory of a partition with several segments, transactions, producers and compression."""
    disk = Disk(tmp_path)
    log = disk.log(config=CONFIG)
    for number in range(60):
        append(log, batch([bytes(50)] * 5, timestamp=NOW_MS + number, producer_id=1, sequence=5 * number))
        if number % 3 == 0:
            append(log, batch([b"z" * 500] * 3, timestamp=NOW_MS + number, compression=1 + number % 4))
        if number % 7 == 0:
            append(log, batch(2, producer_id=100 + number, transactional=True, timestamp=NOW_MS + number))
            end_transaction(log, ABORT if number % 2 else COMMIT, 100 + number)
    append(log, batch(producer_id=99, transactional=True))
    disk.directory.close()
    return tmp_path / "t-0"


def test_dump_log_reads_all_files(written: Path) -> None:
    files = sorted(path for path in written.iterdir() if path.suffix in (".log", ".index", ".timeindex", ".txnindex"))
    assert {path.suffix for path in files} == {".log", ".index", ".timeindex", ".txnindex"}
    assert sum(path.suffix == ".log" for path in files) > 2
    output = dump([*files, *sorted(written.glob("*.snapshot"))], "--deep-iteration", "--print-data-log")
    assert not [line for line in output.splitlines() if any(complaint in line for complaint in COMPLAINTS)]
    assert "producerId: 99" in output, "the producer snapshot was not read"
    assert output.count("baseOffset:") > 80


def test_dump_log_passes_the_index_sanity_check(written: Path) -> None:
    for path in sorted(written.glob("*.index")):
        assert "passed sanity check" in dump([path], "--index-sanity-check")
