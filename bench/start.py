"""The start-up time with a full data directory, after a clean stop and after a crash.

`python -m bench.start [--gigabytes 10] [--partitions 200] [--folder DIR]` fills a temporary directory in DIR, starts
`sluice serve` with it, and prints the time to the `ready` line. After the crash no recovery point exists, so the broker
reads every byte.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.requests.runtime import Runtime
from sluice.broker.server.log_dir_recovery import recover_log_dir
from sluice.clock import ManualClock
from sluice.config.broker_config import Config
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

RECORDS, RECORD_BYTES = 16, 1024  # a batch of a producer's default batch.size
WALL_MS = 1_700_000_000_000


def fill(folder: Path, partitions: int, size: int) -> None:
    """Write the logs in this process, like a broker, without a clean stop."""
    config = Config.load(None, [f"log.dirs={folder}"], {})
    clock = ManualClock(0, WALL_MS)
    cluster = Cluster(Runtime(config, clock, Random(1)))
    Broker(cluster, {}, {})
    assert cluster.logs.directory is not None
    recover_log_dir(cluster, cluster.logs.directory)
    cluster.create(NewTopic("full", partitions))
    records = [Record(offset, WALL_MS, None, os.urandom(RECORD_BYTES)) for offset in range(RECORDS)]
    batch = bytearray(build_batch(records))
    logs = [partition.log for partition in cluster.topics["full"].partitions]
    for number in range(size // len(batch)):
        batch[:8] = bytes(8)
        result = logs[number % partitions].append(memoryview(batch), WALL_MS, 0)
        assert not result.error_code, result.reason


def start(folder: Path) -> str:
    """Start a broker and stop it cleanly; return the time to its `ready` line."""
    command = [sys.executable, "-m", "sluice", "serve", "--port", "0", "--admin-port", "0", "--data-dir", str(folder)]
    began = perf_counter()
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    line = broker.stdout.readline()
    took_s = perf_counter() - began
    json.loads(line.removeprefix("ready "))
    cpu_s = cpu_seconds(broker.pid)
    broker.terminate()
    broker.wait()
    return f"{took_s:.2f} s, CPU time {cpu_s:.2f} s"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, which a busy machine affects less than the elapsed time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        data = Path(folder) / "data"
        child = os.fork()
        if not child:
            fill(data, given.partitions, int(given.gigabytes * 1e9))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(f"{given.gigabytes:g} GB in {given.partitions} partitions")
        print(f"start after a crash: {start(data)}")
        for _ in range(3):
            print(f"start after a clean stop: {start(data)}", flush=True)


if __name__ == "__main__":
    main()
