"""Reads a topic in a consumer group with sluice's reference client, whose log shows how it handles failures.

python examples/reference_consumer.py [BOOTSTRAP [TOPIC]]

Without an address, it starts a broker, writes records, and reads all 12, with an outage of 3 s: the consumer
finds the coordinator again, and reads on. With one, it runs until stopped: stop that broker or add fault rules.
"""
# ruff: noqa: T201  (a program that prints)

import asyncio
import sys
from collections.abc import Collection

from own_broker import given_or_own, outage

from sluice import SyncBroker
from sluice.cli.logs import set_up_logging
from sluice.client.consumer import Consumer, RebalanceListener, TopicPartition
from sluice.client.producer import Producer

read: list[int] = []


class PrintingListener(RebalanceListener):
    """Prints the assigned and revoked partitions."""

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        print("assigned", *partitions, flush=True)

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        print("revoked", *partitions, flush=True)


async def main(bootstrap: str, topic: str, last: bytes | None = None) -> None:
    config = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    async with Consumer(config) as consumer:
        consumer.subscribe([topic], listener=PrintingListener())
        while True:
            for record in await consumer.poll(5000):
                read.append(record.offset)
                print(f"{record.topic}-{record.partition} {record.offset}: {record.value!r}", flush=True)
                if record.value == last:
                    return


async def write(bootstrap: str, topic: str) -> None:
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(12):
            await producer.send(topic, f"{number}")
            await asyncio.sleep(1)  # noqa: TID251  (in real time)


async def story(broker: SyncBroker, topic: str) -> None:
    writing = asyncio.ensure_future(write(broker.bootstrap, topic))
    await main(broker.bootstrap, topic, last=b"11")
    await writing


if __name__ == "__main__":
    set_up_logging("text")
    topic = [*sys.argv[2:], "examples"][0]
    with given_or_own() as (bootstrap, broker), outage(broker, when=lambda: len(read) > 3, for_s=3):
        asyncio.run(main(bootstrap, topic) if broker is None else story(broker, topic))
