"""Correct applications with `sluice.client`, whose invariants hold whatever fails."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from sluice.client.consumer import CommitFailedError, Consumer, ConsumerRecord, TopicPartition
from sluice.client.errors import FencedInstanceIdException, KafkaException, RebalanceInProgressException
from sluice.client.producer import Producer
from sluice.explore import (
    AtLeastOnce,
    BoundedRetries,
    Invariant,
    MonotonicCommits,
    NoAbortedRecords,
    NoCommitAhead,
    NoLeaks,
    Run,
)
from sluice.explore.injection import KINDS
from sluice.explore.invariants import committed_records

Application = Callable[..., Coroutine[Any, Any, None]]

_PARTITIONS = 2
_ORDERS = 8
_WORK_S = 0.01
_IDLE_S = 5.0  # longer than a heartbeat interval
_RESTART_S = 1.0
_POLL_MS = 10_000
# Fewer requests while nothing happens: each of them is a point of a search.
_FETCH = {"fetch.max.wait.ms": 5000}
# Errors of a commit: the group has rebalanced, or is about to.
_NOT_COMMITTED = (CommitFailedError, RebalanceInProgressException)


class Contents(Invariant, frozen=True):
    """The committed records of each partition of a topic have these values, in this order."""

    topic: str
    values: Sequence[Sequence[bytes]]

    async def violation(self, run: Run) -> str:
        found: list[list[bytes | None]] = [[] for _ in self.values]
        for record in await committed_records(run, self.topic):
            found[record.partition].append(record.value)
        for index, expected in enumerate(self.values):
            if found[index] != expected:
                return f"{self.topic}-{index} has {found[index]} in place of {expected}"
        return ""


class OwnProgram(NamedTuple):
    """A program.

    run: its coroutine function
    invariants: what holds in each run
    failures: kinds of failures that it survives
    config: properties of the brokers
    """

    run: Callable[[Run], Coroutine[Any, Any, None]]
    invariants: Sequence[Invariant]
    failures: Sequence[str] = tuple(KINDS)
    config: Mapping[str, str] = {}


def _values(numbers: Sequence[int]) -> Sequence[Sequence[bytes]]:
    """Return the numbers as values of records, by partition."""
    return [[b"%d" % each for each in numbers if each % _PARTITIONS == index] for index in range(_PARTITIONS)]


_FIRST, _ALL = _values(range(_ORDERS // 2)), _values(range(_ORDERS))


async def _send(run: Run, values: Sequence[Sequence[bytes]]) -> None:
    for index, each in enumerate(values):
        await run.broker.client().send("orders", *each, partition=index)


# -- groups ------------------------------------------------------------------------------------------------------------


async def _grouped(run: Run, application: Application) -> None:
    """Run two members, with orders at their start and after a pause."""
    await run.broker.cluster.create_topic("orders", partitions=_PARTITIONS)
    await _send(run, _FIRST)
    for name in ("left", "right"):
        run.start(partial(application, run, name), name)
    await run.wait_for(lambda: len(run.processed_records) == _ORDERS // 2)
    await asyncio.sleep(_IDLE_S)
    await _send(run, [after[len(before) :] for before, after in zip(_FIRST, _ALL, strict=True)])
    await run.wait_for(lambda: len(run.processed_records) == _ORDERS)


def _member(run: Run, name: str, **given: str | bool) -> Consumer:
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": name,
        "group.id": "shop",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **_FETCH,
    }
    return Consumer(config | {key.replace("_", "."): value for key, value in given.items()})


async def _process(run: Run, orders: Sequence[ConsumerRecord]) -> None:
    for order in orders:
        await asyncio.sleep(_WORK_S)
        run.processed(order)


async def _commits(run: Run, name: str, assignor: str) -> None:
    """Process, then commit."""
    async with _member(run, name, partition_assignment_strategy=assignor) as consumer:
        consumer.subscribe(["orders"])
        while True:
            await _process(run, await consumer.poll(_POLL_MS))
            with suppress(*_NOT_COMMITTED):
                await consumer.commit()


async def _commits_automatically(run: Run, name: str) -> None:
    """Process at once, so that what `poll` has returned is processed whenever a commit happens."""
    async with _member(run, name, enable_auto_commit=True) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(_POLL_MS):
                run.processed(order)


async def _is_static(run: Run, name: str) -> None:
    """Process, then commit, until another instance with the same name has started."""
    with suppress(FencedInstanceIdException):
        async with _member(run, name, group_instance_id=name) as consumer:
            consumer.subscribe(["orders"])
            while True:
                await _process(run, await consumer.poll(_POLL_MS))
                with suppress(*_NOT_COMMITTED):
                    await consumer.commit()


# -- transactions ------------------------------------------------------------------------------------------------------


def _producer(run: Run, **given: str) -> Producer:
    config = {"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"}
    return Producer(config | {key.replace("_", "."): value for key, value in given.items()})


async def _restarted(application: Application, *args: Any, is_replaced: Callable[[], bool] = lambda: False) -> None:
    """Run an application, again with new clients after an error that a transaction cannot survive, until replaced."""
    while True:
        try:
            return await application(*args)
        except KafkaException:
            if is_replaced():
                return None
            await asyncio.sleep(_RESTART_S)


def _replaceable(application: Application) -> Application:
    """Return an application whose newest instance replaces the others.

    With one transactional id, instances that all start again after an error would fence each other for ever.
    """
    newest = 0

    async def instance() -> None:
        nonlocal newest
        newest += 1
        number = newest
        await _restarted(application, is_replaced=lambda: number < newest)

    return instance


async def _copied(run: Run, assignor: str) -> None:
    """Copy orders to bills, exactly once, by two members with a producer each."""
    await run.broker.cluster.create_topic("bills", partitions=_PARTITIONS)
    run.start(partial(_reads_bills, run), "reader")
    await _grouped(run, partial(_copies, assignor=assignor))


async def _copies(run: Run, name: str, assignor: str) -> None:
    await _restarted(_copies_until_fenced, run, name, assignor)


async def _copies_until_fenced(run: Run, name: str, assignor: str) -> None:
    task = asyncio.current_task()
    assert task is not None  # its name is that of this process
    member = _member(run, name, partition_assignment_strategy=assignor)
    async with _producer(run, client_id=name, transactional_id=task.get_name()) as producer, member as consumer:
        await producer.init_transactions()
        consumer.subscribe(["orders"])
        while True:
            orders = await consumer.poll(_POLL_MS)
            if not orders:
                continue
            producer.begin_transaction()
            try:
                for order in orders:
                    await asyncio.sleep(_WORK_S)
                    await producer.send("bills", order.value, partition=order.partition)
                ends = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in orders}
                await producer.send_offsets_to_transaction(ends, consumer.group_metadata())
                await producer.commit_transaction()
            except KafkaException:
                await producer.abort_transaction()
                await _rewind(consumer)


async def _rewind(consumer: Consumer) -> None:
    """Read again what is not committed."""
    for assigned, committed in (await consumer.committed(consumer.assignment())).items():
        if committed is None:
            consumer.seek_to_beginning([assigned])
        else:
            consumer.seek(assigned, committed)


async def _reads_bills(run: Run) -> None:
    config: dict[str, str | int] = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": "reader",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        **_FETCH,
    }
    async with Consumer(config) as consumer:
        consumer.assign([TopicPartition("bills", index) for index in range(_PARTITIONS)])
        while True:
            for bill in await consumer.poll(_POLL_MS):
                run.processed(bill)


_ABORTED = range(2, _ORDERS, 3)


async def _written(run: Run) -> None:
    """Write bills in transactions, of which some are aborted; each instance continues where the one before ended."""
    await run.broker.cluster.create_topic("bills", partitions=_PARTITIONS)
    run.start(partial(_reads_bills, run), "reader")
    run.start(_replaceable(partial(_writes, run)), "shop")
    await run.wait_for(lambda: len(run.processed_records) == _PARTITIONS * (_ORDERS - len(_ABORTED)))


async def _writes(run: Run) -> None:
    async with _producer(run, transactional_id="shop") as producer:
        await producer.init_transactions()
        written = {record.value for record in await committed_records(run, "bills")}
        for number in range(_ORDERS):
            value = b"%d" % number
            if value not in written:
                producer.begin_transaction()
                for index in range(_PARTITIONS):
                    await producer.send("bills", value, partition=index)
                await asyncio.sleep(_WORK_S)
                if number in _ABORTED:
                    await producer.flush()
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()


# -- idempotence -------------------------------------------------------------------------------------------------------


async def _sent_once(run: Run) -> None:
    """Send bills, several at once, without a transaction."""
    await run.broker.cluster.create_topic("bills", partitions=_PARTITIONS)
    sent = asyncio.Event()

    async def shop() -> None:
        async with _producer(run, linger_ms="0", batch_size="1") as producer:
            for half in (range(_ORDERS // 2), range(_ORDERS // 2, _ORDERS)):
                sending = [await producer.send("bills", b"%d" % each, partition=each % _PARTITIONS) for each in half]
                for each in sending:
                    await each
                await asyncio.sleep(_IDLE_S)
        sent.set()

    run.start(shop, "shop")
    await run.wait_for(sent.is_set)


# Another instance sends all again: without a transaction, no producer knows what another one has sent.
_OF_ONE_INSTANCE = [kind for kind in KINDS if kind not in ("kill-before", "kill-after", "cancelled", "second-instance")]
_OF_MEMBERS = [AtLeastOnce("orders"), NoCommitAhead("orders"), MonotonicCommits("orders"), BoundedRetries(), NoLeaks()]
# Committed offsets are requested again until the transaction of a killed member is aborted: after its timeout of 60 s,
# at the next check, which happens every 10 s. The backoff is 1 s, less 20 %, after 5 requests with shorter ones. There
# are up to 3 failures in a run, and a member may wait for the transaction of each.
_MOST_FAILED = 3 * (5 + round((60 + 10) / 0.8))
_OF_COPIES = [
    Contents("bills", _ALL),
    AtLeastOnce("bills"),
    NoAbortedRecords("bills"),
    BoundedRetries(most=_MOST_FAILED),
    NoLeaks(),
]
_WRITTEN = [b"%d" % each for each in range(_ORDERS) if each not in _ABORTED]
_OF_WRITES = [Contents("bills", [_WRITTEN] * _PARTITIONS), *_OF_COPIES[1:]]
_OLD = {"sluice.kafka.release": "kafka-3.9"}  # transactions without KIP-890

PROGRAMS: Mapping[str, OwnProgram] = {
    "eager": OwnProgram(partial(_grouped, application=partial(_commits, assignor="range")), _OF_MEMBERS),
    "cooperative": OwnProgram(
        partial(_grouped, application=partial(_commits, assignor="cooperative-sticky")), _OF_MEMBERS
    ),
    "automatic": OwnProgram(partial(_grouped, application=_commits_automatically), _OF_MEMBERS),
    "static": OwnProgram(partial(_grouped, application=_is_static), _OF_MEMBERS),
    "copies": OwnProgram(partial(_copied, assignor="range"), _OF_COPIES),
    "copies-cooperative": OwnProgram(partial(_copied, assignor="cooperative-sticky"), _OF_COPIES),
    "copies-3.9": OwnProgram(partial(_copied, assignor="range"), _OF_COPIES, config=_OLD),
    "transactions": OwnProgram(_written, _OF_WRITES),
    "transactions-3.9": OwnProgram(_written, _OF_WRITES, config=_OLD),
    "idempotent": OwnProgram(_sent_once, [Contents("bills", _ALL), BoundedRetries(), NoLeaks()], _OF_ONE_INSTANCE),
}
