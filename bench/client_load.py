"""A process with one client of one library.

`python -m bench.client_load LIBRARY produce|consume HOST:PORT TOPIC CODEC BATCH-BYTES RECORDS` prints one line of JSON:
the elapsed and CPU time for RECORDS records, after a tenth of them to warm up. Both libraries use equal settings and
wait for the result of each record.

`python -m bench.client_load lateness - HOST:PORT TOPIC DELIVERY-TIMEOUT-MS BATCHES` prints for each batch how many ms
after `delivery.timeout.ms` sluice's producer reported it as expired, at a broker that accepts none.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from random import Random
from time import perf_counter, process_time

RECORD_BYTES = 1024
_WORDS = [b"order", b"customer", b"shipped", b"pending", b"amount", b"currency", b"warehouse", b"priority"]
# Records that the faster client sends in a linger of 5 ms; all are acknowledged before the next ones are sent.
_AT_ONCE = 2000
_MAX_POLL_RECORDS = 500
_FETCH_BYTES = 4 * 1024 * 1024


def values() -> list[bytes]:
    """Return values that are half words, half random, so that lz4 compresses them by a realistic ratio."""
    random = Random(0)
    made = []
    for _ in range(256):
        pieces = b" ".join(random.choice(_WORDS) + b"=" + b"%x" % random.getrandbits(48) for _ in range(64))
        made.append(pieces[:RECORD_BYTES].ljust(RECORD_BYTES, b"."))
    return made


async def measured(work: Callable[[int], Awaitable[None]], records: int) -> dict[str, float]:
    """Measure the work, after a warm-up."""
    await work(records // 10)
    cpu, clock = process_time(), perf_counter()
    await work(records)
    return {"cpu_s": process_time() - cpu, "clock_s": perf_counter() - clock}


async def ours_produces(bootstrap: str, topic: str, codec: str, batch_bytes: int, records: int) -> dict[str, float]:
    from sluice.client.producer import Producer

    config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "batch.size": batch_bytes, "linger.ms": 5}
    config |= {"compression.type": codec, "acks": 1, "enable.idempotence": False}
    async with Producer(config) as producer:
        following = cycle(values())

        async def work(count: int) -> None:
            send = producer.send
            while count > 0:
                sent = [await send(topic, value, partition=0) for value in islice(following, min(count, _AT_ONCE))]
                for future in sent:
                    await future
                count -= len(sent)

        return await measured(work, records)


async def aiokafka_produces(bootstrap: str, topic: str, codec: str, batch_bytes: int, records: int) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer

    compression = None if codec == "none" else codec
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_batch_size=batch_bytes, linger_ms=5, compression_type=compression, acks=1
    )
    await producer.start()
    following = cycle(values())

    async def work(count: int) -> None:
        send = producer.send
        while count > 0:
            sent = [await send(topic, value, partition=0) for value in islice(following, min(count, _AT_ONCE))]
            for future in sent:
                await future
            count -= len(sent)

    try:
        return await measured(work, records)
    finally:
        await producer.stop()


async def ours_consumes(bootstrap: str, topic: str, codec: str, batch_bytes: int, records: int) -> dict[str, float]:
    from sluice.client.consumer import Consumer, TopicPartition

    config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    config |= {"max.poll.records": _MAX_POLL_RECORDS, "max.partition.fetch.bytes": _FETCH_BYTES}
    async with Consumer(config) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        async def work(count: int) -> None:
            seen = 0
            while count > 0:
                found = await consumer.poll(1000)
                count -= len(found)
                for record in found:
                    seen += record.offset + len(record.value or b"")

        return await measured(work, records)


async def aiokafka_consumes(bootstrap: str, topic: str, codec: str, batch_bytes: int, records: int) -> dict[str, float]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=_FETCH_BYTES
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])

    async def work(count: int) -> None:
        seen = 0
        while count > 0:
            for found in (await consumer.getmany(timeout_ms=1000, max_records=_MAX_POLL_RECORDS)).values():
                count -= len(found)
                for record in found:
                    seen += record.offset + len(record.value or b"")

    try:
        return await measured(work, records)
    finally:
        await consumer.stop()


async def lateness(bootstrap: str, topic: str, delivery_timeout_ms: int, batches: int) -> list[float]:
    """Return how many ms after `delivery.timeout.ms` each batch (one record) was reported as expired.

    Sending takes about as long as the timeout, so that batches in all states exist at the same time.
    """
    from sluice.client.producer import Producer

    config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "batch.size": 1, "linger.ms": 0}
    config |= {"buffer.memory": 1 << 30}
    config |= {"delivery.timeout.ms": delivery_timeout_ms, "request.timeout.ms": delivery_timeout_ms // 3}
    late_ms: list[float] = []

    async with Producer(config) as producer:
        await producer.partitions_for(topic)
        made = []
        for number in range(batches):
            began = perf_counter()
            future = await producer.send(topic, b"v", partition=number % 4)

            def ended(_: object, began: float = began) -> None:
                late_ms.append((perf_counter() - began) * 1e3 - delivery_timeout_ms)

            future.add_done_callback(ended)
            made.append(future)
            if number % 10 == 9:
                await asyncio.sleep(delivery_timeout_ms / batches / 100)
        outcomes = await asyncio.gather(*made, return_exceptions=True)
        assert all(isinstance(outcome, Exception) for outcome in outcomes), "a batch was delivered"
    return late_ms


_WORK = {
    ("ours", "produce"): ours_produces,
    ("ours", "consume"): ours_consumes,
    ("aiokafka", "produce"): aiokafka_produces,
    ("aiokafka", "consume"): aiokafka_consumes,
}


def main() -> None:
    """Run the measurement of the arguments."""
    library, kind, bootstrap, topic, *rest = sys.argv[1:]
    if library == "lateness":
        timeout_ms, batches = map(int, rest)
        print(json.dumps(asyncio.run(lateness(bootstrap, topic, timeout_ms, batches))))
        return
    codec, batch_bytes, records = rest[0], int(rest[1]), int(rest[2])
    print(json.dumps(asyncio.run(_WORK[library, kind](bootstrap, topic, codec, batch_bytes, records))))


if __name__ == "__main__":
    main()
