import asyncio
import sys

from faststream import FastStream
from faststream.kafka import KafkaBroker

bootstrap, source, target, _ = sys.argv[1:]
broker = KafkaBroker(bootstrap)


@broker.publisher(target)
@broker.subscriber(source, group_id="faststream", auto_offset_reset="earliest")
async def shout(value: str) -> str:
    return value.upper()


asyncio.run(FastStream(broker).run())
