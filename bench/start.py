"""How long a start takes with a full data directory: after a clean stop, and after a crash that left nothing flushed.

`python -m bench.start [--gigabytes 10] [--partitions 200] [--folder DIR]` fills DIR (a temporary directory), starts
`sluice serve` on it as a process, and prints the time to its `ready` line. After the crash every byte is read again:
no recovery point had been written.
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

from sluice.broker.controller.cluster import Cluster
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.server.broker import Broker
from sluice.broker.server.log_dir_recovery import recover_log_dir
from sluice.clock import ManualClock
from sluice.config.broker_config import Config
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

RECORDS, RECORD_BYTES = 16, 1024  # of a batch: what a producer's default batch.size makes
WALL_MS = 1_700_000_000_000


def fill(folder: Path, partitions: int, size: int) -> None:
    """Writes in this process, as a broker does, and ends without a stop."""
    config = Config.load(None, [f"log.dirs={folder}"], {})
    clock = ManualClock(0, WALL_MS)
    cluster = Cluster(config, clock, Random(1))
    Broker(config, clock, Random(1), cluster)
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
    """How long it took to the `ready` line; the broker is stopped cleanly."""
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
    return f"{took_s:.2f} s, of the processor {cpu_s:.2f} s"


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processor: on a busy machine, the figure that says more."""
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
        print(f"start after a crash, nothing flushed: {start(data)}")
        for _ in range(3):
            print(f"start after a clean stop: {start(data)}", flush=True)


if __name__ == "__main__":
    main()
