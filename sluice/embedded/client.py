"""A client for tests that send and receive records: `broker.client()`."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.errors import ArgumentError, WaitTimeoutError
from sluice.text.arguments import Count, Duration, Index, checks_arguments

if TYPE_CHECKING:
    from sluice.client.consumer import ConsumerRecord
    from sluice.client.producer import RecordMetadata

# Duration of a poll, which bounds how late a timeout of `receive` is raised.
_POLL_MS = 100.0


@checks_arguments
class LocalClient:
    """A client that sends records, and reads topics from the beginning.

    Each call opens and closes a separate producer or consumer of sluice.client in the broker's event loop.

        await broker.client().send("orders", b"one pizza")
        (order,) = await broker.client().receive("orders")
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    async def send(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: Index | None = None,
        timeout_s: Duration = 10.0,
    ) -> "list[RecordMetadata]":
        """Send records in this order, all with the same key; text is sent as UTF-8.

        Returns:
            The partition and offset of each record.

        Raises:
            KafkaException: A subclass from `sluice.client.errors`.
            WaitTimeoutError: The records were not written within `timeout_s` seconds.
        """
        from sluice.client.producer import Producer  # most tests do not use it

        if not values:
            raise ArgumentError("send: values: expected at least one value, got none")
        config: dict[str, str | int] = dict(self._config)
        config["max.block.ms"] = max(1, int(timeout_s * 900))  # its error has more details
        sent: list[asyncio.Future[RecordMetadata]] = []
        try:
            async with asyncio.timeout(timeout_s), Producer(config) as producer:
                for value in values:  # a comprehension would lose `sent` at a timeout
                    sent.append(  # noqa: PERF401
                        await producer.send(topic, value, key=key, partition=partition)
                    )
                await producer.flush()
                return [await each for each in sent]
        except TimeoutError:
            written = sum(each.done() and not each.cancelled() and each.exception() is None for each in sent)
            raise WaitTimeoutError(
                f"after {timeout_s:g} s: {written} of {len(values)} records of topic {topic} were written"
            ) from None

    async def receive(self, topic: str, count: Count = 1, *, timeout_s: Duration = 10.0) -> "list[ConsumerRecord]":
        """Return the first `count` records of a topic, without a consumer group; each partition is in order.

        Raises:
            WaitTimeoutError: Fewer records within `timeout_s` seconds; the message has their number.
        """
        from sluice.client.consumer import Consumer, TopicPartition

        found: list[ConsumerRecord] = []
        config = {**self._config, "auto.offset.reset": "earliest"}
        try:
            async with asyncio.timeout(timeout_s), Consumer(config) as consumer:
                partitions = await consumer.partitions_for(topic)
                consumer.assign(TopicPartition(topic, partition) for partition in partitions)
                while len(found) < count:
                    found += await consumer.poll(_POLL_MS)
        except TimeoutError:
            raise WaitTimeoutError(f"after {timeout_s:g} s: {len(found)} of {count} records of topic {topic}") from None
        return found[:count]
