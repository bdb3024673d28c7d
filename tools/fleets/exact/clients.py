"""Real producers and consumers with the settings of a model."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from sluice.client.config_table import CONSUMER, PRODUCER, Table
from sluice.client.consumer.consumer import Consumer
from sluice.client.producer import Producer
from sluice.errors import SluiceError
from sluice.fleet.models.client_model import ClientModel, Group, config_name

# The simulation does not rebootstrap.
_FIXED: dict[str, str | int] = {"connections.max.idle.ms": 30_000, "metadata.recovery.strategy": "none"}
_POLL_MS = 1000


class RealClient(Protocol):
    async def __aenter__(self) -> "RealClient": ...

    async def __aexit__(self, *details: object) -> None: ...

    async def run(self, topic: str, partition: int, start_s: float, until_s: float, phase: float) -> None:
        """Produce to a partition, or consume a topic of this partition, until a time of the loop."""


def open_client(group: Group, bootstrap: str, name: str, seed: int) -> RealClient:
    """Return aiokafka's client for a group of its name, or else sluice's."""
    is_aiokafka = group.name.startswith("aiokafka")
    if group.model.role == "consumer":
        return (_AioKafkaConsumer if is_aiokafka else _SluiceConsumer)(group.model, bootstrap, name, seed)
    return (_AioKafkaProducer if is_aiokafka else _SluiceProducer)(group.model, bootstrap, name, seed)


def _config(model: ClientModel, table: Table, bootstrap: str, name: str) -> dict[str, str | int]:
    given = {config_name(field): getattr(model, field) for field in model.__struct_fields__}
    known: dict[str, str | int] = {
        name: value if name == "acks" else int(value) for name, value in given.items() if name in table.properties
    }
    return {"bootstrap.servers": bootstrap, "client.id": name, **_FIXED, **known}


class _Producer:
    _error: type[Exception]

    def __init__(self, model: ClientModel) -> None:
        self._model = model

    async def run(self, topic: str, partition: int, start_s: float, until_s: float, phase: float) -> None:
        loop = asyncio.get_running_loop()
        period_s = 1 / self._model.requests_per_s
        await self.send(topic, partition)  # connects, and fetches metadata
        at_s = start_s + phase * period_s
        while at_s < until_s:
            await asyncio.sleep(at_s - loop.time())
            if self._model.loop == "closed":
                await self.send(topic, partition)
                at_s = loop.time() + period_s
            else:
                await self.start_send(topic, partition)
                at_s += period_s

    async def send(self, topic: str, partition: int) -> None:
        """Send a record, and wait until it is acknowledged or has failed."""
        with suppress(self._error):
            await (await self._enqueue(topic, partition))

    async def start_send(self, topic: str, partition: int) -> None:
        """Send a record without waiting for the response.

        A task for each record would take 4% of the time. If the producer blocks (no metadata, or a full buffer), the
        next record waits.
        """
        with suppress(self._error):
            future = await self._enqueue(topic, partition)
            future.add_done_callback(asyncio.Future.exception)  # else asyncio logs it

    async def _enqueue(self, topic: str, partition: int) -> asyncio.Future[Any]:
        """Return the future of a record."""
        raise NotImplementedError


class _SluiceProducer(_Producer):
    def __init__(self, model: ClientModel, bootstrap: str, name: str, seed: int) -> None:
        super().__init__(model)
        # Idempotence keeps the order of several requests in flight; without it, no InitProducerId is needed.
        is_idempotent = model.max_in_flight_requests_per_connection > 1 and model.acks == "all"
        fixed: dict[str, str | int] = {"enable.idempotence": str(is_idempotent).lower(), "linger.ms": 0}
        config = {**_config(model, PRODUCER, bootstrap, name), **fixed}
        self._producer = Producer(config, random=Random(seed))
        self._error = SluiceError

    async def __aenter__(self) -> "_SluiceProducer":
        await self._producer.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._producer.close(timeout_ms=0)

    async def _enqueue(self, topic: str, partition: int) -> asyncio.Future[Any]:
        return await self._producer.send(topic, b"", partition=partition)


class _AioKafkaProducer(_Producer):
    def __init__(self, model: ClientModel, bootstrap: str, name: str, seed: int) -> None:
        super().__init__(model)
        self._error = KafkaError
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=name,
            retry_backoff_ms=int(model.retry_backoff_ms),
            request_timeout_ms=int(model.request_timeout_ms),
            metadata_max_age_ms=int(model.metadata_max_age_ms),
        )

    async def __aenter__(self) -> "_AioKafkaProducer":
        await self._producer.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._producer.stop()

    async def _enqueue(self, topic: str, partition: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = await self._producer.send(topic, b"", partition=partition)
        return future


class _SluiceConsumer:
    def __init__(self, model: ClientModel, bootstrap: str, name: str, seed: int) -> None:
        self._spread_s = model.heartbeat_interval_ms / 1000
        fixed: dict[str, str | int] = {"group.id": name, "enable.auto.commit": "false"}
        self._consumer = Consumer({**_config(model, CONSUMER, bootstrap, name), **fixed}, random=Random(seed))

    async def __aenter__(self) -> "_SluiceConsumer":
        await self._consumer.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._consumer.close(timeout_ms=0)

    async def run(self, topic: str, partition: int, start_s: float, until_s: float, phase: float) -> None:
        self._consumer.subscribe([f"{topic}-{partition}"])
        await asyncio.sleep(phase * self._spread_s)
        while asyncio.get_running_loop().time() < until_s:
            await self._consumer.poll(_POLL_MS)


class _AioKafkaConsumer:
    def __init__(self, model: ClientModel, bootstrap: str, name: str, seed: int) -> None:
        self._spread_s = model.heartbeat_interval_ms / 1000
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=name,
            group_id=name,
            enable_auto_commit=False,
            retry_backoff_ms=int(model.retry_backoff_ms),
            request_timeout_ms=int(model.request_timeout_ms),
            metadata_max_age_ms=int(model.metadata_max_age_ms),
            fetch_min_bytes=int(model.fetch_min_bytes),
            fetch_max_wait_ms=int(model.fetch_max_wait_ms),
            heartbeat_interval_ms=int(model.heartbeat_interval_ms),
            session_timeout_ms=int(model.session_timeout_ms),
        )

    async def __aenter__(self) -> "_AioKafkaConsumer":
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._consumer.stop()

    async def run(self, topic: str, partition: int, start_s: float, until_s: float, phase: float) -> None:
        self._consumer.subscribe([f"{topic}-{partition}"])
        await asyncio.sleep(phase * self._spread_s)
        await self._consumer.start()
        while asyncio.get_running_loop().time() < until_s:
            await self._consumer.getmany(timeout_ms=_POLL_MS)
