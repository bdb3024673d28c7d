"""Run real clients in real time against sluice, and record their attempts."""

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.timeline import timeline
from sluice.embedded.broker import Broker
from sluice.fleet.simulation.arrays import Times
from sluice.fleet.simulation.schedule import spread_replicas

from .recorder import Recorder

_FOLDER = Path(__file__).parent
_TOPIC = "fleet"


class RealClients(NamedTuple):
    """Clients of one kind: aiokafka, confluent, or Java with the jars in KAFKA_LIBS."""

    kind: str
    clients: int
    settings: Mapping[str, str] = {}

    @property
    def command(self) -> list[str]:
        if self.kind.startswith("Java"):
            return ["java", "-cp", os.environ["KAFKA_LIBS"] + "/*", str(_FOLDER / f"{self.kind}.java")]
        return [sys.executable, str(_FOLDER / f"{self.kind}_clients.py")]


async def run_real(
    groups: Sequence[RealClients],
    scenario: Scenario,
    *,
    warm_up_s: float,
    practice: Scenario | None = None,
    seed: int = 1,
) -> dict[str, Times]:
    """Return the times of all attempts, in microseconds since the start of the scenario.

    A practice scenario runs warm_up_s before it, and its attempts have negative times. After it, a JVM has compiled
    what clients do in such a failure.
    """
    config = {**scenario.config, "sluice.journal.events": 0}
    async with Broker(scenario.brokers, config=config, seed=seed) as broker:
        nodes = list(broker.brokers)
        replicas = {index: [nodes[each] for each in one] for index, one in enumerate(spread_replicas(len(nodes)))}
        await broker.cluster.create_topic(_TOPIC, assignments=replicas)
        for index, each in replicas.items():
            await broker.cluster.create_topic(f"{_TOPIC}-{index}", assignments={0: each})
        processes = [await _start(group, broker.bootstrap, len(replicas), seed) for group in groups]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
        ports = [int(address.rpartition(":")[2]) for address in broker.bootstrap.split(",")]
        with Recorder(ports) as recorder:
            if practice is not None:
                broker.start_scenario(practice)
            await asyncio.sleep(warm_up_s)
            run = broker.start_scenario(scenario)
            start_s = time.time()
            await asyncio.sleep(timeline(scenario).duration_ms / 1000)
            run.stop()
        for process in processes:
            process.kill()
            await process.wait()
    return recorder.times_us(start_s)


async def _start(group: RealClients, bootstrap: str, partitions: int, seed: int) -> Process:
    given = [f"{name}={value}" for name, value in group.settings.items()]
    arguments = [bootstrap, _TOPIC, str(partitions), str(group.clients), "1", str(seed), *given]
    process = await asyncio.create_subprocess_exec(*group.command, *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n", f"{group.kind} did not start"
    return process
