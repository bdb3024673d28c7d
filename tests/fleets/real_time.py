"""Run real clients in real time against sluice, and record their attempts."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sluice.broker.scenarios.model import Scenario
from sluice.embedded.broker import Broker
from sluice.fleet.arrays import Times
from sluice.fleet.schedule import schedule_of, spread_replicas

from .recorder import Recorder

_FOLDER = Path(__file__).parent
_TOPIC = "fleet"


def command(kind: str) -> list[str]:
    """Return the command of clients of a kind: confluent-kafka, or java with the jars of KAFKA_LIBS."""
    if kind == "java":
        return ["java", "-cp", os.environ["KAFKA_LIBS"] + "/*", str(_FOLDER / "JavaClients.java")]
    return [sys.executable, str(_FOLDER / "confluent_clients.py")]


async def run_real(
    kind: str, clients: int, scenario: Scenario, settings: Mapping[str, str], *, warm_up_s: float, seed: int = 1
) -> dict[str, Times]:
    """Return the times of all attempts since the start of the scenario, in microseconds."""
    schedule = schedule_of(scenario)
    config = {**scenario.config, "sluice.journal.events": 0}
    async with Broker(scenario.brokers, config=config, seed=seed) as broker:
        nodes = list(broker.brokers)
        replicas = {index: [nodes[each] for each in one] for index, one in enumerate(spread_replicas(len(nodes)))}
        await broker.cluster.create_topic(_TOPIC, assignments=replicas)
        given = [f"{name}={value}" for name, value in settings.items()]
        process = await asyncio.create_subprocess_exec(
            *command(kind), broker.bootstrap, _TOPIC, str(len(replicas)), str(clients), "1", str(seed), *given,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        process.stdin.write(b"\n")
        await asyncio.sleep(warm_up_s)
        ports = [int(address.rpartition(":")[2]) for address in broker.bootstrap.split(",")]
        with Recorder(ports) as recorder:
            start_s = time.time()
            run = broker.start_scenario(scenario)
            await asyncio.sleep(schedule.duration_us / 1e6)
            run.stop()
        process.kill()
        await process.wait()
    return recorder.times_us(start_s)
