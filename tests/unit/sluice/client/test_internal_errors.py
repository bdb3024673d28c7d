"""Internal errors of a client's tasks: each waiting caller gets the cause at once, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sluice import Broker
from sluice.client.admin import AdminClient, NewTopic
from sluice.client.backoff import ExponentialBackoff
from sluice.client.consumer import Consumer, OffsetAndMetadata, TopicPartition
from sluice.client.consumer.group.membership import Membership
from sluice.client.errors import KafkaException
from sluice.client.network.metadata_updater import MetadataUpdater
from sluice.client.network.network_client import NetworkClient
from sluice.client.producer import Producer
from sluice.client.producer.sender import Sender
from sluice.client.producer.transactions import Transactions

AT_ONCE_S = 0.2
PARTITION = TopicPartition("orders", 0)


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError("an internal error")


@asynccontextmanager
async def address() -> AsyncIterator[dict[str, str]]:
    async with Broker() as broker:
        await broker.cluster.create_topic("orders")
        yield {"bootstrap.servers": broker.bootstrap}


async def rejected(call: Awaitable[object], what: str = "") -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(KafkaException, match=f"^{what}.* failed: ZeroDivisionError"):
        await call
    assert loop.time() - began <= AT_ONCE_S


async def sent(producer: Producer) -> None:
    await (await producer.send("orders", b"a"))


async def full_memory(producer: Producer) -> None:
    while True:
        await producer.send("orders", bytes(20_000))


PRODUCER_CALLS: dict[str, tuple[dict[str, str | int], Callable[[Producer], Awaitable[object]]]] = {
    "a sent record": ({}, sent),
    "a wait for metadata": ({}, lambda producer: producer.send("absent", b"a")),
    "a wait for partitions": ({}, lambda producer: producer.partitions_for("absent")),
    "a wait for memory": ({"buffer.memory": 20_200, "batch.size": 0}, full_memory),
    "a transaction": ({"transactional.id": "t"}, lambda producer: producer.init_transactions()),
}


@pytest.mark.parametrize(("config", "call"), PRODUCER_CALLS.values(), ids=PRODUCER_CALLS)
async def test_died_sender_fails_every_caller(
    config: dict[str, str | int], call: Callable[[Producer], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with address() as at, Producer({**at, **config}) as producer:
        monkeypatch.setattr(Sender, "run_once", fail)
        await rejected(call(producer), "the sender")
        await rejected(producer.send("orders", b"a"))
        await producer.flush()


@pytest.mark.parametrize(
    "record", [{"value": {}}, {"value": 5}, {"key": 3.5}, {"topic": b"t"}, {"partition": "0"}, {"timestamp_ms": "1"}]
)
async def test_wrong_record_is_rejected_at_the_call(record: dict[str, Any]) -> None:
    async with address() as at, Producer(at) as producer:
        with pytest.raises(TypeError, match=f"^send: {next(iter(record))}: expected "):
            await producer.send(**{"topic": "orders", **record})
        metadata = await (await producer.send("orders", "text", key="k", headers=[("a", b"b")]))
        assert metadata.offset == 0


async def test_died_heartbeats_fail_the_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    config: dict[str, str | int] = {"group.id": "g", "heartbeat.interval.ms": 1000}
    async with address() as at, Consumer({**at, **config}) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            await consumer.poll(1)
        monkeypatch.setattr(Membership, "_send_heartbeat", fail)
        await asyncio.sleep(1)
        await rejected(consumer.poll(60_000))
        await rejected(consumer.commit({PARTITION: OffsetAndMetadata(0)}))


async def created(admin: AdminClient) -> None:
    (await admin.create_topics([NewTopic("a", 1)])).all()


@pytest.mark.parametrize(
    ("of", "name"), [(MetadataUpdater, "update"), (NetworkClient, "_handle_api_versions_response")]
)
async def test_failed_network_fails_every_caller(of: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, name, fail)
    calls: tuple[Callable[[Consumer, AdminClient, Producer], Awaitable[object]], ...] = (
        lambda consumer, *_: consumer.partitions_for("orders"),
        lambda consumer, *_: consumer.end_offsets([PARTITION]),
        lambda _, admin, __: admin.list_topics(),
        lambda _, admin, __: created(admin),
        lambda *clients: clients[2].send("orders", b"a"),
    )
    async with address() as at, Consumer(at) as consumer, AdminClient(at) as admin, Producer(at) as producer:
        for call in calls:
            await rejected(call(consumer, admin, producer))


def test_transactions_can_fail_in_any_state() -> None:
    transactions = Transactions(ExponentialBackoff(1, 2, 1, 0, lambda least, _: least), "t", 1000)
    result = transactions.init_transactions()
    transactions.fail(KafkaException("a failure"))
    assert str(result.error) == "a failure"
