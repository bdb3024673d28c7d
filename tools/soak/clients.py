"""The load of a soak: clients of every kind that come and go, topics that are created and deleted, and faults."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random

import aiokafka

from sluice.client.admin import AdminClient, NewTopic
from sluice.client.consumer import Consumer
from sluice.client.producer import Producer
from tools.histories.clients import ERRORS

TOPIC = "orders"
PARTITIONS = 3
# A log reaches these sizes, and producers expire, within the first tenth of the shortest soak.
PROPERTIES = (
    "group.initial.rebalance.delay.ms=0", "log.retention.bytes=50000", "log.segment.bytes=20000",
    "log.retention.check.interval.ms=5000", "offsets.topic.segment.bytes=1048576",
    "transaction.state.log.segment.bytes=1048576", "offsets.topic.num.partitions=2",
    "transaction.state.log.num.partitions=2", "log.cleaner.backoff.ms=5000", "producer.id.expiration.ms=60000",
    "producer.id.expiration.check.interval.ms=5000",
)  # fmt: skip
_APIS = ("Produce", "Fetch", "Metadata", "Heartbeat", "OffsetCommit", "JoinGroup", "EndTxn")
_ACTIONS: tuple[Mapping[str, object], ...] = (
    {"kind": "delay", "ms": 300},
    {"kind": "close"},
    {"kind": "error"},
    {"kind": "truncate"},
    {"kind": "black-hole"},
    {"kind": "throttle", "throttle_time_ms": 200},
)
_LIFE_S = (20.0, 90.0)  # of a client
# aiokafka waits for requests that a fault rule discards, each up to its request timeout of 40 s. A consumer whose stop
# is cancelled keeps its connections and tasks.
_STOP_S = 300.0
_PATIENCE: dict[str, str | int] = {"request.timeout.ms": 3000, "delivery.timeout.ms": 9000, "max.block.ms": 9000}

Fail = Callable[[Mapping[str, object]], Awaitable[None]]


class Load:
    """The clients of one soak."""

    def __init__(self, bootstrap: str, random: Random, until_s: float, fail: Fail) -> None:
        self.operations = 0
        self._bootstrap = bootstrap
        self._random = random
        self._until_s = until_s
        self._fail = fail

    async def run(self) -> None:
        """Run all clients until the end."""
        async with AdminClient({"bootstrap.servers": self._bootstrap}) as admin:
            (await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])).all()
        lives = [
            *(lambda: self._produce({"acks": "all"}) for _ in range(2)),
            lambda: self._produce({"acks": "1", "enable.idempotence": "false"}),
            self._transact,
            *(lambda: self._consume("group") for _ in range(3)),
            self._consume_with_aiokafka,
            self._create_and_delete,
            self._inject,
        ]
        await asyncio.gather(*(self._repeat(life) for life in lives))

    @property
    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._until_s

    async def _repeat(self, life: Callable[[], Awaitable[None]]) -> None:
        """Replace a client that has ended, until the end."""
        while not self._is_over:
            with suppress(*ERRORS):
                await life()
            await asyncio.sleep(self._random.uniform(0.5, 2))

    def _end_of_life_s(self) -> float:
        return min(self._until_s, asyncio.get_running_loop().time() + self._random.uniform(*_LIFE_S))

    async def _until(self, end_s: float, mean_pause_s: float, step: Callable[[], Awaitable[object]]) -> None:
        while asyncio.get_running_loop().time() < end_s:
            await step()
            self.operations += 1
            await asyncio.sleep(self._random.expovariate(1 / mean_pause_s))

    def _config(self, **more: str | int) -> dict[str, str | int]:
        number = self._random.randrange(1000)  # more client ids than have metrics of their own
        return {"bootstrap.servers": self._bootstrap, "client.id": f"client-{number}", **more}

    async def _produce(self, config: Mapping[str, str]) -> None:
        given = self._config(**_PATIENCE) | dict(config)
        async with Producer(given, random=self._random) as producer:
            await self._until(
                self._end_of_life_s(),
                1,
                lambda: producer.send(TOPIC, self._random.randbytes(100), partition=self._random.randrange(PARTITIONS)),
            )

    async def _transact(self) -> None:
        given = self._config(**_PATIENCE) | {"transactional.id": f"id-{self._random.randrange(5)}"}
        async with Producer(given, random=self._random) as producer:
            await producer.init_transactions()

            async def transaction() -> None:
                producer.begin_transaction()
                for _ in range(3):
                    await producer.send(TOPIC, b"in a transaction")
                if self._random.random() < 0.8:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()

            await self._until(self._end_of_life_s(), 5, transaction)

    async def _consume(self, group: str) -> None:
        given = self._config() | {"group.id": group, "fetch.max.wait.ms": 2000, "auto.commit.interval.ms": 2000}
        async with Consumer(given, random=self._random) as consumer:
            consumer.subscribe([TOPIC])
            await self._until(self._end_of_life_s(), 1, lambda: consumer.poll(2000))

    async def _consume_with_aiokafka(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, bootstrap_servers=self._bootstrap, group_id="aiokafka", fetch_max_wait_ms=2000
        )
        try:
            await consumer.start()
            await self._until(self._end_of_life_s(), 1, lambda: consumer.getmany(timeout_ms=2000))
        finally:
            await _stop(consumer)

    async def _create_and_delete(self) -> None:
        async with AdminClient(self._config()) as admin:
            name = f"topic-{self._random.randrange(20)}"
            (await admin.create_topics([NewTopic(name, 2, 1)])).all()
            async with Producer(self._config(**_PATIENCE), random=self._random) as producer:
                await producer.send(name, bytes(1000))
            (await admin.delete_topics([name])).all()
            self.operations += 1
        await asyncio.sleep(self._random.uniform(5, 15))

    async def _inject(self) -> None:
        action = dict(self._random.choice(_ACTIONS))
        if action["kind"] == "error":
            action["code"] = "NOT_LEADER_OR_FOLLOWER"
        await self._fail({"action": action, "api": self._random.choice(_APIS), "times": self._random.randint(1, 3)})
        await asyncio.sleep(self._random.uniform(10, 30))


async def _stop(consumer: aiokafka.AIOKafkaConsumer) -> None:
    """Stop a consumer; if its coordination has failed, close the rest, which aiokafka leaves open."""
    try:
        async with asyncio.timeout(_STOP_S):
            await consumer.stop()
    except (*ERRORS, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # otherwise aiokafka passes on the cancellation of its own task
        coordinator, fetcher = consumer._coordinator, consumer._fetcher
        closes = [consumer._client.close]
        if fetcher is not None:
            closes.append(fetcher.close)
        if coordinator is not None:
            closes += [coordinator._stop_heartbeat_task, coordinator._stop_commit_offsets_refresh_task]
        for close in closes:
            with suppress(*ERRORS):
                await close()
