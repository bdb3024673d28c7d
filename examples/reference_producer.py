"""Sends a record a second with sluice's reference client, and says how each ended: stop the broker meanwhile, or have
faults, and follow the lines. What is not delivered within `delivery.timeout.ms`, here 30 s, is told as lost.

    sluice serve
    python examples/reference_producer.py [BOOTSTRAP] [TOPIC]
"""
# ruff: noqa: T201, TID251  (a program of its own: it talks to a person, in real time)

import asyncio
import logging
import sys

from sluice.client.errors import KafkaException
from sluice.client.producer import Producer


async def send(producer: Producer, topic: str, number: int) -> None:
    """Sends one record, and says what became of it."""
    try:
        sent = await (await producer.send(topic, b"%d" % number))
    except KafkaException as error:
        print(f"{number} lost: {error}", flush=True)
    else:
        print(f"{number} is at {sent.topic}-{sent.partition} {sent.offset}", flush=True)


async def main(bootstrap: str, topic: str) -> None:
    config = {"bootstrap.servers": bootstrap, "delivery.timeout.ms": 30_000, "request.timeout.ms": 5000}
    async with Producer(config) as producer, asyncio.TaskGroup() as sending:
        number = 0
        while True:
            sending.create_task(send(producer, topic, number))
            number += 1
            await asyncio.sleep(1)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    arguments = [*sys.argv[1:], *["127.0.0.1:9092", "examples"][len(sys.argv) - 1 :]]
    asyncio.run(main(arguments[0], arguments[1]))
