"""Each kind of failure at each API: it hits, what the client receives, and what happens."""

import asyncio
from typing import Any

import pytest

from sluice.client.consumer import Consumer
from sluice.client.producer import Producer
from sluice.explore import Run
from sluice.explore.execution import Options, Outcome, Schedule, execute
from sluice.explore.injection import KINDS, Injection
from sluice.journal_events import Request
from sluice.protocol.apis import api_of
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.wire import frame, read_response

NEW = "ConsumerGroupHeartbeat"
LOST, FINE = "no response", "no error"
# What the client receives, in place of a response without an error.
RECEIVES = {
    "response-lost": LOST,
    "request-lost": LOST,
    "kill-before": LOST,
    "kill-after": LOST,
    "leader-moved": "NOT_LEADER_OR_FOLLOWER",
    "coordinator-moved": "NOT_COORDINATOR",
    "broker-killed": LOST,
    "broker-lost": LOST,
    "broker-power-lost": LOST,
}
IN_A_CELL = {
    ("leader-moved", "Fetch"): "FENCED_LEADER_EPOCH",
    ("leader-moved", "ListOffsets"): "FENCED_LEADER_EPOCH",
    ("producer-fenced", "AddOffsetsToTxn"): "PRODUCER_FENCED",
    ("producer-fenced", "AddPartitionsToTxn"): "PRODUCER_FENCED",
    ("producer-fenced", "EndTxn"): "INVALID_TXN_STATE",
    ("producer-fenced", "Produce"): "INVALID_PRODUCER_EPOCH",
    ("producer-fenced", "TxnOffsetCommit"): "INVALID_PRODUCER_EPOCH",
    **{
        ("session-expired", api): "UNKNOWN_MEMBER_ID"
        for api in ("ConsumerGroupHeartbeat", "Heartbeat", "OffsetCommit", "SyncGroup", "TxnOffsetCommit")
    },
}
# What happens then, and an API at which this is seen.
HAPPENS = {
    "kill-before": ("OffsetCommit", "app-1 is killed"),
    "kill-after": ("OffsetCommit", "app-1 is killed"),
    "cancelled": ("OffsetCommit", "app-1 is cancelled"),
    "paused": ("OffsetCommit", "app-1 continues"),
    "second-instance": ("OffsetCommit", "app-2 starts"),
    "session-expired": ("OffsetCommit", "group shop is Empty with 0 members"),
    "rebalance": ("OffsetCommit", "group shop is Stable with 2 members"),
    "leader-moved": ("Produce", "the leader of out-0 is broker 2"),
    "broker-killed": ("Produce", "broker 1 is running"),
    "broker-lost": ("Produce", "broker 1 is stopped"),
    "broker-power-lost": ("Produce", "broker 1 is running"),
    "producer-fenced": ("Produce", "transaction shop is CompleteAbort"),
}
# The same in a group of KIP-848.
HAPPENS_IN_NEW_GROUP = {
    "session-expired": "group shop is Empty with 0 members",
    "rebalance": "group shop is Reconciling with 2 members",
}
# Clients of Kafka 4 have no requests to add partitions and groups to a transaction.
OLD = frozenset(("AddPartitionsToTxn", "AddOffsetsToTxn"))
CELLS = [(kind, api) for kind in KINDS for api in sorted(KINDS[kind].apis)]


async def copying(run: Run, received: list[Request]) -> None:
    """Run an application that copies one record in a transaction, with requests of each API."""
    cluster = run.broker.cluster
    await cluster.create_topic("in", assignments={0: [1, 2, 3]})
    await cluster.create_topic("out", assignments={0: [1, 2, 3]})
    await run.broker.client().send("in", "x")
    ended = asyncio.Event()

    async def application() -> None:
        common = {"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"}
        of_consumer: dict[str, str | int] = {
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
        }
        config: dict[str, str | int] = {**common, **of_consumer, "enable.auto.commit": False}
        try:
            async with Consumer(config) as consumer, Producer(common | {"transactional.id": "shop"}) as producer:
                consumer.subscribe(["in"])
                if not any([await consumer.poll(100) for _ in range(10)]):
                    return  # it was committed by an instance that was killed
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send("out", value=b"x")
                offsets = dict.fromkeys(consumer.assignment(), 1)
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                await producer.commit_transaction()
                await consumer.commit()
                await consumer.poll(500)
        finally:
            ended.set()

    run.start(application)
    await ended.wait()
    await asyncio.sleep(20)  # broker-killed ends after 5 s, stalled after 20 s
    received[:] = run.broker.journal.requests(client_id="shop")


async def heartbeating(run: Run, received: list[Request]) -> None:
    """Run an application that is a member of a group of KIP-848."""
    await run.broker.cluster.create_topic("in", assignments={0: [1, 2, 3]})
    ended = asyncio.Event()

    async def call(host: str, port: int, request: Message, version: int) -> Any:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(frame(request, version, client_id="shop"))
            response = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        finally:
            writer.close()
        return read_response(memoryview(response), api_of(type(request)).key, version)

    async def application() -> None:
        try:
            host, port = run.broker.bootstrap.split(",")[0].split(":")
            found = await call(host, int(port), FindCoordinatorRequest(coordinator_keys=["shop"]), 6)
            (coordinator,) = found.coordinators
            join: dict[str, Any] = {
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": ["in"],
                "topic_partitions": [],
            }
            epoch = 0
            for _ in range(4):
                member = ConsumerGroupHeartbeatRequest(group_id="shop", member_id="A", member_epoch=epoch, **join)
                epoch, join = (await call(coordinator.host, coordinator.port, member, 1)).member_epoch, {}
                await asyncio.sleep(1)
        except (OSError, EOFError):
            pass  # the connection was closed
        finally:
            ended.set()

    run.start(application)
    await ended.wait()
    await asyncio.sleep(20)
    received[:] = run.broker.journal.requests(client_id="shop")


def received_at(kind: str, api: str) -> tuple[Outcome, str]:
    """Return the outcome of a run with a failure, and what the client received."""
    nth = 2 if api in ("JoinGroup", NEW) else 1  # before the first one, there is no member
    program = heartbeating if api == NEW else copying
    received: list[Request] = []
    config = {"sluice.kafka.release": "kafka-3.9"} if api in OLD else {}
    schedule = Schedule((Injection(kind, "shop", api, nth),))
    outcome = execute(lambda run: program(run, received), schedule, Options(config=config))
    of_api = sorted((each.started_ns, each.seq, each) for each in received if each.api == api)
    request = of_api[nth - 1][-1]
    codes = [ErrorCode(code).name for code in request.error_codes if code]
    return outcome, LOST if request.answered_ns is None else ", ".join(codes) or FINE


@pytest.mark.parametrize(("kind", "api"), CELLS, ids=[f"{kind} at {api}" for kind, api in CELLS])
def test_failure_at_a_request(kind: str, api: str) -> None:
    outcome, received = received_at(kind, api)
    assert not outcome.missed
    assert received == IN_A_CELL.get((kind, api), RECEIVES.get(kind, FINE))
    shown_at, text = HAPPENS.get(kind, ("", ""))
    if api == NEW:
        shown_at, text = api, HAPPENS_IN_NEW_GROUP.get(kind, "")
    if api == shown_at:
        assert any(text in what for _, what in outcome.happened), outcome.happened


def test_lost_broker_stays_stopped() -> None:
    outcome, _ = received_at("broker-lost", "Produce")
    assert "broker 1 is running" not in [what for _, what in outcome.happened]


def test_instance_that_is_cancelled_while_it_is_paused_ends_when_it_continues() -> None:
    async def program(run: Run) -> None:
        run.start(lambda: asyncio.sleep(1000))
        await asyncio.sleep(1)
        run.processes.pause("app-1")
        run.processes.cancel("app-1")
        await asyncio.sleep(60)

    outcome = execute(program, Schedule(), Options())
    happened = [what for _, what in outcome.happened]
    assert happened == [
        "app-1 starts",
        "app-1 is paused for 50 s",
        "app-1 is cancelled",
        "app-1 continues",
        "app-2 starts",
    ]
