"""Sends a record per second with sluice's reference client, and prints the result of each.

Stop the broker or add fault rules while it runs. Records not delivered within `delivery.timeout.ms`, here 30 s, are
reported as lost.

    sluice serve
    python examples/reference_producer.py [BOOTSTRAP] [TOPIC]
"""
# ruff: noqa: T201, TID251  (a program that prints, in real time)

import asyncio
import sys
from itertools import count

from sluice.cli.logs import set_up_logging
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer, RecordMetadata


async def report(number: int, sent: "asyncio.Future[RecordMetadata]") -> None:
    """Print the result of a record."""
    try:
        place = await sent
    except KafkaException as error:
        print(f"{number} lost: {error}", flush=True)
    else:
        print(f"{number} is at {place.topic}-{place.partition} {place.offset}", flush=True)


async def main(bootstrap: str, topic: str) -> None:
    config = {"bootstrap.servers": bootstrap, "delivery.timeout.ms": 30_000, "request.timeout.ms": 5000}
    async with Producer(config) as producer, asyncio.TaskGroup() as reports:
        for number in count():
            try:
                sent = await producer.send(topic, b"%d" % number)  # waits for the topic's metadata
            except KafkaException as error:
                print(f"{number} not sent: {error}", flush=True)
            else:
                reports.create_task(report(number, sent))
            await asyncio.sleep(1)


if __name__ == "__main__":
    set_up_logging("text")
    arguments = [*sys.argv[1:], *["127.0.0.1:9092", "examples"][len(sys.argv) - 1 :]]
    asyncio.run(main(arguments[0], arguments[1]))
