"""Resident memory of logs, measured in separate processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import skips

MIB = 1024 * 1024
STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason=skips.system("/proc; run it on Linux"))

# Common to the programs below: batches with values of `size` bytes, and the resident set size in bytes.
PRELUDE = """
import gc
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_manager import LogManager
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
MIB = 1024 * 1024

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

def batch(size):
    return memoryview(bytearray(build_batch([Record(0, NOW_MS, None, bytes(size))])))

def append(log, data):
    data[:8] = bytes(8)  # the base offset, written by the previous append
    log.append(data, NOW_MS, 0)
    log.advance_high_watermark(log.log_end_offset)

CONFIG = LogConfig(AppendConfig(max_message_bytes=4 * MIB, deep_max_bytes=0))
"""

FILL = """
logs = LogManager(64 * MIB)
log = logs.create("t-0", CONFIG)
data = batch({size})
while log.log_end_offset * len(data) < {total_mib} * MIB:
    append(log, data)
    assert logs.budget.used_bytes <= 64 * MIB * 1.02, logs.budget.used_bytes
print(resident(), log.size_in_bytes)
"""

MANY_TOPICS = """
logs = LogManager(64 * MIB)
data = batch(100)
before = resident()
for number in range(1000):
    append(logs.create(f"t-{number}", CONFIG), data)
print((resident() - before) // 1000, sum(log.size_in_bytes for log in logs) // 1000)
"""

RELEASE = """
logs = LogManager(64 * MIB)
log = logs.create("t-0", CONFIG)
data = batch(1 * MIB)
for _ in range(40):
    append(log, data)
held = log.read(39, 1, 40, True).parts
full = resident()
while log.size_in_bytes:
    log.drop_oldest_segment()
read = resident()
held.clear()
print(full - read, read - resident())
"""


def run(program: str) -> list[int]:
    """Return the numbers that `program` prints."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


SIZES = {
    # Half a million appends; 300 MiB would take ten seconds with the same result.
    "batches of one record of 100 bytes": (100, 80),
    "batches of 64 KiB": (64 * 1024, 300),
    "batches of 1 MiB": (MIB - 100, 300),
}


@pytest.mark.parametrize(("size", "total_mib"), SIZES.values(), ids=SIZES)
def test_resident_memory_is_little_more_than_the_budget(size: int, total_mib: int) -> None:
    resident, log_bytes = run(FILL.format(size=size, total_mib=total_mib))
    assert resident < 1.2 * 64 * MIB + 60 * MIB
    assert log_bytes > 64 * MIB * 2 / 3  # most of the budget is records, not index or unused capacity


def test_log_with_one_small_record_needs_a_few_kib() -> None:
    resident, log_bytes = run(MANY_TOPICS)
    assert log_bytes > 100
    assert resident < 12 * 1024


def test_memory_is_released_with_its_last_reader() -> None:
    released_at_deletion, released_with_last_reader = run(RELEASE)
    assert released_at_deletion > 30 * MIB
    assert released_with_last_reader >= MIB
