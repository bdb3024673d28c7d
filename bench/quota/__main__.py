"""`make bench-quota`: the accuracy of quotas for real clients, and their cost, in a table with targets.

Rates follow from the charges that the broker recorded, over whole cycles of burst and throttle after the first one. (A
cycle is 11 to 12 s; the rate of a part of one may be up to 11 times the quota.) "virtual" is the rate of the same
requests and arithmetic in virtual time, where no timer is late. "waited" is the pause of clients after a throttle,
divided by the throttle time; 2 means that a client waited twice.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import load
from bench.__main__ import produce
from bench.quota.client import QUOTA, RECORD
from bench.verdicts import Verdicts
from sluice.cli.demo.trace import Exchange, Trace
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig

FIRST_WINDOW_MS = 12_000  # until the first burst has left the window
MANY, SMALL_QUOTA = 200, 20_000
PROFILES = ("kip-13", "kafka-4.4", "by-version")

Charges = list[tuple[int, float, int]]


@contextmanager
def recording_broker(folder: Path, *properties: str) -> Iterator[tuple[str, Path]]:
    """Start a broker; yield its bootstrap address and the file that has its charges after the stop."""
    file = folder / f"charges-{time.monotonic_ns()}.json"
    command = [sys.executable, "-m", "bench.quota.broker", str(file), "--port", "0", "--admin-port", "0"]
    for override in properties:
        command += ["--override", override]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert broker.stdout is not None
    try:
        yield json.loads(broker.stdout.readline().removeprefix("ready "))["bootstrap"], file
    finally:
        broker.terminate()
        broker.wait()


def trace_of(charges: Charges) -> Trace:
    """Return the trace of the charges, without the bytes of fetches whose charge was removed."""
    trace = Trace()
    for (at_ms, value, throttle_ms), (_, following, _) in pairwise([*charges, (0, 0.0, 0)]):
        if value > 0:
            trace.add(Exchange(at_ms, at_ms, 0 if following == -value else int(value), throttle_ms))
    return trace


def achieved(trace: Trace, quota: float) -> float:
    """Return bytes/s over whole cycles after the first burst; without cycles, after the first window."""
    cycles = trace.whole_cycles(quota)
    if cycles is not None:
        return cycles.byte_rate
    first_ms, last_ms = (trace.exchanges[index].answered_ms for index in (0, -1))
    return trace.byte_rate(first_ms + FIRST_WINDOW_MS, last_ms)


def replayed(trace: Trace, quota: float, *, taken_back: bool) -> Trace:
    """Replay the requests in virtual time, with exact throttle times."""
    gaps = [(each, after.answered_ms - each.answered_ms) for each, after in pairwise(trace.exchanges)]
    own_ms = statistics.median([gap for each, gap in gaps if not each.throttle_ms] or [1.0])
    steps = [(each.payload_bytes, own_ms if each.throttle_ms else gap) for each, gap in gaps if each.payload_bytes]
    manager = ClientQuotaManager("Virtual", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=DEFAULT), quota)
    virtual = Trace()
    first_ms, last_ms = (trace.exchanges[index].answered_ms for index in (0, -1))
    now_ms = first_ms
    for value, gap in cycle(steps):
        throttle_ms = manager.record("", "c", value, int(now_ms))
        while throttle_ms and taken_back:
            manager.unrecord("", "c", value, int(now_ms))
            now_ms += throttle_ms
            throttle_ms = manager.record("", "c", value, int(now_ms))
        virtual.add(Exchange(now_ms, now_ms, value, throttle_ms))
        now_ms += max(throttle_ms, gap)
        if now_ms > last_ms:
            return virtual
    raise AssertionError("steps never end")


def waited(charges: Charges) -> float:
    """Return the pauses of clients after throttles, divided by the throttle times."""
    taken = [charge for charge in charges if charge[1] > 0]
    pauses = [(after[0] - at_ms, throttle_ms) for (at_ms, _, throttle_ms), after in pairwise(taken) if throttle_ms > 50]
    return sum(pause for pause, _ in pauses) / max(1, sum(throttle_ms for _, throttle_ms in pauses))


def measure_libraries(profile: str, seconds: float, verdicts: Verdicts, folder: Path) -> None:
    """Measure six clients at once: each library produces and fetches, each client with its own quota."""
    # With newer request versions kafka-python would wait twice: for the delayed response, and on its side (KIP-219).
    kafka_python = "kafka-python-old" if profile == "kip-13" else "kafka-python"
    libraries = ("aiokafka", kafka_python, "confluent-kafka")
    ids = {(library, kind): f"{library}-{kind}" for library in libraries for kind in ("produce", "fetch")}
    overrides = ",".join(f"{client_id}:{QUOTA}" for client_id in ids.values())
    properties = (
        f"quota.profile={profile}",
        f"quota.producer.override={overrides}",
        f"quota.consumer.override={overrides}",
    )
    with recording_broker(folder, *properties) as (bootstrap, file):
        fill(bootstrap, "full", round((seconds + 30) * QUOTA / len(RECORD)))
        clients = []
        for (library, kind), client_id in ids.items():
            topic = "full" if kind == "fetch" else client_id
            command = [sys.executable, "-m", "bench.quota.client", library, kind, bootstrap, client_id, topic]
            clients.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(FIRST_WINDOW_MS / 1e3 + seconds + 3)
        for client in clients:
            client.kill()
            client.wait()
    charges: dict[str, Charges] = json.loads(file.read_text())["charges"]
    for (_, kind), client_id in ids.items():
        found = charges.get(f"{kind.capitalize()} {client_id}", [])
        if len(found) < 10:
            verdicts.add(f"{profile}: {client_id}", "no requests", "within 5 % of its quota", False)
            continue
        trace = trace_of(found)
        rate = achieved(trace, QUOTA)
        virtual = achieved(replayed(trace, QUOTA, taken_back=any(value < 0 for _, value, _ in found)), QUOTA)
        once = waited(found)
        verdicts.add(
            f"{profile}: {client_id}",
            f"{rate / QUOTA:.1%}, virtual {virtual / QUOTA:.1%}, waited {once:.2f}",
            "5 %; 2 % of virtual; once",
            abs(rate / QUOTA - 1) < 0.05 and abs(rate / virtual - 1) < 0.02 and once < 1.5,
        )


def fill(bootstrap: str, topic: str, records: int) -> None:
    """Produce records for the fetching clients, one per batch."""
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="filler", max_batch_size=len(RECORD))
        await producer.start()
        for _ in range(records):
            await producer.send(topic, RECORD, partition=0)
        await producer.stop()

    asyncio.run(send())


def measure_many(seconds: float, verdicts: Verdicts, folder: Path) -> None:
    """Measure 200 clients, each above its own quota."""
    frame = bytearray(produce(2_000, 1)[0])

    async def client(number: int, host: str, port: int) -> None:
        own = frame.replace(b"bench", b"c%04d" % number, 1)  # in the header, with the same length
        reader, writer = await asyncio.open_connection(host, port)
        while True:
            writer.write(own)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))

    async def run(bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        clients = [asyncio.create_task(client(number, host, int(port))) for number in range(MANY)]
        await asyncio.sleep(FIRST_WINDOW_MS / 1e3 + seconds + 3)
        for task in clients:
            task.cancel()

    properties = (f"quota.producer.default={SMALL_QUOTA}", "quota.profile=kafka-4.4")
    with recording_broker(folder, *properties) as (bootstrap, file):
        fill_bench(bootstrap)
        asyncio.run(run(bootstrap))
    found = json.loads(file.read_text())
    rates = [
        achieved(trace_of(charges), SMALL_QUOTA) / SMALL_QUOTA
        for name, charges in found["charges"].items()
        if name.startswith("Produce c")
    ]
    lag_ms, own_ms = (sorted(lags)[int(len(lags) * 0.99)] for lags in zip(*found["lags_ms"], strict=True))
    spread = f"{min(rates):.1%} to {max(rates):.1%} of {len(rates)}"
    verdicts.add(
        f"{MANY} clients at once, each on its own quota",
        spread,
        "each within 8 %",
        all(abs(r - 1) < 0.08 for r in rates),
    )
    lateness = f"p99 {lag_ms:.1f} ms late, {own_ms:.1f} ms own CPU"
    verdicts.add("  the broker's event loop", lateness, "under 20 ms", lag_ms < 20)


def fill_bench(bootstrap: str) -> None:
    """Create the topic of the benchmark's frames."""
    from bench.__main__ import metadata

    load.run(os.getpid(), int(bootstrap.rpartition(":")[2]), metadata(), 1, 1, 0.0, lambda _: True)


def measure_cost(repetitions: int, verdicts: Verdicts) -> None:
    """Compare small Produce requests with a quota that is never reached and without quotas."""
    ratios = []
    for _ in range(repetitions):
        with_quota, without = (_small_produces(args) for args in (("--override", "quota.producer.default=1e15"), ()))
        ratios.append(1 - with_quota / without)
    cost = statistics.median(ratios)
    verdicts.add("cost of a quota, small Produce", f"{cost:.1%} fewer requests/s", "under 8 %", cost < 0.08)


def _small_produces(arguments: Sequence[str]) -> float:
    command = [sys.executable, "-m", "sluice", "serve", "--port", "0", "--admin-port", "0", *arguments]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert broker.stdout is not None
    try:
        ready: dict[str, Any] = json.loads(broker.stdout.readline().removeprefix("ready "))
        port = int(ready["bootstrap"].rpartition(":")[2])
        fill_bench(ready["bootstrap"])
        return load.run(broker.pid, port, produce(100, 1), 8, 16, 2.0, lambda _: True).requests_per_s
    finally:
        broker.terminate()
        broker.wait()


_SENSORS = """
import resource, time
from sluice.cli.demo.trace import Exchange, Trace
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
manager.set_quota(QuotaEntity(client_id=DEFAULT), 1e6)
def record(count, now_ms):
    start = time.perf_counter()
    for number in range(count):
        manager.record("ANONYMOUS", names[number], 100.0 + number, now_ms + number // 120)
    return (time.perf_counter() - start) / count * 1e6
names = [f"client-{number}" for number in range(100_000)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for now_ms in range(0, 12_000, 1_000):
    record(100_000, now_ms)
megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
print(megabytes, min(record(10_000, 11_000) for _ in range(9)), min(record(100_000, 11_000) for _ in range(3)))
"""


def measure_sensors(verdicts: Verdicts) -> None:
    """Measure the memory of 100,000 client ids with full samples, and the cost of a charge.

    The cost is compared with 10,000 ids, which do not fit in a processor's first-level cache either.
    """
    done = subprocess.run([sys.executable, "-c", _SENSORS], capture_output=True, text=True, check=True)
    megabytes, few_us, all_us = map(float, done.stdout.split())
    verdicts.add("100,000 client ids", f"{megabytes:.0f} MB", "under 120 MB", megabytes < 120)
    verdicts.add(
        "  one charge with 10,000 and 100,000 ids",
        f"{few_us:.2f} and {all_us:.2f} us",
        "flat: at most twice",
        all_us < 2 * few_us,
    )


def main() -> None:
    """Measure, print, and exit with 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.quota", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of each run after the first window")
    parser.add_argument("--repetitions", type=int, default=5, help="repetitions of the cost measurement")
    parser.add_argument("--only", default="", choices=["", "libraries", "many", "cost", "sensors"])
    arguments = parser.parse_args()
    verdicts, only = Verdicts(), arguments.only
    with TemporaryDirectory() as name:
        if only in ("", "sensors"):
            measure_sensors(verdicts)
        if only in ("", "cost"):
            measure_cost(arguments.repetitions, verdicts)
        if only in ("", "many"):
            measure_many(arguments.seconds, verdicts, Path(name))
        for profile in PROFILES if only in ("", "libraries") else ():
            measure_libraries(profile, arguments.seconds, verdicts, Path(name))
    sys.exit(1 if verdicts.missed else 0)


if __name__ == "__main__":
    main()
