"""The processes of a run: producers and consumers that perform random operations and record them.

A client that fails is closed, and its successor continues as a new process.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any

from .clients import (
    ERRORS,
    TRANSACTION_TIMEOUT_MS,
    AiokafkaConsumer,
    AiokafkaProducer,
    ConsumerClient,
    ProducerClient,
    SluiceConsumer,
    SluiceProducer,
)
from .consumer_group import RELEASES, Kip848Consumer
from .history import AnyOperation, Commit, Committed, End, EndOffset, Guarantee, History, Init, Poll, Send

PARTITIONS = 3
# Each key belongs to one partition.
_KEYS = ("a", "b", "c", "d", "e", "f")
# A client that fails at once must not fail thousands of times in a run.
_PAUSE_S = 0.5
# Longest time to wait for the outcome of a record, above any delivery timeout; aiokafka loses some outcomes.
_OUTCOME_S = 15.0


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1e3


@dataclass
class Workload:
    """The context of all processes of a run."""

    bootstrap: str
    history: History
    random: Random
    until_s: float
    release: str

    def __post_init__(self) -> None:
        self.values = count()
        self.transactions = count()
        self.sessions = count()

    @property
    def is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.until_s

    def record(self, operation: AnyOperation) -> None:
        self.history.operations.append(operation)

    async def attempt(self, operation: AnyOperation, call: Awaitable[Any]) -> Any:
        """Record an operation whose error leaves its effect unknown."""
        self.record(operation)
        result = await call
        operation.complete(now_ms())
        return result

    async def pause(self, mean_s: float) -> None:
        await asyncio.sleep(self.random.expovariate(1 / mean_s))


async def instances(workload: Workload, name: str, run: Callable[[str], Awaitable[None]]) -> None:
    """Run one instance of a client after the other."""
    for number in count():
        if workload.is_over:
            return
        try:
            await run(f"{name}.{number}")
        except ERRORS as error:
            workload.history.failures.append((now_ms(), f"{name}.{number} ended: {error!r:.200}"))
        await workload.pause(_PAUSE_S)


async def close(client: ProducerClient | ConsumerClient) -> None:
    with suppress(*ERRORS):  # if a broker is unreachable; nothing depends on a clean end
        await client.close()


# -- producers ---------------------------------------------------------------------------------------------------------


def send_outcome(send: Send, future: "asyncio.Future[Any]") -> None:
    if not future.cancelled() and future.exception() is None:
        send.offset = future.result().offset
        send.complete(now_ms())


async def send(
    workload: Workload, process: str, client: ProducerClient, guarantee: Guarantee, transaction: int | None = None
) -> "asyncio.Future[Any]":
    key = workload.random.choice(_KEYS)
    operation = Send(
        process=process,
        invoked_ms=now_ms(),
        value=next(workload.values),
        key=key,
        partition=_KEYS.index(key) % PARTITIONS,
        guarantee=guarantee,
        transaction=transaction,
    )
    workload.record(operation)
    future = await client.send(operation.partition, key, operation.value)
    future.add_done_callback(partial(send_outcome, operation))
    return future


async def produce(workload: Workload, create: Callable[[], ProducerClient], guarantee: Guarantee, process: str) -> None:
    """Send records until the end, or until one fails."""
    client = create()
    pending: set[asyncio.Future[Any]] = set()
    try:
        await client.start()
        while not workload.is_over:
            for _ in range(workload.random.choice((1, 2, 5))):
                pending.add(await send(workload, process, client, guarantee))
            await workload.pause(0.3)
            if any(one.done() and one.exception() is not None for one in pending):
                break
            pending = {one for one in pending if not one.done()}
        if pending:
            await asyncio.wait(pending, timeout=_OUTCOME_S)
    finally:
        await close(client)
        for one in pending:
            one.cancel() if not one.done() else one.exception()


async def transact(
    workload: Workload, create: Callable[[], ProducerClient], transactional_id: str, process: str
) -> None:
    """Commit and abort transactions until the end, or until an error."""
    client = create()
    random = workload.random
    init = Init(process=process, invoked_ms=now_ms(), transactional_id=transactional_id)
    workload.record(init)
    pending: list[asyncio.Future[Any]] = []
    try:
        await client.start()
        await client.init_transactions()
        init.complete(now_ms())
        while not workload.is_over:
            transaction = next(workload.transactions)
            await client.begin()
            pending = []
            for _ in range(random.choice((1, 2, 4, 8))):
                pending.append(await send(workload, process, client, Guarantee.EXACTLY_ONCE, transaction))
                if random.random() < 0.2:
                    await workload.pause(0.5)
            commits = random.random() < 0.75
            end = End(process=process, invoked_ms=now_ms(), transaction=transaction, commits=commits)
            await workload.attempt(end, client.end(commits=commits))
            await workload.pause(0.3)
    finally:
        await close(client)
        for one in pending:
            one.cancel() if not one.done() else one.exception()


# -- consumers ---------------------------------------------------------------------------------------------------------


@dataclass
class Sessions:
    """The number of the current assignment of a consumer."""

    workload: Workload

    def __post_init__(self) -> None:
        self.current = next(self.workload.sessions)

    def change(self) -> None:
        self.current = next(self.workload.sessions)


NewConsumer = Callable[[Callable[[], None]], ConsumerClient]


async def read(workload: Workload, create: NewConsumer, committed_only: bool, process: str) -> None:
    """Read all partitions from their beginning, and request end offsets."""
    sessions = Sessions(workload)
    client = create(sessions.change)
    try:
        await client.start()
        while not workload.is_over:
            await poll(workload, client, sessions, process, committed_only)
            if client.fences_leaders and workload.random.random() < 0.2:
                partition = workload.random.randrange(PARTITIONS)
                request = EndOffset(
                    process=process, invoked_ms=now_ms(), partition=partition, committed_only=committed_only
                )
                request.offset = await workload.attempt(request, client.end_offset(partition))
    finally:
        await close(client)


async def consume(workload: Workload, create: NewConsumer, committed_only: bool, group: str, process: str) -> None:
    """Read as a member of a group, commit, and sometimes leave the group or stop polling for a time."""
    sessions = Sessions(workload)
    client = create(sessions.change)
    random = workload.random
    try:
        await client.start()
        until_s = asyncio.get_running_loop().time() + random.expovariate(1 / 15)
        while not workload.is_over and asyncio.get_running_loop().time() < until_s:
            session = sessions.current
            positions = await poll(workload, client, sessions, process, committed_only, group)
            if positions and random.random() < 0.5 and session == sessions.current:
                await commit(workload, client, process, group, positions)
            if random.random() < 0.1:
                await workload.pause(1.0)
            if client.reports_committed and random.random() < 0.2 and client.assigned():
                request = Committed(
                    process=process, invoked_ms=now_ms(), group=group, partition=random.choice([*client.assigned()])
                )
                request.offset = await workload.attempt(request, client.committed(request.partition))
    finally:
        await close(client)


async def commit(
    workload: Workload, client: ConsumerClient, process: str, group: str, positions: dict[int, int]
) -> None:
    commits = [
        Commit(process=process, invoked_ms=now_ms(), group=group, partition=partition, offset=offset)
        for partition, offset in positions.items()
    ]
    workload.history.operations += commits
    await client.commit(positions)
    for each in commits:
        each.complete(now_ms())


async def poll(
    workload: Workload,
    client: ConsumerClient,
    sessions: Sessions,
    process: str,
    committed_only: bool,
    group: str | None = None,
) -> dict[int, int]:
    """Record a poll; return the positions after it."""
    invoked_ms, session = now_ms(), sessions.current
    found = await client.poll()
    for partition, records in found.items():
        operation = Poll(
            process=process,
            invoked_ms=invoked_ms,
            partition=partition,
            records=records,
            committed_only=committed_only,
            session=session if session == sessions.current else None,
            first=0 if group is None else None,
            group=group,
        )
        operation.complete(now_ms())
        workload.record(operation)
    return {partition: records[-1][0] + 1 for partition, records in found.items()}


# -- the choice of processes -------------------------------------------------------------------------------------------


def processes(workload: Workload) -> list[Callable[[], Awaitable[None]]]:
    """Return the processes of a run: producers and consumers of both clients, and members of a KIP-848 group."""
    random, bootstrap = workload.random, workload.bootstrap
    common: dict[str, str | int] = {
        "linger.ms": random.choice((0, 5, 100)),
        "batch.size": random.choice((1, 200, 16384)),
        "compression.type": random.choice(("none", "lz4")),
    }
    in_flight = random.choice((1, 5))
    plain = Guarantee.ORDERED if in_flight == 1 else Guarantee.AT_LEAST_ONCE

    def seeded() -> Random:
        return Random(random.random())

    def sluice(**config: str | int) -> ProducerClient:
        return SluiceProducer(bootstrap, seeded(), **common, **config)

    def aiokafka(**config: Any) -> ProducerClient:
        return AiokafkaProducer(bootstrap, seeded(), acks="all", **config)

    def transactional(name: str) -> Callable[[], ProducerClient]:
        if random.random() < 0.5:
            config: dict[str, Any] = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
            return partial(sluice, **config)
        return partial(aiokafka, transactional_id=name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)

    unordered: dict[str, Any] = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": in_flight}
    producers: list[tuple[str, Callable[[], ProducerClient], Guarantee]] = [
        ("plain", partial(sluice, **unordered), plain),
        ("aiokafka-plain", aiokafka, Guarantee.ORDERED),
        ("idempotent", sluice, Guarantee.EXACTLY_ONCE),
        ("aiokafka-idempotent", partial(aiokafka, enable_idempotence=True), Guarantee.EXACTLY_ONCE),
    ]
    chosen: list[tuple[str, Callable[[str], Awaitable[None]]]] = [
        (name, partial(produce, workload, create, guarantee)) for name, create, guarantee in producers
    ]
    # Two processes with the same transactional id fence each other. They use the same client: aiokafka's EndTxn does
    # not raise the epoch (KIP-890). The coordinator then takes a later EndTxn of a fenced KIP-890 producer, whose
    # epoch is one lower, for a retry, and returns the current epoch.
    first, second = transactional("tx-1"), transactional("tx-2")
    for name, create in (("tx-1", first), ("tx-2", second), ("tx-2", second)):
        chosen.append((f"{name}-{len(chosen)}", partial(transact, workload, create, name)))
    consumer: Any
    for number, committed_only in enumerate((False, True, random.random() < 0.5)):
        consumer = random.choice((SluiceConsumer, AiokafkaConsumer))
        create = partial(consumer, bootstrap, seeded(), range(PARTITIONS), committed_only=committed_only)
        chosen.append((f"reader-{number}", partial(read, workload, _listening(create), committed_only)))
    members: list[tuple[str, Any]] = [
        ("group", partial(SluiceConsumer, partitions=())),
        ("aiokafka-group", partial(AiokafkaConsumer, partitions=())),
    ]
    if workload.release in RELEASES:
        members.append(("kip-848-group", Kip848Consumer))
    for group, consumer in members:
        committed_only = random.random() < 0.5
        for number in range(2):
            create = partial(consumer, bootstrap, seeded(), committed_only=committed_only, group=group)
            run = partial(consume, workload, _listening(create), committed_only, group)
            chosen.append((f"{group}-member-{number}", run))
    return [partial(instances, workload, name, run) for name, run in chosen]


def _listening(create: Callable[..., ConsumerClient]) -> NewConsumer:
    return lambda changed: create(changed=changed)
