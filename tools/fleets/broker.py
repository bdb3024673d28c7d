"""The model of a broker against sluice with one slow disk: requests/s and queueing delay at three loads.

The network of the model takes as long as a request to the idle broker, beside its service.
"""

import asyncio
from random import Random
from statistics import median

import numpy as np

from sluice.embedded.broker import Broker
from sluice.fleet.simulation.arrays import Floats
from sluice.fleet.simulation.broker import CpuQueue
from tests.support.records import produce
from tests.support.wire import frame

_SERVICE_MS, _SECONDS, _CONNECTIONS = 20.0, 20.0, 600
_PROBES = 50
_VERSION = 9


def measure() -> None:
    """Print a row for each load: of the broker, and of the model for the same arrivals."""
    for load in (0.5, 0.9, 1.5):
        sent, ended, network_s = asyncio.run(_run(load))
        queue = CpuQueue()
        queue.begin_window()
        modelled = queue.serve((sent * 1e6).astype(np.int64), np.full(len(sent), _SERVICE_MS * 1000)) / 1e6 + network_s
        print(f"load {load}: sluice {_text(sent, ended)}; model {_text(sent, modelled)}", flush=True)


def _text(sent: Floats, ended: Floats) -> str:
    waits_ms = (ended - sent) * 1000
    within = int(np.count_nonzero(ended <= _SECONDS))
    p50, p99 = np.percentile(waits_ms, (50, 99))
    return f"{within / _SECONDS:.1f} requests/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms"


async def _run(load: float) -> tuple[Floats, Floats, float]:
    """Send Produce requests at random times, each on an idle connection; return when each was sent and answered.

    The third value is the time that a request to the idle broker takes in addition to its service.
    """
    random, loop = Random(1), asyncio.get_running_loop()
    request = frame(produce(_VERSION, topic="fleet"), _VERSION, client_id="load")
    async with Broker(config={"sluice.journal.events": 0}) as broker:
        await broker.cluster.create_topic("fleet", partitions=1)
        broker.faults.add({"api": "Produce", "action": {"kind": "slow-disk", "latency": f"{_SERVICE_MS}ms"}})
        host, _, port = broker.bootstrap.rpartition(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(_CONNECTIONS)]
        began, at_s = loop.time(), 0.0
        found: list[tuple[float, float]] = []

        async def exchange() -> None:
            reader, writer = connection = idle.pop()
            sent = loop.time() - began
            writer.write(request)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            found.append((sent, loop.time() - began))
            idle.append(connection)

        for _ in range(_PROBES):
            await exchange()
        network_s = median(ended - sent for sent, ended in found) - _SERVICE_MS / 1000
        found.clear()
        began = loop.time()
        tasks = []
        while (at_s := at_s + random.expovariate(load * 1000 / _SERVICE_MS)) < _SECONDS:
            await asyncio.sleep(began + at_s - loop.time())
            tasks.append(loop.create_task(exchange()))
        await asyncio.gather(*tasks)
        for _, writer in idle:
            writer.close()
    sent, ended = np.array(sorted(found)).T
    return sent, ended, network_s
