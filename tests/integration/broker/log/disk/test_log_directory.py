"""The lock of a log directory, with a second process."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.broker.log.disk.meta_properties import Owner
from sluice.errors import SluiceError
from tests.support.disk_logs import NOW_MS


def open_as(path: Path, cluster_id: str = "mine", *, adopts_cluster_id: bool = False) -> LogDirectory:
    owner = Owner(cluster_id, 1, adopts_cluster_id)
    return LogDirectory(str(path), owner, lambda: NOW_MS, Random(1).randbytes)


def test_locked_directory_is_rejected_until_it_is_unlocked(tmp_path: Path) -> None:
    program = (
        "import fcntl, sys\n"
        "lock = open(sys.argv[1], 'a')\n"
        "fcntl.lockf(lock, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(SluiceError, match=r"in use by another broker, which has locked \.lock"):
            open_as(tmp_path)
    open_as(tmp_path)
