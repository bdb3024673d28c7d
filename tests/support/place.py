"""The reference client on any broker, ours or a real one, with unique names and common operations."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sluice.client.admin import AdminClient, NewTopic
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.producer import Producer

Settings = dict[str, str | int | float | bool | Sequence[str]]


class Place:
    """A broker, and unique names on it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"sluice-{secrets.token_hex(6)}"
        self.group = f"{self.topic}-group"

    def __getitem__(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def producer(self, **config: str | int) -> Producer:
        """Return a producer; property names have underscores for dots."""
        return Producer(self._config(config))

    def consumer(self, **config: str | int) -> Consumer:
        """Return a consumer that reads from the earliest offset by default."""
        return Consumer({"auto.offset.reset": "earliest", **self._config(config)})

    def _config(self, config: dict[str, str | int]) -> Settings:
        return {"bootstrap.servers": self.bootstrap, **{name.replace("_", "."): one for name, one in config.items()}}

    async def create(self, partitions: int = 1, **configs: str) -> None:
        """Create the topic. It may appear in metadata before it is usable; clients wait for that."""
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        async with self.admin() as admin:
            (await admin.create_topics([NewTopic(self.topic, partitions, 1, dotted)])).all()

    async def send(self, *values: bytes, partition: int = 0, **config: str | int) -> None:
        async with self.producer(**config) as producer:
            sent = [await producer.send(self.topic, value, partition=partition) for value in values]
            await asyncio.gather(*sent)

    async def read(self, consumer: Consumer, count: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        while len(values) < count:
            values += [record.value for record in await consumer.poll(1000)]
        return values


@asynccontextmanager
async def polling(place: Place, **config: str | int) -> AsyncIterator[Consumer]:
    """Run a group member that polls continuously."""

    async def poll(consumer: Consumer) -> None:
        while True:
            await consumer.poll(100)

    async with place.consumer(group_id=place.group, **config) as consumer:
        consumer.subscribe([place.topic])
        task = asyncio.ensure_future(poll(consumer))
        try:
            yield consumer
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until(is_so: Callable[[], bool]) -> None:
    """Poll a condition: no event reports the progress of a broker or another member."""
    while not is_so():  # noqa: ASYNC110  (no event exists)
        await asyncio.sleep(0.1)


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]
