"""Each invariant, with programs that keep it and programs that violate it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from sluice.client.consumer import Consumer, OffsetAndMetadata, TopicPartition
from sluice.client.producer import Producer
from sluice.explore import (
    AtLeastOnce,
    AtMostOnce,
    BoundedRetries,
    ExactlyOnce,
    InOrder,
    InOrderPerKey,
    Invariant,
    MonotonicCommits,
    NoAbortedRecords,
    NoCommitAhead,
    NoDuplicates,
    NoLeaks,
    Progress,
    Run,
)
from sluice.explore.execution import Options, Schedule, execute
from sluice.faults import Delay, Error

Program = Callable[[Run], Coroutine[Any, Any, None]]
RECORDS = 4


class Processed:
    topic, partition = "orders", 0

    def __init__(self, offset: int) -> None:
        self.offset = offset


def processing(*offsets: int) -> Program:
    """Return a program that processes records; those with an even offset have one key, the others another."""

    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")
        async with Producer({"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"}) as producer:
            for number in range(RECORDS):
                await producer.send("orders", key=str(number % 2), value=str(number))
        for offset in offsets:
            run.processed(Processed(offset))

    return program


async def repeating(run: Run) -> None:
    await run.broker.cluster.create_topic("orders")
    await run.broker.client().send("orders", "0", "1", "0")


async def aborting(run: Run) -> None:
    """Process a record whose transaction is aborted."""
    await run.broker.cluster.create_topic("orders")
    config = {"bootstrap.servers": run.broker.bootstrap, "client.id": "shop", "transactional.id": "shop"}
    async with Producer(config) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.send("orders", value="0")
        await producer.abort_transaction()
    run.processed(Processed(0))


def continuing(*, reads_it: bool) -> Program:
    """Return a program that writes and processes a record during a slow read of an invariant, which reads it or not."""

    async def program(run: Run) -> None:
        async def application() -> None:
            await asyncio.sleep(0.5)
            await run.broker.client().send("orders", "late")
            run.processed(Processed(RECORDS))

        await processing(*range(RECORDS))(run)
        run.broker.faults.add(Delay(1000, when="before" if reads_it else "after"), api="Fetch")
        run.start(application)

    return program


def committing(*steps: int | str) -> Program:
    """Return a program that commits offsets (numbers), and processes records (texts)."""

    async def program(run: Run) -> None:
        await processing()(run)
        config = {"bootstrap.servers": run.broker.bootstrap, "client.id": "shop", "group.id": "shop"}
        async with Consumer(config | {"enable.auto.commit": False}) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            for step in steps:
                if isinstance(step, int):
                    await consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(step)})
                else:
                    run.processed(Processed(int(step)))
                await asyncio.sleep(0.1)

    return program


def waiting(seconds: float) -> Program:
    """Return a program that processes its records late."""

    async def program(run: Run) -> None:
        await processing()(run)
        await asyncio.sleep(seconds)
        for offset in range(RECORDS):
            run.processed(Processed(offset))

    return program


def retrying(failures: int, instances: int = 1) -> Program:
    async def program(run: Run) -> None:
        sent: list[object] = []

        async def application() -> None:
            async with Producer({"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"}) as producer:
                sent.append(await (await producer.send("orders", value="0")))

        await run.broker.cluster.create_topic("orders")
        run.broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce", client_id="shop", times=failures)
        for _ in range(instances):
            run.start(application)
        await run.wait_for(lambda: len(sent) == instances)

    return program


def leaving(what: str) -> Program:
    """Return a program whose application leaves something, or "nothing", when it is cancelled."""

    async def program(run: Run) -> None:
        kept: list[object] = []

        async def application() -> None:
            host, port = run.broker.brokers[1].split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            try:
                await asyncio.Event().wait()
            finally:
                if what == "a task":
                    kept.append(asyncio.ensure_future(asyncio.Event().wait()))
                if what != "a connection":
                    writer.close()
                if what == "itself":
                    await asyncio.Event().wait()

        run.start(application)
        await asyncio.sleep(1)

    return program


INVARIANTS: dict[str, tuple[Invariant, Program, str]] = {
    "at least once": (AtLeastOnce("orders"), processing(0, 1, 2, 3, 3), ""),
    "not at least once": (AtLeastOnce("orders"), processing(0, 1, 3), "orders-0 offset 2 (b'2') was not processed"),
    "at most once": (AtMostOnce("orders"), processing(0, 3), ""),
    "not at most once": (AtMostOnce("orders"), processing(0, 3, 3), "orders-0 offset 3 was processed 2 times"),
    "exactly once": (ExactlyOnce("orders"), processing(0, 1, 2, 3), ""),
    "not once": (ExactlyOnce("orders"), processing(0, 1, 3), "orders-0 offset 2 (b'2') was not processed"),
    "more than once": (
        ExactlyOnce("orders"),
        processing(0, 1, 1, 2, 3),
        "orders-0 offset 1 (b'1') was processed 2 times",
    ),
    "not committed": (
        ExactlyOnce("orders"),
        processing(0, 1, 2, 3, 4),
        "orders-0 offset 4 was processed, but is not committed",
    ),
    "once, and a record that is written later": (ExactlyOnce("orders"), continuing(reads_it=True), ""),
    "no aborted record": (NoAbortedRecords("orders"), processing(0, 3, 3), ""),
    "no aborted record, and one that is written later": (
        NoAbortedRecords("orders"),
        continuing(reads_it=False),
        "",
    ),
    "an aborted record": (
        NoAbortedRecords("orders"),
        aborting,
        "orders-0 offset 0 was processed, but is not committed",
    ),
    "in order": (InOrder("orders"), processing(0, 1, 2, 3), ""),
    "in order, some again": (InOrder("orders"), processing(0, 1, 0, 1, 2, 3), ""),
    "in order from an offset": (InOrder("orders"), processing(2, 3), ""),
    "not in order": (InOrder("orders"), processing(0, 2, 1, 3), "orders-0 offset 2 was processed before 1"),
    "keys in order": (InOrderPerKey("orders"), processing(1, 0, 3, 2, 3), ""),
    "keys not in order": (
        InOrderPerKey("orders"),
        processing(1, 2, 0, 3),
        "orders-0 offset 2 with key b'0' was processed before 0",
    ),
    "no duplicates": (NoDuplicates("orders"), processing(), ""),
    "duplicates": (
        NoDuplicates("orders"),
        repeating,
        "b'0' is twice in the output: orders-0 offset 0 and orders-0 offset 2",
    ),
    "commits after processing": (NoCommitAhead("orders"), committing("0", 1, "1", "2", 3, 2), ""),
    "commit before processing": (
        NoCommitAhead("orders"),
        committing("0", 2, "1"),
        "group shop committed offset 2 before orders-0 offset 1 (b'1') was processed",
    ),
    "commits without processing": (
        NoCommitAhead("orders"),
        committing(1),
        "group shop committed offset 1 before orders-0 offset 0 (b'0') was processed",
    ),
    "commits forward": (MonotonicCommits("orders"), committing(1, 1, 3), ""),
    "commits back": (
        MonotonicCommits("orders"),
        committing(1, 3, 2),
        "group shop committed offset 2 of orders-0 after 3",
    ),
    "progress": (Progress("orders"), waiting(119), ""),
    "progress in a shorter time": (Progress("orders", within_s=200), waiting(199), ""),
    "no progress": (
        Progress("orders"),
        waiting(121),
        "orders-0 offset 0 (b'0') was not processed within 120 s after the last failure",
    ),
    "few retries": (BoundedRetries(), retrying(50), ""),
    "many retries": (BoundedRetries(), retrying(51), "51 Produce requests of shop in a row failed"),
    "few retries of each instance": (BoundedRetries(), retrying(80, instances=2), ""),
    "nothing is left": (NoLeaks(), leaving("nothing"), ""),
    "a task is left": (NoLeaks(), leaving("a task"), "app-1 has left 1 tasks, such as Event.wait"),
    "a connection is left": (NoLeaks(), leaving("a connection"), "app-1 has left 1 open connections"),
    "an application does not end": (
        NoLeaks(),
        leaving("itself"),
        "app-1 did not end within 60 s after it was cancelled",
    ),
}


@pytest.mark.parametrize(("invariant", "program", "violation"), INVARIANTS.values(), ids=INVARIANTS)
def test_invariant(invariant: Invariant, program: Program, violation: str) -> None:
    error = execute(program, Schedule(), Options([invariant])).error
    assert error == (f"{type(invariant).__name__}: {violation}" if violation else "")


def test_leak_is_no_application_that_starts_and_no_connection_that_only_the_broker_holds() -> None:
    async def program(run: Run) -> None:
        async def application() -> None:
            async with Consumer({"bootstrap.servers": run.broker.bootstrap, "fetch.max.wait.ms": 20_000}) as consumer:
                consumer.assign([TopicPartition("orders", 0)])
                await consumer.poll(600_000)

        await run.broker.cluster.create_topic("orders")
        for _ in range(2):
            run.start(application)
        await asyncio.sleep(1)  # both wait for records, at the broker, too
        assert run.processes.cancel("app-1")  # it will be started again
        await asyncio.sleep(0.1)

    assert execute(program, Schedule(), Options([NoLeaks()])).error == ""


INVARIANT_ORDERS = {"first": [NoLeaks(), AtLeastOnce("orders")], "last": [AtLeastOnce("orders"), NoLeaks()]}


@pytest.mark.parametrize("invariants", INVARIANT_ORDERS.values(), ids=INVARIANT_ORDERS)
def test_applications_end_after_other_invariants_were_checked(invariants: Sequence[Invariant]) -> None:
    async def program(run: Run) -> None:
        await processing()(run)
        await leaving("a connection")(run)

    assert execute(program, Schedule(), Options(invariants)).error.startswith("AtLeastOnce")
