"""After a soak, memory, file descriptors and parked operations are what they were.

`make test` runs some minutes of virtual time; the campaign `soak` a day of it, and half an hour of real time.
"""

import asyncio
import gc
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import linear_regression
from urllib.error import HTTPError

import pytest

from sluice import Broker, testing
from tests.support import skips
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tools.soak.clients import PROPERTIES, Load

SEED = 20261123
_FEW_MINUTES = 2
_MOST_TURNS = 100_000_000
_SAMPLES = 50
# Sessions of members that were cut off, transactions and throttles of the last moment end within this time.
_SETTLES_S = 75
_ENDS_WITHIN_S = 3600  # clients that wait for requests which a fault discarded
_MOST_MB_PER_MINUTE = 0.1
# In virtual time, clients and the event loop share the process, whose heap is fragmented by them.
_MOST_MB_PER_DAY = 20.0
_STATUS = Path("/proc/self/status")


def rss_mb(status: Path = _STATUS) -> float:
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def slope(samples: list[tuple[float, float]]) -> float:
    """Return the growth of memory per unit of time after the first tenth of the samples."""
    later = samples[len(samples) // 10 :]
    return linear_regression([at for at, _ in later], [mb for _, mb in later]).slope


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the log lines of clients that faults hit, and the warnings about connections that aiokafka forgets."""
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
            gc.collect()
    finally:
        logging.disable(logging.NOTSET)


# -- virtual time ------------------------------------------------------------------------------------------------------


async def _soak_in_virtual_time(duration_s: float) -> tuple[list[tuple[float, float]], dict[str, int], int]:
    """Return samples of (days, MB), what is left in the broker, and the number of operations."""
    loop, random = asyncio.get_running_loop(), Random(SEED)
    samples: list[tuple[float, float]] = []
    config: dict[str, str | float] = {**dict(item.split("=") for item in PROPERTIES)}
    async with Broker(config=config | {"listeners": "PLAINTEXT://127.0.0.1:20000"}) as broker:

        async def fail(rule: Mapping[str, object]) -> None:
            broker.faults.clear()
            broker.faults.add(rule)

        load = Load(broker.bootstrap, random, loop.time() + duration_s, fail)
        running = asyncio.ensure_future(load.run())
        for number in range(_SAMPLES):
            await asyncio.sleep(duration_s / _SAMPLES)
            gc.collect()
            samples.append(((number + 1) * duration_s / _SAMPLES / 86_400, rss_mb()))
        await running
        broker.faults.clear()
        gc.collect()  # closes connections that aiokafka forgets
        await asyncio.sleep(_SETTLES_S)
        (one,) = broker._running.brokers.values()
        replicas, groups = one.replicas, one.groups
        waiting = [replicas.fetches, replicas.produces, one.throttled, groups.rebalances, groups.heartbeats]
        left = {purgatory.name: purgatory.delayed for purgatory in waiting}
        left["connections"] = sum(len(server.connections) for server in broker._running.servers.values())
        left["requests in memory"] = sum(server._pool.reserved_bytes for server in broker._running.servers.values())
        return samples, left, load.operations


@pytest.mark.skipif(not _STATUS.exists(), reason=skips.system("/proc; run it on Linux"))
def test_day_of_clients_and_faults_leaves_nothing(pytestconfig: pytest.Config) -> None:
    hours = pytestconfig.getoption("--soak-hours")
    duration_s = hours * 3600 if hours else _FEW_MINUTES * 60
    with quiet():
        samples, left, operations = testing.run(
            _soak_in_virtual_time(duration_s), seed=SEED, until=duration_s + _ENDS_WITHIN_S, max_turns=_MOST_TURNS
        )
    assert operations > 100
    assert not any(left.values()), left
    print(f"{operations} operations, {slope(samples):.2f} MB per day, {samples[0][1]:.0f} to {samples[-1][1]:.0f} MB")
    if hours:
        assert slope(samples) < _MOST_MB_PER_DAY, samples


# -- real time ---------------------------------------------------------------------------------------------------------


def _state(broker: BrokerProcess) -> dict[str, int]:
    parked = broker.metrics()["sluice_purgatory_operations"].samples
    state = {f"operations {sample.labels}": int(sample.value) for sample in parked}
    return state | {"file descriptors": len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))}


async def _soak_in_real_time(broker: BrokerProcess, minutes: float) -> tuple[list[tuple[float, float]], int]:
    loop = asyncio.get_running_loop()
    status = Path(f"/proc/{broker.process.pid}/status")

    async def fail(rule: Mapping[str, object]) -> None:
        with suppress(HTTPError):
            await asyncio.to_thread(broker.delete, "/api/v1/faults")
            await asyncio.to_thread(broker.post, "/api/v1/faults", rule)

    load = Load(broker.bootstrap, Random(SEED), loop.time() + minutes * 60, fail)
    running = asyncio.ensure_future(load.run())
    samples = []
    for number in range(_SAMPLES):
        await asyncio.sleep(minutes * 60 / _SAMPLES)
        samples.append(((number + 1) * minutes / _SAMPLES, rss_mb(status)))
    await running
    gc.collect()  # as above
    return samples, load.operations


def test_broker_in_real_time_returns_to_its_state(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    minutes = pytestconfig.getoption("--soak-minutes")
    if not minutes:
        pytest.skip(skips.campaign("soak"))
    with running_broker(tmp_path / "log", *overrides(*PROPERTIES)) as broker:
        broker.get("/metrics")
        before = _state(broker)
        with quiet():
            samples, operations = asyncio.run(_soak_in_real_time(broker, minutes))
        asyncio.run(asyncio.sleep(_SETTLES_S))
        after = _state(broker)
        growth = slope(samples)
        print(f"{operations} operations, {growth:.3f} MB/min, {samples[0][1]:.1f} to {samples[-1][1]:.1f} MB")
        print(json.dumps([before, after]))
        assert {name: value for name, value in after.items() if value > before.get(name, 0)} == {}
        assert growth < _MOST_MB_PER_MINUTE, samples
