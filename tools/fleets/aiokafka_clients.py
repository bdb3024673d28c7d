"""Many producers of aiokafka in one process, as in confluent_clients.py; settings have aiokafka's names."""

import asyncio
import logging
import sys
from random import Random

from aiokafka import AIOKafkaProducer


async def main() -> None:
    bootstrap, topic, partitions, clients, period, seed, *settings = sys.argv[1:]
    logging.disable()
    random, loop = Random(int(seed)), asyncio.get_running_loop()
    config = {name: int(value) for name, value in (each.split("=", 1) for each in settings)}
    producers = [
        AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=f"aio-{index}", **config)
        for index in range(int(clients))
    ]
    for index, producer in enumerate(producers):
        await producer.start()
        await producer.send_and_wait(topic, b"", partition=index % int(partitions))
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    ended = loop.run_in_executor(None, sys.stdin.readline)

    async def send(index: int) -> None:
        at = loop.time() + random.random() * float(period)
        while True:
            await asyncio.sleep(at - loop.time())
            result = await producers[index].send(topic, b"", partition=index % int(partitions))
            result.add_done_callback(lambda done: done.exception())
            at += float(period)

    tasks = [asyncio.create_task(send(index)) for index in range(len(producers))]
    await ended
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
