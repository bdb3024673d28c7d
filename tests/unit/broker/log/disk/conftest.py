"""A data directory with a manual clock, and the log of a partition in it."""

from pathlib import Path

import pytest

from sluice.broker.log.partition_log import PartitionLog
from tests.support.disk_logs import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def log(disk: Disk) -> PartitionLog:
    """Log t-0, which is empty."""
    return disk.log()
