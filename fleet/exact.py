"""The exact simulation of a fleet: real clients and the real broker in virtual time, for up to a thousand clients.

The broker's CPU takes no virtual time, so queues form in the vectorised simulation only.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Protocol

import numpy as np

from sluice import testing
from sluice.broker.scenarios.model import Scenario
from sluice.client.config_table import PRODUCER
from sluice.client.producer import Producer
from sluice.clock import LoopClock
from sluice.embedded.broker import Broker
from sluice.errors import SluiceError
from sluice.fleet.models.client_model import ClientModel, config_name
from sluice.fleet.simulation.arrays import US_PER_S, Times
from sluice.fleet.simulation.engine import Group
from sluice.fleet.simulation.schedule import schedule_of, spread_replicas
from sluice.journal_events import Request

_EVENTS = 2_000_000
_NS_PER_US, _NS_PER_MS = 1000, 1_000_000
_TOPIC = "fleet"
# In a long run, the connections to the bootstrap servers are closed for idleness.
_MAX_IDLE_MS = 30_000
_WARM_UP_S = 35.0
_CLIENT = "client-"
_APIS = {"Metadata": "metadata_requests", "Produce": "produce_requests"}


def run_exact(groups: Sequence[Group], scenario: Scenario, *, seed: int = 0) -> Mapping[str, Times]:
    """Run aiokafka, for groups of this name, or else sluice's producer in virtual time; return times by kind."""
    return testing.run(_main(groups, scenario, seed), seed=seed, max_turns=2**40)


async def _main(groups: Sequence[Group], scenario: Scenario, seed: int) -> Mapping[str, Times]:
    schedule = schedule_of(scenario)
    partitions = len(schedule.segments[0].leaders)
    config = {**scenario.config, "sluice.journal.events": _EVENTS}
    loop, network = asyncio.get_running_loop(), testing.network()
    connections: list[float] = []
    async with Broker(scenario.brokers, config=config, seed=seed) as broker, AsyncExitStack() as stack:
        topic = await _create_topic(broker, scenario)
        clients = [group for group in groups for _ in range(group.clients)]
        random = Random(seed)
        start_s = loop.time() + _WARM_UP_S
        network.on_connect = lambda: connections.append(loop.time() - start_s)
        tasks = []
        for index, group in enumerate(clients):
            with network.host(f"{_CLIENT}{index}"):
                client = _open(group, broker.bootstrap, index, random.randrange(2**32))
                await stack.enter_async_context(client)
                first_s = random.random() / group.model.requests_per_s
                until_s = start_s + schedule.duration_us / US_PER_S
                sends = _send_all(client, topic, index % partitions, group.model, start_s + first_s, until_s)
                tasks.append(loop.create_task(sends))
        await asyncio.sleep(max(start_s - loop.time(), 0))
        first, began_ns = broker.journal.last_seq, LoopClock(loop).wall_ms() * _NS_PER_MS
        run = broker.start_scenario(scenario)
        await asyncio.sleep(schedule.duration_us / US_PER_S)
        found = _requests(broker, first, began_ns)
        run.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {"connections": _times(at_s * US_PER_S for at_s in connections), **found}


async def _create_topic(broker: Broker, scenario: Scenario) -> str:
    if scenario.topics:
        return scenario.topics[0].name  # the scenario creates it
    nodes = list(broker.brokers)
    replicas = {index: [nodes[each] for each in one] for index, one in enumerate(spread_replicas(len(nodes)))}
    await broker.cluster.create_topic(_TOPIC, assignments=replicas)
    return _TOPIC


def _open(group: Group, bootstrap: str, index: int, seed: int) -> "_Client":
    kind = _AioKafkaClient if group.name == "aiokafka" else _SluiceClient
    return kind(group.model, bootstrap, f"{_CLIENT}{index}", seed)


class _Client(Protocol):
    async def __aenter__(self) -> "_Client": ...

    async def __aexit__(self, *details: object) -> None: ...

    async def send(self, topic: str, partition: int) -> None:
        """Send a record, and wait until it is acknowledged or has failed."""


class _SluiceClient:
    def __init__(self, model: ClientModel, bootstrap: str, client_id: str, seed: int) -> None:
        properties = PRODUCER.properties
        given = {config_name(name): getattr(model, name) for name in model.__struct_fields__}
        known: dict[str, str | int] = {
            name: value if name == "acks" else int(value) for name, value in given.items() if name in properties
        }
        fixed: dict[str, str | int] = {
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 0,
            "connections.max.idle.ms": _MAX_IDLE_MS,
        }
        config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "client.id": client_id, **known, **fixed}
        self._producer = Producer(config, random=Random(seed))

    async def __aenter__(self) -> "_SluiceClient":
        await self._producer.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._producer.close(timeout_ms=0)

    async def send(self, topic: str, partition: int) -> None:
        try:
            await (await self._producer.send(topic, b"", partition=partition))
        except SluiceError:
            return


class _AioKafkaClient:
    def __init__(self, model: ClientModel, bootstrap: str, client_id: str, seed: int) -> None:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        self._error = KafkaError
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            retry_backoff_ms=int(model.retry_backoff_ms),
            request_timeout_ms=int(model.request_timeout_ms),
            metadata_max_age_ms=int(model.metadata_max_age_ms),
        )

    async def __aenter__(self) -> "_AioKafkaClient":
        await self._producer.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._producer.stop()

    async def send(self, topic: str, partition: int) -> None:
        try:
            await (await self._producer.send(topic, b"", partition=partition))
        except self._error:
            return


async def _send_all(
    client: _Client, topic: str, partition: int, model: ClientModel, first_s: float, until_s: float
) -> None:
    loop = asyncio.get_running_loop()
    period_s = 1 / model.requests_per_s
    await client.send(topic, partition)  # connects, and fetches metadata
    sends: set[asyncio.Task[None]] = set()
    at_s = first_s
    while at_s < until_s:
        await asyncio.sleep(at_s - loop.time())
        send = client.send(topic, partition)
        if model.loop == "closed":
            await send
            at_s = loop.time() + period_s
            continue
        task = loop.create_task(send)
        sends.add(task)
        task.add_done_callback(sends.discard)
        at_s += period_s


def _requests(broker: Broker, after: int, began_ns: int) -> dict[str, Times]:
    found: dict[str, list[float]] = {kind: [] for kind in _APIS.values()}
    for event in broker.journal.events(after=after):
        if isinstance(event, Request) and event.api in _APIS:
            found[_APIS[event.api]].append((event.received_ns - began_ns) / _NS_PER_US)
    return {kind: _times(times) for kind, times in found.items()}


def _times(found: Iterable[float]) -> Times:
    return np.array(sorted(at_us for at_us in found if at_us >= 0), dtype=np.float64).astype(np.int64)
