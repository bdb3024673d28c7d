"""Counts words with sluice's Streams runtime, whose log shows how it handles failures.

python examples/word_count.py [BOOTSTRAP]

Without an address, it starts a broker, writes lines, and counts their 20 words, with an outage of 3 s: no word is
lost. With one, it runs until stopped: write lines to the topic "lines" (`reference_producer.py BOOTSTRAP lines` writes
numbers), stop the broker or add fault rules. After a restart, it continues with its previous counts. The counts go to
"word-counts".
"""
# ruff: noqa: T201  (a program that prints)

import asyncio
import logging
from contextlib import suppress

from own_broker import given_or_own, outage

from sluice.cli.logs import set_up_logging
from sluice.client.admin import AdminClient, NewTopic
from sluice.client.producer import Producer
from sluice.streams.processor import Context, Record
from sluice.streams.streams import Streams
from sluice.streams.topology import Topology

printed: list[str] = []


def split(ctx: Context, record: Record) -> None:
    for word in (record.value or b"").split():
        ctx.forward(record._replace(key=word, value=word))


def count(ctx: Context, record: Record) -> None:
    counts, word = ctx.store("counts"), record.key or b""
    counts[word] = b"%d" % (int(counts.get(word, b"0")) + 1)
    printed.append(f"{word.decode()} {counts[word].decode()}")
    print(printed[-1], flush=True)
    ctx.forward(record._replace(value=counts[word]))


async def main(bootstrap: str) -> None:
    topology = Topology()
    topology.store("counts")
    words = topology.source("lines").process(split).repartition("words")
    words.process(count, stores=["counts"]).sink("word-counts")
    config = {
        "application.id": "word-count",
        "bootstrap.servers": bootstrap,
        "commit.interval.ms": 1000,
        "task.timeout.ms": 60_000,
        "default.api.timeout.ms": 5000,
        "request.timeout.ms": 2000,
    }
    async with AdminClient({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topics([NewTopic("lines", 2), NewTopic("word-counts", 2)])
    async with Streams(topology, config) as streams:
        await streams.run()


async def write(bootstrap: str) -> None:
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(10):
            await producer.send("lines", "pizza and pasta" if number % 2 else "pizza")
            await asyncio.sleep(0.8)  # noqa: TID251  (in real time)


async def story(bootstrap: str) -> None:
    writing = asyncio.ensure_future(write(bootstrap))
    counting = asyncio.ensure_future(main(bootstrap))
    while len(printed) < 20:  # noqa: ASYNC110  (a list of results, no event)
        await asyncio.sleep(0.1)  # noqa: TID251  (in real time)
    counting.cancel()
    with suppress(asyncio.CancelledError):
        await counting
    await writing


if __name__ == "__main__":
    set_up_logging("text")
    logging.getLogger("sluice.client").setLevel(logging.WARNING)
    with given_or_own() as (bootstrap, broker), outage(broker, when=lambda: len(printed) > 7, for_s=3):
        asyncio.run(main(bootstrap) if broker is None else story(bootstrap))
