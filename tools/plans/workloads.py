"""The workloads of 40 real producers, and how aiokafka and confluent-kafka run them.

As a program, with the kind of client and the bootstrap server as arguments, it reads a line for each workload.
`Producers.java` reads the same lines. A process sends until it is killed.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from random import Random
from threading import Thread
from typing import NamedTuple

KINDS = ("aiokafka", "confluent", "java")
STYLES = ("paced", "bursty", "backlogged", "closed")
WORKLOADS = 40


class Workload(NamedTuple):
    """`records` records each `every_ms`; a closed loop waits for their responses, then `every_ms`.

    `backlog` records are sent at the beginning.
    """

    client_id: str
    style: str
    nbytes: int  # of a record
    records: int
    every_ms: int
    backlog: int
    linger_ms: int

    @property
    def line(self) -> str:
        return " ".join(map(str, self))


def workloads(seed: int) -> Iterator[tuple[str, Workload]]:
    """Yield the kind of client and the workload of each."""
    random = Random(seed)
    for number in range(WORKLOADS):
        kind, style = KINDS[number % 3], STYLES[number // 3 % 4]
        nbytes, linger_ms = random.choice((1000, 5000, 20_000)), random.choice((0, 5, 100))
        # Pauses of a closed loop are long compared with latencies, which differ between recordings on a busy machine.
        count, every_ms = random.choice(
            ((1, 100), (2, 400), (5, 1000)) if style != "closed" else ((5, 1000), (10, 2000))
        )
        if style == "bursty":
            count, every_ms = random.choice(((20, 4000), (50, 8000)))
        backlog = count * 30_000 // every_ms if style == "backlogged" else 0  # half a minute of records
        yield kind, Workload(f"{kind}-{number}-{style}", style, nbytes, count, every_ms, backlog, linger_ms)


async def _run_aiokafka(bootstrap: str, load: Workload) -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, client_id=load.client_id, linger_ms=load.linger_ms
    ) as producer:
        record = bytes(load.nbytes)
        for _ in range(load.backlog):
            await producer.send(load.client_id, record, partition=0)
        due = time.monotonic()
        while True:
            sent = [await producer.send(load.client_id, record, partition=0) for _ in range(load.records)]
            if load.style == "closed":
                await asyncio.gather(*sent)
                due = time.monotonic()
            due += load.every_ms / 1000
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _run_all(bootstrap: str, loads: list[Workload]) -> None:
    await asyncio.gather(*(_run_aiokafka(bootstrap, load) for load in loads))


def _run_confluent(bootstrap: str, load: Workload) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": load.client_id, "linger.ms": load.linger_ms})
    record, due = bytes(load.nbytes), time.monotonic()
    for _ in range(load.backlog):
        producer.produce(load.client_id, record, partition=0)
    while True:
        for _ in range(load.records):
            producer.produce(load.client_id, record, partition=0)
        if load.style == "closed":
            producer.flush()
            due = time.monotonic()
        due += load.every_ms / 1000
        producer.poll(max(0.0, due - time.monotonic()))
        time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    kind, bootstrap = sys.argv[1:]
    loads = []
    for line in sys.stdin:
        client_id, style, *numbers = line.split()
        loads.append(Workload(client_id, style, *map(int, numbers)))
    if kind == "aiokafka":
        asyncio.run(_run_all(bootstrap, loads))
    threads = [Thread(target=_run_confluent, args=(bootstrap, load), daemon=True) for load in loads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
