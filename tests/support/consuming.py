"""Our consumer and our broker in virtual time, with the journal's events of the consumer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from sluice import Broker
from sluice.client.config import Profile
from sluice.client.consumer import Consumer, ConsumerRecord, TopicPartition
from sluice.client.producer import Producer
from sluice.journal_events import Request

TOPIC = "t"
P0 = TopicPartition(TOPIC, 0)

Settings = dict[str, str | int]


def values_of(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def within(found: list[float], steps: list[int], slack_ms: float = 3) -> bool:
    """Return whether the gaps are within 20 % of the steps, and at most the maximum."""
    return len(found) >= len(steps) and all(
        0.8 * step - 1 <= gap <= min(1.2 * step, 1000) + slack_ms for gap, step in zip(found, steps, strict=False)
    )


@dataclass
class Reading:
    """A broker with a topic, and a new consumer."""

    broker: Broker
    consumer: Consumer
    began_s: float

    @property
    def now_ms(self) -> float:
        return round((asyncio.get_running_loop().time() - self.began_s) * 1e3, 3)

    async def produce(self, *values: bytes, partition: int = 0, config: Settings | None = None) -> None:
        """Produce records with a separate producer."""
        given: Settings = {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 0, **(config or {})}
        async with Producer(given, random=Random(1)) as producer:
            for value in values:
                await producer.send(TOPIC, value, partition=partition)

    async def read(self, count: int, within_ms: float = 30_000) -> list[bytes | None]:
        """Poll until `count` records arrive or the time is over."""
        until_ms = self.now_ms + within_ms
        records: list[ConsumerRecord] = []
        while len(records) < count and self.now_ms < until_ms:
            records += await self.consumer.poll(min(1000, until_ms - self.now_ms))
        return values_of(records)

    async def deliver(self, value: bytes, partition: int = 0) -> None:
        await self.produce(value, partition=partition)
        assert await self.read(1) == [value]

    def requests(self, api: str) -> list[Request]:
        client_id = self.consumer.config.text("client.id")
        return [one for one in self.broker.journal.requests(api=api) if one.client_id == client_id]

    def request_times_ms(self, api: str) -> list[float]:
        return [round(request.received_ns / 1e6, 1) for request in self.requests(api)]


@asynccontextmanager
async def reading(
    config: Settings | None = None,
    *,
    broker_config: dict[str, str | float] | None = None,
    seed: int = 0,
    profile: Profile = "kafka",
) -> AsyncIterator[Reading]:
    """Start a broker and a consumer of this configuration, which reads from the earliest offset by default."""
    async with Broker(config=broker_config or {}, seed=seed) as broker:
        await broker.cluster.create_topic(TOPIC)
        given: Settings = {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest", **(config or {})}
        async with Consumer(given, random=Random(seed), profile=profile) as consumer:
            yield Reading(broker, consumer, asyncio.get_running_loop().time())
