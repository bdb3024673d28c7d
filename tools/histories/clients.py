"""The same producer and consumer interface over sluice's client and aiokafka."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Any, Protocol

import aiokafka
import aiokafka.abc
from aiokafka.errors import IllegalOperation, KafkaError, NoOffsetForPartitionError

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer import Consumer, RebalanceListener, TopicPartition
from sluice.client.errors import TimeoutException
from sluice.client.producer import Producer
from sluice.errors import SluiceError

TOPIC = "orders"  # that of the catalogue's scenarios
# Errors of operations; any other exception is a defect and ends the run.
# aiokafka raises AssertionError for calls after a fatal error.
ERRORS = (SluiceError, KafkaError, IllegalOperation, AssertionError, TimeoutError, OSError)
REQUEST_TIMEOUT_MS = 2000
DELIVERY_TIMEOUT_MS = 6000
TRANSACTION_TIMEOUT_MS = 8000
SESSION_TIMEOUT_MS = 6000  # the minimum of the broker's default
_CLOSE_S = 5.0
# No request of a group member times out within a run: the copy of a commit on an earlier connection may be handled
# after a later commit, in Kafka as well, and the committed offset goes back.
GROUP_REQUEST_TIMEOUT_MS = 120_000
API_TIMEOUT_MS = 5000
_POLL_MS = 300
# The clients' default ids contain the number of clients of this process, and member ids begin with them: assignments
# would depend on earlier runs.
CLIENT_ID = "app"

Records = dict[int, list[tuple[int, int]]]  # offsets and values by partition


class ProducerClient(Protocol):
    """A producer of either client."""

    async def start(self) -> None: ...

    async def send(self, partition: int, key: str, value: int) -> "asyncio.Future[Any]":
        """Return a future whose result has an `offset`."""

    async def init_transactions(self) -> None: ...

    async def begin(self) -> None: ...

    async def end(self, *, commits: bool) -> None: ...

    async def close(self) -> None: ...


class ConsumerClient(Protocol):
    """A consumer of either client."""

    # aiokafka ignores the error of a whole OffsetFetch response, and returns that there is no committed offset. Then it
    # also resets its positions, and commits lower ones.
    reports_committed: bool
    # aiokafka sends no leader epochs (KIP-320), so an isolated former leader can return an old end offset.
    fences_leaders: bool

    async def start(self) -> None: ...

    async def poll(self) -> Records: ...

    async def end_offset(self, partition: int) -> int: ...

    async def commit(self, offsets: Mapping[int, int]) -> None: ...

    async def committed(self, partition: int) -> int | None: ...

    def assigned(self) -> Collection[int]: ...

    async def close(self) -> None: ...


async def until_ended(call: Callable[[], Any]) -> None:
    """Repeat a call of sluice's producer while it times out, as Kafka's documentation requires."""
    while True:
        try:
            await call()
        except TimeoutException as error:
            if "call it again" not in str(error):
                raise
        else:
            return


class SluiceProducer:
    def __init__(self, bootstrap: str, random: Random, **config: str | int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": CLIENT_ID,
                "request.timeout.ms": REQUEST_TIMEOUT_MS,
                "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
                "max.block.ms": DELIVERY_TIMEOUT_MS,
                **config,
            },
            random=random,
        )

    async def start(self) -> None:
        await self._producer.__aenter__()

    async def send(self, partition: int, key: str, value: int) -> "asyncio.Future[Any]":
        return await self._producer.send(TOPIC, b"%d" % value, key=key.encode(), partition=partition)

    async def init_transactions(self) -> None:
        await until_ended(self._producer.init_transactions)

    async def begin(self) -> None:
        self._producer.begin_transaction()

    async def end(self, *, commits: bool) -> None:
        await until_ended(self._producer.commit_transaction if commits else self._producer.abort_transaction)

    async def close(self) -> None:
        await self._producer.close(_CLOSE_S * 1000)


class AiokafkaProducer:
    def __init__(self, bootstrap: str, random: Random, **config: Any) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id=CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS, **config
        )

    async def start(self) -> None:
        await self._producer.start()

    async def send(self, partition: int, key: str, value: int) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = await self._producer.send(
            TOPIC, b"%d" % value, key=key.encode(), partition=partition
        )
        return future

    async def init_transactions(self) -> None:
        """Do nothing: `start` has initialized them."""

    async def begin(self) -> None:
        await self._producer.begin_transaction()

    async def end(self, *, commits: bool) -> None:
        await (self._producer.commit_transaction() if commits else self._producer.abort_transaction())

    async def close(self) -> None:
        async with asyncio.timeout(_CLOSE_S):
            await self._producer.stop()


class _SluiceListener(RebalanceListener):
    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._changed()

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._changed()


class SluiceConsumer:
    reports_committed = fences_leaders = True

    def __init__(
        self,
        bootstrap: str,
        random: Random,
        partitions: Iterable[int],
        changed: Callable[[], None],
        *,
        committed_only: bool,
        group: str | None = None,
    ) -> None:
        given: dict[str, str | int] = {
            "bootstrap.servers": bootstrap,
            "client.id": CLIENT_ID,
            # A reader whose position is lost ends: a reset would look like records in a wrong order.
            "auto.offset.reset": "none" if group is None else "earliest",
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "default.api.timeout.ms": API_TIMEOUT_MS,
            "request.timeout.ms": REQUEST_TIMEOUT_MS,
        }
        if group is not None:
            given |= {
                "group.id": group,
                "enable.auto.commit": "false",
                "request.timeout.ms": GROUP_REQUEST_TIMEOUT_MS,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 1000,
            }
        self._consumer = Consumer(given, random=random)
        self._changed = changed
        self._group = group
        self._partitions = [TopicPartition(TOPIC, index) for index in partitions]
        self._epochs: dict[int, int] = {}  # leader epochs of the last records

    async def start(self) -> None:
        await self._consumer.__aenter__()
        if self._group is None:
            self._consumer.assign(self._partitions)
            self._consumer.seek_to_beginning(self._partitions)
        else:
            self._consumer.subscribe([TOPIC], listener=_SluiceListener(self._changed))

    async def poll(self) -> Records:
        found: Records = {}
        for record in await self._consumer.poll(_POLL_MS):
            found.setdefault(record.partition, []).append((record.offset, int(record.value or b"")))
            self._epochs[record.partition] = record.leader_epoch
        return found

    def assign(self, partitions: Iterable[int]) -> None:
        self._consumer.assign([TopicPartition(TOPIC, index) for index in partitions])

    def seek(self, offsets: Mapping[int, int]) -> None:
        for index, offset in offsets.items():
            self._consumer.seek(TopicPartition(TOPIC, index), offset)

    async def position(self, partition: int) -> int:
        return await self._consumer.position(TopicPartition(TOPIC, partition))

    async def end_offset(self, partition: int) -> int:
        name = TopicPartition(TOPIC, partition)
        return (await self._consumer.end_offsets([name]))[name]

    async def commit(self, offsets: Mapping[int, int]) -> None:
        await self._consumer.commit(
            {
                TopicPartition(TOPIC, index): OffsetAndMetadata(offset, "", self._epochs[index])
                for index, offset in offsets.items()
            }
        )

    async def committed(self, partition: int) -> int | None:
        name = TopicPartition(TOPIC, partition)
        found = (await self._consumer.committed([name]))[name]
        return None if found is None else found.offset

    def assigned(self) -> Collection[int]:
        return [name.partition for name in self._consumer.assignment()]

    async def close(self) -> None:
        await self._consumer.close(_CLOSE_S * 1000)


class _AiokafkaListener(aiokafka.abc.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def on_partitions_revoked(self, revoked: object) -> None:
        self._changed()

    def on_partitions_assigned(self, assigned: object) -> None:
        self._changed()


class AiokafkaConsumer:
    reports_committed = fences_leaders = False

    def __init__(
        self,
        bootstrap: str,
        random: Random,
        partitions: Iterable[int],
        changed: Callable[[], None],
        *,
        committed_only: bool,
        group: str | None = None,
    ) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            group_id=group,
            enable_auto_commit=False,
            # Without epochs, an isolated former leader would reset the consumer, in Kafka as well.
            auto_offset_reset="none",
            isolation_level="read_committed" if committed_only else "read_uncommitted",
            request_timeout_ms=REQUEST_TIMEOUT_MS if group is None else GROUP_REQUEST_TIMEOUT_MS,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=1000,
        )
        self._changed = changed
        self._group = group
        self._partitions = [aiokafka.TopicPartition(TOPIC, index) for index in partitions]

    async def start(self) -> None:
        await self._consumer.start()
        if self._group is None:
            self._consumer.assign(self._partitions)
            async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
                await self._consumer.seek_to_beginning(*self._partitions)
        else:
            self._consumer.subscribe([TOPIC], listener=_AiokafkaListener(self._changed))

    async def poll(self) -> Records:
        try:
            found = await self._consumer.getmany(timeout_ms=_POLL_MS)
        except NoOffsetForPartitionError as error:
            (partition,) = error.args
            async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
                await self._consumer.seek_to_beginning(partition)
            return {}
        return {name.partition: [(one.offset, int(one.value)) for one in records] for name, records in found.items()}

    async def end_offset(self, partition: int) -> int:
        name = aiokafka.TopicPartition(TOPIC, partition)
        async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
            return int((await self._consumer.end_offsets([name]))[name])

    async def commit(self, offsets: Mapping[int, int]) -> None:
        async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
            await self._consumer.commit(
                {aiokafka.TopicPartition(TOPIC, index): offset for index, offset in offsets.items()}
            )

    async def committed(self, partition: int) -> int | None:
        async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
            found = await self._consumer.committed(aiokafka.TopicPartition(TOPIC, partition))
        return None if found is None else int(found)

    def assigned(self) -> Collection[int]:
        return [name.partition for name in self._consumer.assignment()]

    async def close(self) -> None:
        async with asyncio.timeout(_CLOSE_S):
            await self._consumer.stop()
