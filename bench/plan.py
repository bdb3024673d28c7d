"""Speed, memory and accuracy of the planner: `python -m bench.plan [--rows N] [--only speed|memory|real]`.

Speed compares one Python process and Spark on one and two cores. All read the same file and write the same tables,
with one candidate that a third of the clients exceed. The start of Spark is not counted: each engine first runs a small
plan. The engines alternate, and the best run counts, as other load only slows a run down. "Rows/s of a processor" uses
the CPU time of all processes of a plan, so it is valid on a busy machine too. Memory is the largest sum of the
proportional set sizes of these processes.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event, Thread

import msgspec

from bench.verdicts import Verdicts
from sluice.broker.journal.reader import JournalReader
from sluice.pipeline.charges.sources import splits_of
from sluice.pipeline.plan.analysis import Finding, Limits, Settings
from sluice.pipeline.plan.tables import FINDING, NEEDS, finding_of, read_table
from tests.support.journal_lines import journal

ENGINES = ("local", "local[1]", "local[2]")
CLIENTS, BROKERS = 200, 3
RATE, HIGH_RATE = 20, 500  # requests/s of each client
QUOTA, HIGH_QUOTA = 10_000.0, 10_000_000.0  # bytes/s on each broker
_BEGIN_NS = 1_700_000_000_000_000_000
LIMIT_GB = 6.0


def write_ndjson(file: Path, rows: int) -> None:
    """Write complete events, like an export; requests are larger the higher the number of the client."""
    (event,) = map(msgspec.json.decode, journal({"": (1000, 0)}, seconds=1).splitlines())
    changing = ("seq", "at_ns", "broker", "connection", "client_id", "received_ns", "started_ns", "answered_ns")
    template = msgspec.json.encode({**event, **{name: f"<{name}>" for name in (*changing, "request_bytes")}}).decode()
    for name in (*changing, "request_bytes"):
        template = template.replace(f'"<{name}>"', f'"%({name})s"' if name == "client_id" else f"%({name})s")
    random, at_ns = Random(1), _BEGIN_NS
    with file.open("w") as out:
        for number in range(rows):
            at_ns += int(random.expovariate(CLIENTS * RATE) * 1e9)
            client = int(random.random() * CLIENTS)
            values: dict[str, object] = dict.fromkeys(("at_ns", "received_ns", "started_ns", "answered_ns"), at_ns)
            broker = number % BROKERS + 1
            values |= {"seq": number, "broker": broker, "connection": client * BROKERS + broker}
            values |= {"client_id": f"client-{client}", "request_bytes": random.randrange(8, 25) * client}
            out.write(template % values + "\n")


def write_parquet(file: Path, rows: int, rate: int = RATE) -> None:
    """Write the same with only the columns that the planner reads, two million rows at a time."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    random, at_ns, writer = np.random.default_rng(1), _BEGIN_NS, None
    names = pa.array([f"client-{number}" for number in range(CLIENTS)])
    for begin in range(0, rows, 2_000_000):
        count = min(2_000_000, rows - begin)
        times = at_ns + np.cumsum((random.exponential(1 / (CLIENTS * rate), count) * 1e9).astype(np.int64))
        at_ns = int(times[-1])
        client, broker = random.integers(0, CLIENTS, count), np.arange(count) % BROKERS + 1
        same = {"kind": "request", "principal": "User:ANONYMOUS", "api": "Produce"}
        columns = {name: pa.repeat(value, count) for name, value in same.items()}
        columns |= {"client_id": names.take(pa.array(client))}
        columns |= {"broker": pa.array(broker), "connection": pa.array(client * BROKERS + broker)}
        columns |= dict.fromkeys(("at_ns", "started_ns", "answered_ns"), pa.array(times))
        columns |= {"request_bytes": pa.array(random.integers(8, 25, count) * client)}
        columns |= {name: pa.array(np.full(count, 60)) for name in ("response_bytes",)}
        columns |= {"version": pa.array(np.full(count, 9)), "throttle_time_ms": pa.array(np.zeros(count, np.int64))}
        columns |= {"lost": pa.nulls(count, pa.int64())}
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None, "no rows"
    writer.close()


# -- the process of an engine ------------------------------------------------------------------------------------------


def run_plans(engine: str, file: str, small: str, quota: str) -> None:
    """Plan the small file once, then the file for each line of standard input; print the times."""
    from sluice.pipeline.plan import local_engine, spark_engine
    from sluice.pipeline.session import open_session_without_kafka

    plan_settings = Settings((float(quota),), ("by-version",), ("closed",), "client-id", None)
    run = local_engine.run
    if engine != "local":
        settings = spark_engine.SETTINGS | {"spark.driver.memory": "2g"}
        run = spark_engine.engine_on(open_session_without_kafka("bench", master=engine, settings=settings))  # type: ignore[assignment]  # returns a Mapping
    for number, path in enumerate(_requested(small, file)):
        with TemporaryDirectory() as out:
            began = time.perf_counter()
            counts = run(splits_of([path]), plan_settings, Path(out), lambda *_: None)
            took_s = time.perf_counter() - began
        print(json.dumps({"number": number, "rows": counts["charges of clients"], "s": took_s}), flush=True)


def _requested(small: str, file: str) -> Iterator[str]:
    yield small
    for _ in sys.stdin:
        yield file


class Engine:
    """A process that runs plans on request."""

    def __init__(self, engine: str, file: Path, small: Path, quota: float = QUOTA) -> None:
        command = [sys.executable, "-m", "bench.plan", "--run", engine, str(file), str(small), str(quota)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read_response()

    @property
    def pid(self) -> int:
        return self._process.pid

    def plan(self) -> tuple[float, float]:
        """Return rows per second of elapsed time, and of CPU time of all its processes."""
        assert self._process.stdin is not None
        before_s = sum(map(_worked_s, _tree(self.pid)))
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        response = self._read_response()
        worked_s = sum(map(_worked_s, _tree(self.pid))) - before_s
        return response["rows"] / response["s"], response["rows"] / worked_s

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read_response(self) -> Mapping[str, float]:
        assert self._process.stdout is not None
        response: Mapping[str, float] = json.loads(self._process.stdout.readline())
        return response


# -- speed and memory --------------------------------------------------------------------------------------------------


def measure_speed(rows: int, repetitions: int, verdicts: Verdicts, folder: Path) -> None:
    """Measure rows/s of each engine, and of two Python processes at once: the gain of the second core without Spark."""
    small = folder / "small.ndjson"
    write_ndjson(small, 20_000)
    for form, write in (("ndjson", write_ndjson), ("parquet", write_parquet)):
        file = folder / f"journal.{form}"
        write(file, rows)
        best, worked, best_of_two = dict.fromkeys(ENGINES, 0.0), dict.fromkeys(ENGINES, 0.0), 0.0
        engines = {name: Engine(name, file, small) for name in ENGINES}
        another = Engine("local", file, small)
        for _ in range(repetitions):
            for name, engine in engines.items():
                per_s, per_worked_s = engine.plan()
                best[name], worked[name] = max(best[name], per_s), max(worked[name], per_worked_s)
            with ThreadPoolExecutor() as both:
                two = sum(per_s for per_s, _ in both.map(Engine.plan, (engines["local"], another)))
            best_of_two = max(best_of_two, two)
        for engine in (*engines.values(), another):
            engine.close()
        file.unlink()
        for unit, found in (("s", best), ("s of a processor", worked)):
            rates = ", ".join(f"{found[name]:,.0f}" for name in ENGINES)
            verdicts.add(f"{form}: rows/{unit}, {', '.join(ENGINES)}", rates, "", True)
        over_one, over_local = best["local[2]"] / best["local[1]"], best["local[2]"] / best["local"]
        verdicts.add("  two Python processes / one", f"{best_of_two / best['local']:.2f}", "", True)
        verdicts.add("  local[2] / one Python process", f"{over_local:.2f}", "1.6", over_local >= 1.6)
        verdicts.add("  local[2] / local[1]", f"{over_one:.2f}", "1.7", over_one >= 1.7)


def measure_memory(rows: int, verdicts: Verdicts, folder: Path) -> None:
    """Measure the largest memory of a plan on two cores, with clients below their quota, which replay cheaply."""
    file, small = folder / "journal.parquet", folder / "small.ndjson"
    write_parquet(file, rows, HIGH_RATE)
    write_ndjson(small, 20_000)
    engine = Engine("local[2]", file, small, HIGH_QUOTA)
    with Watched(engine.pid) as watched:
        per_s, _ = engine.plan()
    engine.close()
    file.unlink()
    verdicts.add(
        f"memory, {rows:,} rows, local[2]",
        f"{watched.greatest_gb:.2f} GB, {per_s:,.0f} rows/s",
        f"under {LIMIT_GB:.0f} GB",
        watched.greatest_gb < LIMIT_GB,
    )


class Watched:
    """The largest memory of a process and its descendants, sampled twice a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = Event()
        self._thread = Thread(target=self._poll, daemon=True)
        self.greatest_gb = 0.0

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(0.5):
            self.greatest_gb = max(self.greatest_gb, sum(map(_shared_kb, _tree(self._pid))) / 1e6)


def _tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _tree(int(child))
    return found


def _worked_s(pid: int) -> float:
    """Return the CPU time of a process and its ended children, in seconds."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _shared_kb(pid: int) -> int:
    """Return the proportional set size of a process."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


# -- accuracy ----------------------------------------------------------------------------------------------------------


def measure_accuracy(seconds: int, verdicts: Verdicts, folder: Path) -> None:
    """Plan quotas for real clients, then run them with these quotas, and compare the throttle times."""
    plan_settings = Settings((), ("by-version",), ("closed",), "client-id", Limits(500, 0.5))
    live(seconds, {}, folder / "free.ndjson")
    from sluice.pipeline.plan.local_engine import run

    run(splits_of([str(folder / "free.ndjson")]), plan_settings, folder / "out", lambda *_: None)
    needs = [finding_of(row) for row in read_table(folder / "out", NEEDS, FINDING)]
    delays_ms = live(
        seconds, {each.client.client_id: each.candidate.quota for each in needs}, folder / "limited.ndjson"
    )
    for need in needs:
        _compare(need, sorted(delays_ms[need.client.client_id]), verdicts)


def _compare(need: Finding, delays_ms: list[int], verdicts: Verdicts) -> None:
    achieved, predicted = delays_ms[-(-len(delays_ms) * 99 // 100) - 1], need.outcome.delay_p99_ms
    verdicts.add(
        f"p99 throttle time of {need.client.client_id} at {need.candidate.quota:,.0f} B/s",
        f"{achieved} ms, predicted {predicted}",
        "within 10 %",
        abs(achieved / predicted - 1) <= 0.1,
    )


BURSTS = {"even": (20_000, 1, 0.1), "bursty": (40_000, 20, 3.0), "large": (200_000, 5, 2.0)}  # bytes, requests, s


def live(seconds: int, quotas: Mapping[str, float], journal_file: Path) -> dict[str, list[int]]:
    """Run clients with these quotas, write the journal, and return their throttle times."""
    from aiokafka import AIOKafkaProducer

    from sluice import Broker

    async def produce(bootstrap: str, client_id: str) -> None:
        nbytes, requests, pause_s = BURSTS[client_id]
        random = Random(client_id)
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=client_id, max_batch_size=1 << 20, request_timeout_ms=60_000
        ) as producer:
            for _ in range(int(seconds / pause_s)):
                for _ in range(requests):
                    record = bytes(random.randrange(nbytes // 2, nbytes * 3 // 2))
                    await producer.send_and_wait(client_id, record, partition=0)
                await asyncio.sleep(random.expovariate(1 / pause_s))

    async def run() -> JournalReader:
        async with Broker(config={"sluice.journal.events": 200_000}) as broker:
            for client_id, quota in quotas.items():
                broker.quota(client_id=client_id, produce=quota)
            await asyncio.gather(*(produce(broker.bootstrap, client_id) for client_id in BURSTS))
        return broker.journal  # readable after the stop

    found = asyncio.run(run())
    journal_file.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in found.events(kind="request")))
    return {
        client_id: [each.throttle_time_ms for each in found.requests(client_id=client_id, api="Produce")]
        for client_id in BURSTS
    }


def main() -> None:
    """Measure, print, and exit with 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the journal for the measurement of speed")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--memory-rows", type=int, default=20_000_000)
    parser.add_argument("--seconds", type=int, default=120, help="duration of each run of real clients")
    parser.add_argument("--only", default="", choices=["", "speed", "memory", "real"])
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_plans(*arguments.run)
        return
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    verdicts, only = Verdicts(), arguments.only
    with TemporaryDirectory() as name:
        if only in ("", "real"):
            measure_accuracy(arguments.seconds, verdicts, Path(name))
        if only in ("", "speed"):
            measure_speed(arguments.rows, arguments.repetitions, verdicts, Path(name))
        if only in ("", "memory"):
            measure_memory(arguments.memory_rows, verdicts, Path(name))
    sys.exit(1 if verdicts.missed else 0)


if __name__ == "__main__":
    main()
