"""Search old versions of aiokafka for failures, with programs that know no defect: `python -m tools.explore.history`.

Each version is installed in a folder below .venv/history. The current version must survive the same searches. Defects
that were found so: issue 781 in 0.7.2 (an abort marker without records, fixed in 0.8.0), and issue 983 in 0.10.0 and
before (the task that fetches is cancelled by a rebalance, fixed in 0.11.0).
"""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerFenced

from sluice.explore import AtLeastOnce, ExploreError, Run, explore

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".venv" / "history"
# kafka-python 2.0.2 is the last version that aiokafka before 0.9 can import.
_VERSIONS = {"0.7.2": ("kafka-python==2.0.2",), "0.10.0": (), "current": ()}
_RECORDS = 6
_RESTART_S = 1.0
_IDLE_S = 30.0  # longer than a rebalance after a failure
# Of the cluster, and ends of processes; not those that need an application without a defect of its own.
_FAILURES = ("response-lost", "request-lost", "kill-before", "kill-after", "session-expired", "broker-killed")


@asynccontextmanager
async def _started(client: Any) -> AsyncIterator[Any]:
    """Start and stop a client; the context managers of old versions return None."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


def _supervised(application: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return the application, started again after an error of Kafka."""

    async def supervise() -> None:
        while True:
            try:
                return await application()
            except ProducerFenced:
                return None
            except (KafkaError, OSError):
                await asyncio.sleep(_RESTART_S)

    return supervise


async def consumes(run: Run) -> None:
    broker = run.broker
    await broker.cluster.create_topic("orders", partitions=2)
    await broker.client().send("orders", *map(str, range(_RECORDS)))

    async def shop() -> None:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, client_id="shop", group_id="shop",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        async with _started(consumer):
            async for record in consumer:
                await asyncio.sleep(0.01)
                run.processed(record)
                with suppress(KafkaError):
                    await consumer.commit()

    run.start(_supervised(shop), "shop")
    await run.wait_for(lambda: len(run.processed_records) == _RECORDS)
    await asyncio.sleep(_IDLE_S)
    await broker.client().send("orders", *map(str, range(_RECORDS)))
    await run.wait_for(lambda: len(run.processed_records) == 2 * _RECORDS)


async def writes(run: Run) -> None:
    bootstrap = run.broker.bootstrap
    await run.broker.cluster.create_topic("bills", partitions=2)
    billed: set[bytes] = set()

    async def shop() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="shop", transactional_id="shop")
        async with _started(producer):
            for number in range(_RECORDS):
                async with producer.transaction():
                    await producer.send_and_wait("bills", b"%d" % number, partition=number % 2)
                await asyncio.sleep(0.3)

    async def reader() -> None:
        consumer = AIOKafkaConsumer(
            "bills", bootstrap_servers=bootstrap, client_id="reader", auto_offset_reset="earliest",
            isolation_level="read_committed",
        )  # fmt: skip
        async with _started(consumer):
            async for record in consumer:
                billed.add(record.value)

    run.start(_supervised(shop), "shop")
    run.start(_supervised(reader), "reader")
    await run.wait_for(lambda: len(billed) == _RECORDS)


_PROGRAMS = {"consumes": (consumes, [AtLeastOnce("orders")]), "writes": (writes, [])}


def _search(runs: int, seeds: int) -> None:
    for name, (program, invariants) in _PROGRAMS.items():
        for seed in range(seeds):
            try:
                result = explore(program, runs=runs, invariants=invariants, failures=_FAILURES, seed=seed)
            except ExploreError as error:
                print(f"== aiokafka {aiokafka.__version__}, {name}, seed {seed}:\n{error}", flush=True)
            else:
                found = f"nothing found in {result.runs} runs"
                print(f"== aiokafka {aiokafka.__version__}, {name}, seed {seed}: {found}", flush=True)


def _install(version: str) -> Path:
    folder = _FOLDER / version
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--target", str(folder)]
        subprocess.run([*pip, f"aiokafka=={version}", *_VERSIONS[version]], check=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.explore.history", description=__doc__)
    parser.add_argument("--runs", type=int, default=150, help="runs of each search (default: 150)")
    parser.add_argument("--seeds", type=int, default=4, help="searches of each program (default: 4)")
    parser.add_argument("--version", choices=_VERSIONS, action="append", help="a version (default: all)")
    parser.add_argument("--installed", action="store_true", help="search the version that is imported")
    arguments = parser.parse_args()
    if arguments.installed:
        _search(arguments.runs, arguments.seeds)
        return
    command = [sys.executable, "-W", "ignore", "-m", "tools.explore.history", "--installed"]
    command += ["--runs", str(arguments.runs), "--seeds", str(arguments.seeds)]
    for version in arguments.version or _VERSIONS:
        # The order of sets of brokers in old versions depends on hashes.
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        if version != "current":
            env["PYTHONPATH"] = str(_install(version))
        subprocess.run(command, check=True, cwd=_ROOT, env=env)


if __name__ == "__main__":
    main()
