"""One run: three brokers, the workload and failures for some seconds of virtual time, and the final reads.

With a data directory, the whole cluster is also killed, once or twice: each run continues on what a SIGKILL leaves of
the files. The virtual network loses all connections at that moment, so that no response is sent later.
"""

import asyncio
import gc
import logging
import shutil
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from sluice import Broker, testing

from . import consumer_group
from .clients import ERRORS, TOPIC, SluiceConsumer
from .copying import COPIES, copy, read_copies
from .failures import Failures, create_topics
from .history import History, Poll
from .workload import PARTITIONS, Workload, instances, now_ms, processes

DURATION_S = 30
# Open transactions are aborted meanwhile: their timeout, and the 10 s of transaction.abort.timed.out... .interval.ms.
_SETTLE_S = 25
_FINAL_READ_S = 60
# Ten times as many iterations as a run has, so that a busy loop ends the run.
_MAX_TURNS = 3_000_000
_RELEASES = ("kafka-2.8", "kafka-3.9", "kafka-4.4", "all")
_PORT = 20_000
# All clients, in two places.
_HOSTS = ("app-1", "app-2")
# aiokafka retries some errors of Fetch without a backoff, which never ends where a round trip takes no time.
_LATENCY_S = 0.002


def config_of(random: Random, directory: Path | None) -> dict[str, str | float]:
    config: dict[str, str | float] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{_PORT}",
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        # aiokafka keeps brokers in a set. On Python 3.11, the hash of a rack that is None depends on the address.
        "broker.rack": "rack-1,rack-2,rack-3",
        "offsets.topic.num.partitions": 2,
        "transaction.state.log.num.partitions": 2,
        "group.initial.rebalance.delay.ms": 0,
        "sluice.election.delay.ms": random.choice((0, 300, 1500)),
        "sluice.replication.delay.ms": random.choice((0, 0, 50)),
        "sluice.kafka.release": random.choice(_RELEASES),
        **consumer_group.BROKER_CONFIG,
    }
    if directory is not None:
        config |= {"log.dirs": str(directory), "log.segment.bytes": 20_000}
    return config


class Cluster:
    """Three brokers that can be killed at once, if they have a data directory."""

    def __init__(self, random: Random, folder: Path | None) -> None:
        self._random = random
        self._folder = folder
        self._number = 0
        self._config = config_of(random, None if folder is None else folder / "0")
        self.release = str(self._config["sluice.kafka.release"])
        self.broker = self._new_broker()

    def _new_broker(self) -> Broker:
        return Broker(brokers=3, config=self._config, seed=self._random.randrange(1 << 32))

    async def start(self) -> None:
        await self.broker.__aenter__()

    async def stop(self) -> None:
        await self.broker.__aexit__(None, None, None)

    async def kill(self) -> None:
        """Continue on the files as they are now."""
        assert self._folder is not None
        network, places = testing.network(), [*self.broker.brokers.values()]
        network.reset("*")
        for place in places:
            network.refuse(place)
        directory = self.broker._running.cluster.logs.directory
        assert directory is not None
        directory.flusher.finish()  # its thread replaces files, which cannot be copied meanwhile
        before, self._number = self._folder / str(self._number), self._number + 1
        shutil.copytree(before, self._folder / str(self._number))
        await self.stop()
        await asyncio.sleep(self._random.random())
        self._config["log.dirs"] = str(self._folder / str(self._number))
        self.broker = self._new_broker()
        await self.start()
        for place in places:
            network.accept(place)


def play(seed: int, folder: Path | None = None, *, duration_s: float = DURATION_S) -> History:
    """Return the history of a seed; with a folder, the brokers have a data directory in it."""
    logging.disable()  # clients log thousands of failures
    gc.disable()  # connections that aiokafka forgets are closed when they are collected
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # aiokafka clients that could not be stopped
            history = testing.run(_play(seed, folder, duration_s), seed=seed, max_turns=_MAX_TURNS)
            gc.collect()
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
    return history


async def _play(seed: int, folder: Path | None, duration_s: float) -> History:
    random, history, loop = Random(seed), History(), asyncio.get_running_loop()
    loop.set_exception_handler(on_exception)
    cluster = Cluster(random, folder)
    await cluster.start()
    await create_topics(cluster.broker, TOPIC, COPIES)
    began_s = loop.time()
    until_s = began_s + duration_s
    for host in _HOSTS:
        testing.network().link(host, latency_s=_LATENCY_S)
    tasks = _start(Workload(cluster.broker.bootstrap, history, random, until_s, cluster.release))
    kills = 0 if folder is None else random.choice((1, 2))
    for part in range(kills + 1):
        failures = Failures(cluster.broker, history, random, _HOSTS, _LATENCY_S)
        await failures.fail(began_s + duration_s * (part + 1) / (kills + 1))
        await failures.end()
        if part < kills:
            await asyncio.sleep(random.random())
            history.failures.append((now_ms(), "all brokers are killed"))
            await cluster.kill()
    await asyncio.wait(tasks, timeout=_SETTLE_S)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
    await asyncio.sleep(_SETTLE_S)
    if folder is not None:
        await cluster.kill()
    for committed_only in (False, True):
        await read_all(cluster.broker.bootstrap, history, committed_only=committed_only)
    async with asyncio.timeout(_FINAL_READ_S):
        history.copies, history.copied_up_to = await read_copies(cluster.broker.bootstrap)
    await cluster.stop()
    return history


def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore errors of operations in futures that aiokafka does not await."""
    if not isinstance(context.get("exception"), ERRORS):
        loop.default_exception_handler(context)


def _start(workload: Workload) -> list[asyncio.Task[None]]:
    tasks = []
    copiers: list[Callable[[], Awaitable[None]]] = [
        partial(instances, workload, name, partial(copy, workload, f"{name}-id")) for name in ("copier-1", "copier-2")
    ]
    for number, process in enumerate([*processes(workload), *copiers]):
        with testing.network().host(_HOSTS[number % len(_HOSTS)]):
            tasks.append(asyncio.ensure_future(process()))
    return tasks


async def read_all(bootstrap: str, history: History, *, committed_only: bool) -> None:
    """Record the whole log as one poll of each partition."""
    consumer = SluiceConsumer(bootstrap, Random(0), range(PARTITIONS), lambda: None, committed_only=committed_only)
    polls = [
        Poll(
            process="final",
            invoked_ms=now_ms(),
            partition=partition,
            records=[],
            committed_only=committed_only,
            session=-1 - committed_only,
            first=0,
            is_final=True,
        )
        for partition in range(PARTITIONS)
    ]
    async with asyncio.timeout(_FINAL_READ_S):
        await consumer.start()
        ends = [await consumer.end_offset(partition) for partition in range(PARTITIONS)]
        for poll in polls:
            while await consumer.position(poll.partition) < ends[poll.partition]:
                for partition, records in (await consumer.poll()).items():
                    polls[partition].records += records
            poll.complete(now_ms())
        await consumer.close()
    history.operations += polls
