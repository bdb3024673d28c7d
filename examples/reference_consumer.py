"""Reads a topic in a consumer group with sluice's reference client, whose log shows how it handles failures.

Stop the broker or add fault rules while it runs.

    sluice serve
    python examples/reference_consumer.py [BOOTSTRAP] [TOPIC]
"""
# ruff: noqa: T201  (a program that prints)

import asyncio
import sys
from collections.abc import Collection

from sluice.cli.logs import set_up_logging
from sluice.client.consumer import Consumer, RebalanceListener, TopicPartition


class PrintingListener(RebalanceListener):
    """Prints the assigned and revoked partitions."""

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        print("assigned", *partitions, flush=True)

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        print("revoked", *partitions, flush=True)


async def main(bootstrap: str, topic: str) -> None:
    config = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    async with Consumer(config) as consumer:
        consumer.subscribe([topic], listener=PrintingListener())
        while True:
            for record in await consumer.poll(5000):
                print(f"{record.topic}-{record.partition} {record.offset}: {record.value!r}", flush=True)


if __name__ == "__main__":
    set_up_logging("text")
    arguments = [*sys.argv[1:], *["127.0.0.1:9092", "examples"][len(sys.argv) - 1 :]]
    asyncio.run(main(arguments[0], arguments[1]))
