"""`make bench-client`: sluice's producer and consumer compared with aiokafka's, and the lateness of expired batches.

Records of 1 KiB, in batches of 64 KiB and 512 KiB, uncompressed and with lz4. Each round runs both clients, in
alternating order. Figures are medians over the rounds, ratios are medians of the ratios within one. A fast client waits
for the broker, so its CPU time is the measure, not the elapsed time.
"""

import argparse
import json
import statistics
import subprocess
import sys
from typing import NamedTuple

from bench.__main__ import server
from bench.load import cpu_seconds

WANTED_RATIO = 1.3
WANTED_LATE_P99_MS = 20.0
CODECS = ("none", "lz4")
BATCH_BYTES = (64 * 1024, 512 * 1024)
LIBRARIES = ("ours", "aiokafka")


class Run(NamedTuple):
    """The time of one client for all records; `broker_s` is the CPU time of the broker."""

    clock_s: float
    cpu_s: float
    broker_s: float


def client(*arguments: str) -> str:
    """Run a client; return its output."""
    command = [sys.executable, "-m", "bench.client_load", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout


def run(library: str, kind: str, pid: int, bootstrap: str, codec: str, batch_bytes: int, records: int) -> Run:
    """Measure one run of a client."""
    before = cpu_seconds(pid)
    result = json.loads(client(library, kind, bootstrap, "bench", codec, str(batch_bytes), str(records)))
    return Run(result["clock_s"], result["cpu_s"], cpu_seconds(pid) - before)


def measure(kind: str, codec: str, batch_bytes: int, rounds: int, records: int) -> bool:
    """Print a row of the table; return whether it reaches the target."""
    runs: dict[str, list[Run]] = {library: [] for library in LIBRARIES}
    with server("sluice", "serve", "--port", "0", "--admin-port", "0") as (pid, line):
        bootstrap = json.loads(line.removeprefix("ready "))["bootstrap"]
        if kind == "consume":
            client("ours", "produce", bootstrap, "bench", codec, str(batch_bytes), str(records * 12 // 10))
        for number in range(rounds):
            for library in LIBRARIES if number % 2 else reversed(LIBRARIES):
                runs[library].append(run(library, kind, pid, bootstrap, codec, batch_bytes, records))
    pairs = list(zip(*runs.values(), strict=True))
    median = statistics.median
    by_clock = median(theirs.clock_s / ours.clock_s for ours, theirs in pairs)
    by_cpu: float = median(theirs.cpu_s / ours.cpu_s for ours, theirs in pairs)
    rates = " ".join(f"{records / median(one.clock_s for one in runs[library]):>9,.0f}" for library in LIBRARIES)
    costs = " ".join(f"{median(one.cpu_s for one in runs[library]) / records * 1e6:>8.2f}" for library in LIBRARIES)
    broker = median(one.broker_s for one in runs["ours"]) / records / 1.1 * 1e6
    is_met = by_cpu >= WANTED_RATIO
    name = f"{kind}, {codec}, {batch_bytes // 1024} KiB"
    verdict = "ok" if is_met else "MISSED"
    print(f"{name:<24} {rates} {by_clock:>6.2f}  {costs} {by_cpu:>6.2f} {broker:>8.2f}  {verdict}", flush=True)
    return is_met


# Faults that let batches expire by the delivery timeout: in the queue, between retries, in flight.
FAULTS = {
    "queued batches": ("action=error", "code=COORDINATOR_LOAD_IN_PROGRESS", "api=InitProducerId"),
    "retried batches": ("action=error", "code=NOT_ENOUGH_REPLICAS", "api=Produce"),
    "batches in flight": ("action=black-hole", "api=Produce"),
}
_FOUR_PARTITIONS = ("--override", "num.partitions=4")


def measure_lateness(batches: int, timeout_ms: int) -> bool:
    """Print how late expired batches are reported; return whether this reaches the target."""
    late: list[float] = []
    for name, rule in FAULTS.items():
        with server("sluice", "serve", "--port", "0", "--admin-port", "0", *_FOUR_PARTITIONS) as (_, line):
            ready = json.loads(line.removeprefix("ready "))
            subprocess.run(
                [sys.executable, "-m", "sluice", "faults", "add", "--admin", ready["admin"], *rule],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            part = json.loads(client("lateness", "-", ready["bootstrap"], "bench", str(timeout_ms), str(batches // 3)))
        print(f"{name:<24} {_percentiles(part)}", flush=True)
        late += part
    is_met = _p99(late) < WANTED_LATE_P99_MS
    print(f"{'all':<24} {_percentiles(late)}  {'ok' if is_met else 'MISSED'}")
    return is_met


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def _percentiles(values: list[float]) -> str:
    return (
        f"{len(values):>6,} batches, reported after the delivery timeout by {statistics.median(values):.1f} ms (p50), "
        f"{_p99(values):.1f} ms (p99), {max(values):.1f} ms (maximum)"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=60_000, help="number of records of each run")
    parser.add_argument("--batches", type=int, default=10_200, help="number of batches that expire")
    parser.add_argument("--delivery-timeout-ms", type=int, default=3000)
    parser.add_argument("--only", default="", help="text in the names of the rows to run, such as consume or lateness")
    given = parser.parse_args()
    is_met = True
    print(f"{'':<24} {'records/s':>19} {'':>6}  {'CPU us/record':>17} {'':>6} {'broker':>8}")
    print(f"{'':<24} {'ours':>9} {'aiokafka':>9} {'ratio':>6}  {'ours':>8} {'aiokafka':>8} {'ratio':>6} {'CPU us':>8}")
    for kind in ("produce", "consume"):
        for codec in CODECS:
            for size in BATCH_BYTES:
                if given.only in f"{kind}, {codec}, {size // 1024} KiB":
                    is_met &= measure(kind, codec, size, given.rounds, given.records)
    if given.only in "lateness":
        is_met &= measure_lateness(given.batches, given.delivery_timeout_ms)
    print(f"target: CPU ratio at least {WANTED_RATIO}, p99 of lateness under {WANTED_LATE_P99_MS:.0f} ms")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
