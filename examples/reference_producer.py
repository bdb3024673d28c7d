"""Sends a record per second with sluice's reference client, and prints the result of each.

python examples/reference_producer.py [BOOTSTRAP [TOPIC]]

Without an address, it starts a broker and sends for 12 s, with an outage of 4 s: the records of the outage are
delivered afterwards, in order. With one, it runs until stopped: stop that broker or add fault rules. Records not
delivered within `delivery.timeout.ms`, here 30 s, are reported as lost.
"""
# ruff: noqa: T201, TID251  (a program that prints, in real time)

import asyncio
import sys
from itertools import count

from own_broker import given_or_own, outage

from sluice.cli.logs import set_up_logging
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer, RecordMetadata

delivered: list[int] = []


async def report(number: int, sent: "asyncio.Future[RecordMetadata]") -> None:
    """Print the result of a record."""
    try:
        place = await sent
    except KafkaException as error:
        print(f"{number} lost: {error}", flush=True)
    else:
        delivered.append(number)
        print(f"{number} is at {place.topic}-{place.partition} {place.offset}", flush=True)


async def main(bootstrap: str, topic: str, records: int | None = None) -> None:
    config = {"bootstrap.servers": bootstrap, "delivery.timeout.ms": 30_000, "request.timeout.ms": 5000}
    async with Producer(config) as producer, asyncio.TaskGroup() as reports:
        for number in count() if records is None else range(records):
            try:
                sent = await producer.send(topic, f"{number}")
            except KafkaException as error:
                print(f"{number} not sent: {error}", flush=True)
            else:
                reports.create_task(report(number, sent))
            await asyncio.sleep(1)


if __name__ == "__main__":
    set_up_logging("text")
    with given_or_own() as (bootstrap, broker), outage(broker, when=lambda: len(delivered) > 2, for_s=4):
        asyncio.run(main(bootstrap, [*sys.argv[2:], "examples"][0], None if broker is None else 12))
