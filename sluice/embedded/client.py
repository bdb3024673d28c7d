"""A client for tests that send and receive records: `broker.client()`."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.client.consumer import ConsumerRecord
    from sluice.client.producer import RecordMetadata

# Duration of a poll, which bounds how late a timeout of `receive` is raised.
_POLL_MS = 100.0


class LocalClient:
    """A client that sends records, and reads topics from the beginning.

    Each call opens and closes a separate producer or consumer of sluice.client in the broker's event loop.

        await broker.client().send("orders", b"one pizza")
        (order,) = await broker.client().receive("orders")
    """

    def __init__(self, bootstrap: str, client_id: str) -> None:
        self._config = {"bootstrap.servers": bootstrap, "client.id": client_id}

    async def send(
        self, topic: str, *values: bytes | None, key: bytes | None = None, partition: int | None = None
    ) -> "list[RecordMetadata]":
        """Send records in this order, all with the same key.

        Returns:
            The partition and offset of each record.

        Raises:
            KafkaException: A subclass from `sluice.client.errors`.
        """
        from sluice.client.producer import Producer  # most tests do not use it

        async with Producer(self._config) as producer:
            sent = [await producer.send(topic, value, key=key, partition=partition) for value in values]
            await producer.flush()
            return [await each for each in sent]

    async def receive(self, topic: str, count: int = 1, *, timeout_s: float = 10.0) -> "list[ConsumerRecord]":
        """Return the first `count` records of a topic, without a consumer group; each partition is in order.

        Raises:
            TimeoutError: Fewer records within `timeout_s` seconds; the message has their number.
        """
        from sluice.client.consumer import Consumer, TopicPartition  # as above

        found: list[ConsumerRecord] = []
        config = {**self._config, "auto.offset.reset": "earliest"}
        try:
            async with asyncio.timeout(timeout_s), Consumer(config) as consumer:
                partitions = await consumer.partitions_for(topic)
                consumer.assign(TopicPartition(topic, partition) for partition in partitions)
                while len(found) < count:
                    found += await consumer.poll(_POLL_MS)
        except TimeoutError:
            raise TimeoutError(f"after {timeout_s:g} s: {len(found)} of {count} records of topic {topic}") from None
        return found[:count]
