"""The demo's clients, aiokafka and kafka-python, which record sent bytes and returned throttle times.

Each has one request in flight, of at most a tenth of a second's quota. So a throttled client is delayed by a tenth of a
second at a time, in regular cycles.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.client import AIOKafkaClient
from kafka import KafkaProducer

from sluice.clock import Clock

from .trace import Client, Exchange

_PRODUCE_KEY, _FETCH_KEY = 0, 1

_BRONZE_RECORD_BYTES = 100_000  # a tenth of a second at 1 MB/s
_GOLD_RECORD_BYTES = 200_000  # a twentieth of a second at 4 MB/s; for the reader, a tenth at 2 MB/s
_STEADY_RECORD_BYTES = 20_000
_STEADY_EVERY_S = 0.1  # at most 200 kB/s, a fifth of its quota
# A client that stops may be throttled while it sends its buffered records; the demo does not wait.
_STOP_TIMEOUT_S = 0.5


class _Request(Protocol):
    API_KEY: int


class _Response(Protocol):
    throttle_time_ms: int
    topics: list[tuple[str, list[tuple[object, ...]]]]  # one tuple of fields per partition


async def bronze(client: Client, bootstrap: str, clock: Clock) -> None:
    """Produce as fast as possible."""
    await _produce(client, bootstrap, clock, bytes(_BRONZE_RECORD_BYTES))


async def gold(client: Client, bootstrap: str, clock: Clock) -> None:
    """Produce to the topic of `reader`."""
    await _produce(client, bootstrap, clock, bytes(_GOLD_RECORD_BYTES))


async def reader(client: Client, bootstrap: str, clock: Clock) -> None:
    """Fetch gold's topic, one batch at a time."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=client.name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=_GOLD_RECORD_BYTES,  # a second batch does not fit
    )
    async with _stopping(consumer):
        await consumer.start()
        consumer.assign([TopicPartition(gold.__name__, 0)])
        # Private: no public API reports throttle times, or responses without records.
        _note_exchanges(client, clock, consumer._client, _FETCH_KEY, _fetched_bytes)
        while True:
            await consumer.getone()


async def steady(client: Client, bootstrap: str, clock: Clock) -> None:
    """Produce a fifth of its quota at a constant rate, in a thread because kafka-python blocks."""
    stop, loop = Event(), asyncio.get_running_loop()
    outcome: Future[None] = Future()

    def note(sent_ms: float, _: object) -> None:
        exchange = Exchange(sent_ms, clock.monotonic_ms(), _STEADY_RECORD_BYTES, 0)
        loop.call_soon_threadsafe(client.trace.add, exchange)

    def run() -> None:
        try:
            _send_steadily(client.name, bootstrap, clock, stop, note)
            outcome.set_result(None)
        except Exception as error:
            outcome.set_exception(error)

    # A daemon thread: reconnecting would block the end of the process for half a minute.
    Thread(target=run, daemon=True).start()
    ended = asyncio.wrap_future(outcome)
    try:
        await asyncio.shield(ended)
    finally:
        stop.set()
        done, _ = await asyncio.wait([ended], timeout=_STOP_TIMEOUT_S)
        for future in done:
            future.exception()  # otherwise asyncio logs that it was never retrieved


RUN = {run.__name__: run for run in (bronze, gold, reader, steady)}  # by client id; each runs until it is cancelled


async def _produce(client: Client, bootstrap: str, clock: Clock, value: bytes) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client.name)
    async with _stopping(producer):
        await producer.start()
        _note_exchanges(client, clock, producer.client, _PRODUCE_KEY, lambda _: len(value))
        while True:
            await producer.send_and_wait(client.name, value, partition=0)


def _send_steadily(name: str, bootstrap: str, clock: Clock, stop: Event, note: Callable[[float, object], None]) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=name)
    value = bytes(_STEADY_RECORD_BYTES)
    errors: list[Exception] = []
    try:
        while not stop.wait(_STEADY_EVERY_S) and not errors:
            # Not awaited: a thread that waits for a response does not notice `stop`.
            sent = producer.send(name, value, partition=0)
            sent.add_callback(partial(note, clock.monotonic_ms()))
            sent.add_errback(errors.append)
    finally:
        producer.close(timeout=_STOP_TIMEOUT_S)
    for error in errors:
        raise error


def _note_exchanges(
    client: Client, clock: Clock, library: AIOKafkaClient, api_key: int, payload_bytes: Callable[[_Response], int]
) -> None:
    send = library.send

    async def noting_send(node_id: int, request: _Request, **options: object) -> _Response:
        sent_ms = clock.monotonic_ms()
        response: _Response = await send(node_id, request, **options)
        if api_key == request.API_KEY:
            received_ms = response.throttle_time_ms
            client.trace.add(Exchange(sent_ms, clock.monotonic_ms(), payload_bytes(response), received_ms))
        return response

    library.send = noting_send


def _fetched_bytes(response: _Response) -> int:
    # The last field of a partition contains its records; without records, it is None or empty.
    records = [partition[-1] for _, partitions in response.topics for partition in partitions]
    return sum(len(batches) for batches in records if isinstance(batches, bytes))


@asynccontextmanager
async def _stopping(library: AIOKafkaProducer | AIOKafkaConsumer) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await library.stop()
