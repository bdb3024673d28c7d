"""The exact simulation of a fleet: real clients and the real broker in virtual time, for up to a thousand clients.

The broker's CPU takes no virtual time, so queues form in the vectorised simulation only.
"""

import asyncio
import gc
import logging
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from random import Random

import numpy as np

from sluice import testing
from sluice.broker.scenarios.model import Scenario
from sluice.clock import LoopClock
from sluice.embedded.broker import Broker
from sluice.fleet.models.client_model import Group
from sluice.fleet.simulation.arrays import US_PER_S, Times
from sluice.fleet.simulation.schedule import schedule_of, spread_replicas

from .clients import open_client

_EVENTS = 2_000_000
# In new objects, collections of them, and collections of these: Python's are 700, 10, 10.
_GC_THRESHOLDS = 200_000, 20, 100
_NS_PER_US, _NS_PER_MS = 1000, 1_000_000
_TOPIC = "fleet"
WARM_UP_S = 35.0  # longer than connections.max.idle.ms, which closes the connections of bootstrap.servers
_CLIENT = "client-"
_APIS = {
    "Metadata": "metadata_requests", "Produce": "produce_requests", "Fetch": "fetch_requests",
    "Heartbeat": "heartbeats", "FindCoordinator": "coordinator_lookups",
}  # fmt: skip


def run_exact(
    groups: Sequence[Group], scenario: Scenario, *, seed: int = 0, warm_up_s: float = WARM_UP_S, spread_s: float = 0
) -> Mapping[str, Times]:
    """Return times by kind.

    Each consumer is alone in its group; it has a topic for each partition, without records.

    Args:
        groups: The clients, by model.
        scenario: What happens after the warm-up.
        seed: The same seed gives the same times.
        warm_up_s: Time from the start of the brokers to that of the scenario.
        spread_s: Clients start at random times in this part of the warm-up.
    """
    with _few_collections(), _no_logs_of_aiokafka():
        return testing.run(_main(groups, scenario, seed, warm_up_s, spread_s), seed=seed, max_turns=2**40)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Run Python's garbage collector rarely: it is up to a third of the time, and finds 500 bytes per connection."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _no_logs_of_aiokafka() -> Iterator[None]:
    """Drop aiokafka's log messages: one for each failed attempt."""
    logger = logging.getLogger("aiokafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


async def _main(
    groups: Sequence[Group], scenario: Scenario, seed: int, warm_up_s: float, spread_s: float
) -> Mapping[str, Times]:
    schedule = schedule_of(scenario)
    partitions = len(schedule.segments[0].leaders)
    # Clients have sets of brokers, whose order depends on the address of None if brokers have no rack.
    config = {
        "broker.rack": "rack",
        **scenario.config,
        "sluice.journal.events": _EVENTS,
        "sluice.journal.record.hashes": False,
    }
    loop, network = asyncio.get_running_loop(), testing.network()
    connections: list[float] = []
    async with Broker(scenario.brokers, config=config, seed=seed) as broker, AsyncExitStack() as stack:
        topic = await _create_topic(broker, scenario)
        clients = [group for group in groups for _ in range(group.clients)]
        random = Random(seed)
        start_s = loop.time() + warm_up_s
        network.on_connect = lambda: connections.append(loop.time() - start_s)
        tasks = []
        for index, group in enumerate(clients):
            with network.host(f"{_CLIENT}{index}"):
                client = open_client(group, broker.bootstrap, f"{_CLIENT}{index}", random.randrange(2**32))
                await stack.enter_async_context(client)
                until_s = start_s + schedule.duration_us / US_PER_S
                work = client.run(topic, index % partitions, start_s, until_s, random.random())
                if spread_s:
                    work = _delayed(work, random.uniform(0, spread_s))
                tasks.append(loop.create_task(work))
        await asyncio.sleep(max(start_s - loop.time(), 0))
        first, began_ns = broker.journal.last_seq, LoopClock(loop).wall_ms() * _NS_PER_MS
        run = broker.start_scenario(scenario)
        await asyncio.sleep(schedule.duration_us / US_PER_S)
        # The journal records a request with its response, which Fetch waits for.
        await asyncio.sleep(max(group.model.fetch_max_wait_ms for group in groups) / 1000)
        found = _requests(broker, first, began_ns)
        run.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    found["connections"] = [at_s * US_PER_S for at_s in connections]
    return {kind: _times(times, schedule.duration_us) for kind, times in found.items()}


async def _delayed(work: Coroutine[object, object, None], delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    await work


async def _create_topic(broker: Broker, scenario: Scenario) -> str:
    if scenario.topics:
        return scenario.topics[0].name  # the scenario creates it
    nodes = list(broker.brokers)
    replicas = {index: [nodes[each] for each in one] for index, one in enumerate(spread_replicas(len(nodes)))}
    await broker.cluster.create_topic(_TOPIC, assignments=replicas)
    for index, each in replicas.items():
        await broker.cluster.create_topic(f"{_TOPIC}-{index}", assignments={0: each})
    return _TOPIC


def _requests(broker: Broker, after: int, began_ns: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {kind: [] for kind in _APIS.values()}
    for api, received_ns in broker.journal.received(after=after):
        if api in _APIS:
            found[_APIS[api]].append((received_ns - began_ns) / _NS_PER_US)
    return found


def _times(found: Iterable[float], end_us: float) -> Times:
    return np.array(sorted(at_us for at_us in found if 0 <= at_us < end_us), dtype=np.float64).astype(np.int64)
