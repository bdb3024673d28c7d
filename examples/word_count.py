"""Counts words with sluice's Streams runtime, whose log shows how it handles failures.

Stop the broker or add fault rules while it runs. After a restart, it continues with its previous counts.

    sluice serve
    python examples/word_count.py [BOOTSTRAP]

Write lines to the topic "lines"; `python examples/reference_producer.py 127.0.0.1:9092 lines` writes numbers. The
counts go to "word-counts".
"""
# ruff: noqa: T201  (a program that prints)

import asyncio
import logging
import sys

from sluice.cli.logs import set_up_logging
from sluice.client.admin import AdminClient, NewTopic
from sluice.streams.processor import Context, Record
from sluice.streams.streams import Streams
from sluice.streams.topology import Topology


def split(ctx: Context, record: Record) -> None:
    for word in (record.value or b"").split():
        ctx.forward(record._replace(key=word, value=word))


def count(ctx: Context, record: Record) -> None:
    counts, word = ctx.store("counts"), record.key or b""
    counts[word] = b"%d" % (int(counts.get(word, b"0")) + 1)
    print(word.decode(), counts[word].decode(), flush=True)
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


if __name__ == "__main__":
    set_up_logging("text")
    logging.getLogger("sluice.client").setLevel(logging.WARNING)
    asyncio.run(main([*sys.argv[1:], "127.0.0.1:9092"][0]))
