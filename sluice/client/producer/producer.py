"""An asyncio producer with the configuration and the behaviour of Kafka's KafkaProducer.

    async with Producer({"bootstrap.servers": "127.0.0.1:9092", "linger.ms": 20}) as producer:
        sent = await producer.send("orders", b"42", key=b"customer-7")     # returns when it is in a batch
        print((await sent).offset)                                         # ... and when it is written

`send` waits at most `max.block.ms` for metadata and for free `buffer.memory`. Its future completes within
`delivery.timeout.ms` of the creation of the record's batch (KIP-91), with a RecordMetadata or an exception of
`sluice.client.errors`. The futures of a partition complete in the order of `send`.

Keys and values are bytes or text, which is sent as UTF-8; the application serializes the rest. Different on purpose:
`send` raises all its errors, where Kafka puts some of them into the future. An internal error closes the producer and
fails all records, where Kafka's producer logs it and continues.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random  # noqa: TID251  (the producer's only source of randomness, unless one is given)

from sluice.client.backoff import Uniform, new_random
from sluice.client.committed_offsets import GroupMetadata, OffsetAndMetadata
from sluice.client.config import ClientConfig, Given, Profile, producer_config
from sluice.client.errors import KafkaException, TimeoutException, exception_of
from sluice.client.metadata.cluster import Partitions, TopicPartition
from sluice.client.network.asyncio_network import AsyncNetwork, yield_to_loop
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import Clock
from sluice.errors import ArgumentError
from sluice.protocol.records.compression import NAMES
from sluice.text.arguments import Duration, Index, Timestamp, check_argument, checks_arguments

from .batch import Codec, Header, RecordMetadata, size_upper_bound
from .buffer_pool import BufferPool
from .metadata import ProducerMetadata
from .partitioner import partition_for_key
from .record_accumulator import AccumulatorSettings, RecordAccumulator
from .sender import Sender, SenderSettings
from .transaction_manager import TransactionManager
from .transaction_requests import Result
from .transactions import Transactions

_Record = tuple[int, bytes | None, bytes | None, Sequence[Header], asyncio.Future[RecordMetadata]]

_MESSAGE_TOO_LARGE = 10
# Metadata keeps an unused topic for minutes, so not every record needs to mark its topic.
_TOUCH_INTERVAL_MS = 1000
_Bytes = bytes | bytearray | memoryview | str | None


@partial(checks_arguments, but=("send",))
class Producer:
    """A producer, to be used in `async with`, in one event loop."""

    def __init__(
        self, config: Given, *, profile: Profile = "kafka", random: Random | None = None, clock: Clock | None = None
    ) -> None:
        """Validate the configuration; `async with` connects.

        Args:
            config: Kafka's producer properties.
            profile: "kip" follows the KIP texts where Kafka differs.
            random: Source of jitter and of partitions.
            clock: The event loop's by default.

        Raises:
            ConfigError: For an unknown property or an invalid value.
        """
        self.config = producer_config(config, profile)
        self.config.ensure_supported()
        self._random = random or new_random()
        self._given_clock = clock
        self._max_block_ms = self.config.integer("max.block.ms")
        self._max_request_size = self.config.integer("max.request.size")
        most = min(self._max_request_size, self.config.integer("buffer.memory"))
        self._always_fits = most - size_upper_bound(None, None, ())  # bytes of key and value together
        self._ignores_keys = self.config.boolean("partitioner.ignore.keys")
        self._is_started = False
        self._is_closing = True
        self._used_ms: dict[str, int] = {}  # wall-clock time at which metadata marked a topic as used

    async def __aenter__(self) -> "Producer":
        if self._is_started:
            raise KafkaException("a producer can be started only once; create another one")
        self._is_started, self._is_closing = True, False
        config, uniform = self.config, self._random.uniform
        in_flight = config.integer("max.in.flight.requests.per.connection")
        self._loop = asyncio.get_running_loop()
        self._metadata = ProducerMetadata(
            config.retry_backoff(uniform),
            config.integer("metadata.max.age.ms"),
            config.integer("metadata.max.idle.ms"),
            equivalent_backoff=config.equivalent_response_backoff(uniform),
        )
        self._network = AsyncNetwork.open(
            config, self._metadata, max_in_flight=in_flight, random=self._random, clock=self._given_clock
        )
        self._clock = self._network.clock
        transactions = _transactions(config, uniform)
        self._transactions = transactions if isinstance(transactions, Transactions) else None
        self._pool = BufferPool(config.integer("buffer.memory"))
        self._accumulator = RecordAccumulator(
            _accumulator_settings(config),
            self._pool,
            backoff_at(RetrySite.PRODUCER_BATCH, config, uniform),
            self._random,
            transactions,
        )
        settings = SenderSettings(
            acks=int(config.text("acks")),
            retries=config.integer("retries"),
            max_request_size=self._max_request_size,
            request_timeout_ms=config.integer("request.timeout.ms"),
            keeps_order=in_flight == 1,
        )
        self._sender = Sender(settings, self._accumulator, self._metadata, self._network.client, transactions)
        self._running = self._network.start("the sender", self._run)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self.close(timeout_ms=None if kind is None else 0)

    async def send(
        self,
        topic: str,
        value: _Bytes = None,
        *,
        key: _Bytes = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> asyncio.Future[RecordMetadata]:
        """Append a record to a batch; return a future of its metadata.

        Raises:
            ArgumentError: If an argument has a wrong type.
            TimeoutException: If metadata or memory is not available within `max.block.ms`.
            RecordTooLargeException: If the record exceeds `max.request.size` or `buffer.memory`.
            KafkaException: If the topic is invalid or not authorized, or the producer is closed.
        """
        if self._is_closing or self._network.client.failure is not None:
            self._ensure_open()
        if type(topic) is not str or partition is not None or timestamp_ms is not None or headers:
            headers = _check_record(topic, partition, timestamp_ms, headers)
        if type(value) is not bytes:
            value = _as_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = _as_bytes("key", key)
        if self._transactions is not None:
            self._transactions.ensure_in_transaction()
        if headers or len(value or b"") + len(key or b"") > self._always_fits:
            self._ensure_fits(size_upper_bound(key, value, headers))
        wall_ms = self._clock.wall_ms()
        if not 0 <= wall_ms - self._used_ms.get(topic, 0) < _TOUCH_INTERVAL_MS:
            self._used_ms[topic] = wall_ms
            self._metadata.add(topic, self._clock.monotonic_ms())
        deadline_ms = None
        partitions = self._metadata.cluster.topics.get(topic)
        if not partitions or (partition is not None and partition not in partitions):
            deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
            partitions = await self._partitions_of(topic, partition, deadline_ms)
        timestamp = wall_ms if timestamp_ms is None else timestamp_ms
        # The same as `create_future`, without another call for each record.
        future: asyncio.Future[RecordMetadata] = asyncio.Future(loop=self._loop)
        number = partition
        if number is None and key is not None and not self._ignores_keys:
            number = partition_for_key(key, len(partitions))
        index = self._accumulator.sticky_partition(topic, partitions) if number is None else number
        batch = self._accumulator.last_batch(topic, index)
        room = 0 if batch is None else batch.room
        if batch is None or not batch.try_append(timestamp, key, value, headers, future):
            record = timestamp, key, value, headers, future
            deadline_ms = deadline_ms or self._clock.monotonic_ms() + self._max_block_ms
            index = await self._append(topic, number, partitions, deadline_ms, record)
        elif number is None:
            self._accumulator.appended(batch.partition, room - batch.room, partitions)
        elif batch.room > 0 and self._transactions is None:
            return future
        if self._transactions is not None:
            self._transactions.add_partition(TopicPartition(topic, index))
        if batch is None or batch.is_full:
            self._network.wakeup()
            await yield_to_loop()  # a busy send loop must not block the sender
        return future

    async def _append(
        self, topic: str, number: int | None, partitions: Partitions, deadline_ms: float, record: _Record
    ) -> int:
        """Append to a batch, a new one if needed, of partition `number` or the sticky one; return the partition."""
        accumulator, memory = self._accumulator, 0
        while True:
            index = accumulator.sticky_partition(topic, partitions) if number is None else number
            name = TopicPartition(topic, index)
            batch = accumulator.last_batch(topic, index)
            room = 0 if batch is None else batch.room
            if batch is not None and batch.try_append(*record):
                self._pool.give_back(memory)
                break
            if not memory:
                memory = accumulator.new_batch_bytes(*record[1:4])
                if memory > self._pool.total:
                    raise KafkaException(f"a batch of {memory} bytes exceeds buffer.memory={self._pool.total}")
                if not self._pool.take(memory):
                    await self._wait_for_memory(memory, deadline_ms)
                    continue  # there may be another batch now, or another sticky partition
            batch = accumulator.add_batch(name, memory, self._clock.monotonic_ms())
            room = batch.room
            batch.try_append(*record)
            break
        if number is None:
            accumulator.appended(name, room - batch.room, partitions)
        return index

    # -- transactions --------------------------------------------------------------------------------------------------

    async def init_transactions(self) -> None:
        """Fence earlier producers with this `transactional.id`, and complete their transactions.

        Raises:
            TimeoutException: After `max.block.ms`, as in the other methods; call it again to continue.
        """
        await self._result_of(self._transactional.init_transactions())

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._transactional.begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit a consumer's offsets as part of the transaction.

        With the leader epoch of the last record, an isolated former leader cannot reset a later consumer (KIP-320).
        """
        await self._result_of(self._transactional.send_offsets(offsets, group))

    async def commit_transaction(self) -> None:
        """Send all records, and commit; raise KafkaException if the transaction must be aborted."""
        await self._result_of(self._transactional.commit())

    async def abort_transaction(self) -> None:
        """Abort the transaction; records not yet sent fail."""
        self._expect_failures()
        await self._result_of(self._transactional.abort())

    def _expect_failures(self) -> None:
        """Mark futures as handled, so that asyncio does not report their exceptions."""
        for batch in self._accumulator.incomplete:
            for delivery in batch.deliveries:
                if isinstance(delivery, asyncio.Future):
                    delivery.add_done_callback(_retrieve_exception)

    @property
    def _transactional(self) -> Transactions:
        self._ensure_open()
        if self._transactions is None:
            raise KafkaException("transactional.id is not set")
        return self._transactions

    async def _result_of(self, result: Result) -> None:
        ended: asyncio.Future[None] = self._loop.create_future()
        result.listen(partial(_grant, ended))
        self._network.wakeup()
        await asyncio.wait([ended], timeout=self._max_block_ms / 1e3)
        if not ended.done():
            raise TimeoutException(
                f"the operation did not complete within {self._max_block_ms} ms; call it again to continue"
            )
        if result.error is not None:
            raise result.error

    async def partitions_for(self, topic: str) -> Sequence[int]:
        """Return the partition indexes of a topic; raise as `send` does."""
        self._ensure_open()
        deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
        return sorted(self._metadata.cluster.topics.get(topic) or await self._partitions_of(topic, None, deadline_ms))

    def metrics(self, node_id: int | None = None) -> dict[str, float]:
        """Return KIP-13's `produce-throttle-time-avg` and `-max` in ms, of one node or all."""
        if not self._is_started:
            self._ensure_open()
        now_ms = self._clock.monotonic_ms()
        return self._network.client.throttle_times.metrics("produce", now_ms, node_id)

    async def flush(self) -> None:
        """Send all records without lingering; return when they are complete, within `delivery.timeout.ms`."""
        if not self._is_started:
            self._ensure_open()
        async with self._flushing():
            for batch in list(self._accumulator.incomplete):
                for delivery in batch.deliveries:
                    if isinstance(delivery, asyncio.Future) and not delivery.done():
                        await asyncio.wait([delivery])

    async def close(self, timeout_ms: Duration | None = None) -> None:
        """Send pending records within `timeout_ms`, abort an open transaction, and close all connections."""
        if self._is_closing:
            return
        self._is_closing = self._accumulator.is_closing = True
        aborting = None
        if self._transactions is not None and self._transactions.is_open:
            self._expect_failures()
            aborting = self._transactions.abort()
        self._network.wakeup()
        waiting = self._loop.create_task(self._until_done(aborting))
        await asyncio.wait([waiting], timeout=None if timeout_ms is None else timeout_ms / 1e3)
        waiting.cancel()
        self._running.cancel()
        self._accumulator.abort(KafkaException("the producer was closed before the record was sent"))
        await asyncio.gather(waiting, self._running, return_exceptions=True)
        await self._network.close()

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                await self._network.wait(self._sender.run_once(self._clock.monotonic_ms()))
        except Exception as error:
            self._network.client.fail("the sender", error)
            assert self._network.client.failure is not None
            self._accumulator.abort(self._network.client.failure)
            if self._transactions is not None:
                self._transactions.fail(self._network.client.failure)
            self._pool.release_waiters()

    async def _until_done(self, aborting: Result | None) -> None:
        if aborting is not None:
            await self._result_of(aborting)
        while self._sender.has_work:
            await self.flush()
            if self._sender.has_work:  # requests without pending batches
                await self._network.wait()

    @asynccontextmanager
    async def _flushing(self) -> AsyncIterator[None]:
        self._accumulator.flushes += 1
        self._network.wakeup()
        try:
            yield
        finally:
            self._accumulator.flushes -= 1

    async def _partitions_of(self, topic: str, partition: int | None, deadline_ms: float) -> Partitions:
        metadata = self._metadata
        while True:
            metadata.add(topic, self._clock.monotonic_ms())
            version = metadata.request_update_for_topic(topic)
            self._network.wakeup()
            try:
                await self._network.metadata_after(version, deadline_ms)
            except TimeoutException:
                raise TimeoutException(self._unknown_partition(topic, partition)) from None
            self._ensure_open()
            metadata.raise_topic_error(topic)
            partitions = metadata.cluster.topics.get(topic)
            if partitions and (partition is None or partition in partitions):
                return partitions
            if self._clock.monotonic_ms() >= deadline_ms:
                raise TimeoutException(self._unknown_partition(topic, partition))

    def _unknown_partition(self, topic: str, partition: int | None) -> str:
        subject = f"Topic {topic}" if partition is None else f"Partition {partition} of topic {topic}"
        return f"{subject} not present in metadata after {self._max_block_ms} ms."

    async def _wait_for_memory(self, size: int, deadline_ms: float) -> None:
        granted: asyncio.Future[None] = self._loop.create_future()
        ticket = self._pool.queue(size, partial(_grant, granted))
        self._network.wakeup()  # while memory is exhausted, batches do not linger
        timeout_s = max(0, deadline_ms - self._clock.monotonic_ms()) / 1e3
        try:
            await asyncio.wait([granted], timeout=timeout_s)
            if not granted.done():
                raise TimeoutException(
                    f"Failed to allocate {size} bytes within the configured max blocking time {self._max_block_ms} ms. "
                    f"Total memory: {self._pool.total} bytes. Available memory: {self._pool.available} bytes."
                )
            self._ensure_open()
        except BaseException:  # also cancelled, or closed
            self._pool.leave(ticket)
            raise

    def _ensure_open(self) -> None:
        if not self._is_started:
            raise KafkaException("the producer is not started; use it within `async with`")
        self._network.raise_failure()
        if self._is_closing:
            raise KafkaException("the producer is closed")

    def _ensure_fits(self, size: int) -> None:
        for name, most in (("max.request.size", self._max_request_size), ("buffer.memory", self._pool.total)):
            if size > most:
                message = (
                    f"The message is {size} bytes when serialized which is larger than {most}, which is the value "
                )
                raise exception_of(_MESSAGE_TOO_LARGE, f"{message}of the {name} configuration.")


def _check_record(
    topic: object, partition: object, timestamp_ms: object, headers: Sequence[Header]
) -> Sequence[Header]:
    """Raise ArgumentError for a wrong type; return the headers with values in bytes."""
    check_argument("send", "topic", topic, str)
    check_argument("send", "partition", partition, Index | None)
    check_argument("send", "timestamp_ms", timestamp_ms, Timestamp | None)
    check_argument("send", "headers", headers, Sequence[tuple[str, _Bytes]])
    return [(name, _as_bytes("headers", value)) for name, value in headers]


def _as_bytes(name: str, value: object) -> bytes | None:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"send: {name}: expected text that UTF-8 can encode, got {value!r}") from None
    check_argument("send", name, value, _Bytes)
    return None if value is None else bytes(value)  # type: ignore[call-overload]  # checked above


def _transactions(config: ClientConfig, uniform: Uniform) -> TransactionManager | None:
    backoff = backoff_at(RetrySite.TRANSACTIONAL_REQUEST, config, uniform)
    transactional_id = config.text_or_none("transactional.id")
    if transactional_id is not None:
        return Transactions(backoff, transactional_id, config.integer("transaction.timeout.ms"))
    return TransactionManager(backoff) if config.boolean("enable.idempotence") else None


def _accumulator_settings(config: ClientConfig) -> AccumulatorSettings:
    name = config.text("compression.type")
    level = f"compression.{name}.level"
    is_leveled = name in ("gzip", "lz4", "zstd") and config.is_set(level)
    return AccumulatorSettings(
        batch_size=max(1, config.integer("batch.size")),
        linger_ms=config.integer("linger.ms"),
        delivery_timeout_ms=config.integer("delivery.timeout.ms"),
        codec=Codec(NAMES.index(name), config.integer(level) if is_leveled else None),
        partitions_by_load=config.boolean("partitioner.adaptive.partitioning.enable"),
        availability_timeout_ms=config.integer("partitioner.availability.timeout.ms"),
    )


def _retrieve_exception(future: asyncio.Future[RecordMetadata]) -> None:
    if not future.cancelled():
        future.exception()


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():  # the waiter may have been cancelled
        granted.set_result(None)
