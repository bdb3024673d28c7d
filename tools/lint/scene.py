"""A run of the lint matrix: brokers, the client under test, and other clients; its result is a journal."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import msgspec

from sluice import Broker, testing
from sluice.broker.journal.reader import JournalReader
from sluice.journal_events import AnyEvent, ClientEvent
from tools.lint.clients import Client
from tools.lint.drivers import aiokafka_driver
from tools.lint.job import Job, Settings

Fault = dict[str, Any]  # a fault rule
JOURNAL_EVENTS = 200_000
PRELOADER = "preloader"  # its events are not judged
FEEDER = "feeder"
# As its documentation recommends.
HEALTHY: Settings = {"acks": "all", "enable_idempotence": True, "linger_ms": 50, "compression_type": "gzip"}
WORKERS_GRACE_S = 60  # far longer than any job takes after its stated duration


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everything around the clients; the first job is that of the client under test."""

    jobs: list[Job]
    topics: dict[str, int] = msgspec.field(
        default_factory=lambda: {"orders": 2}
    )  # partitions by topic; others are created on request
    preload: dict[str, int] = {}  # records by topic, written before the clients start
    feed_ms: float = 0  # write a record to the first topic at this interval; 0: none
    feed_size: int = 100
    properties: dict[str, str | float] = {}
    brokers: int = 1
    quota: dict[str, Any] = {}  # of the client under test: produce, fetch, request
    faults: list[Fault] = []
    restart_ms: float = 0  # stop broker 1 at this time, and start it `down_ms` later; 0: never
    down_ms: float = 1_000
    sasl: bool = False  # log in as alice by PLAIN; her password is alice-secret
    acls: list[dict[str, Any]] = []  # with `sasl`
    fails: bool = False  # whether the jobs may end with an error


class Run(msgspec.Struct, frozen=True):
    """The result: events in order, and errors of the jobs."""

    events: Sequence[AnyEvent]
    failures: Sequence[str]


async def play(scene: Scene, client: Client) -> Run:
    """Run the scene with a client, in the running loop."""
    await client.prepare(len(scene.jobs))
    config = {"sluice.journal.events": JOURNAL_EVENTS, **scene.properties}
    security: dict[str, Any] = {"sasl": "PLAIN", "acls": scene.acls} if scene.sasl else {}
    async with Broker(scene.brokers, config=config, **security) as broker:
        for topic, partitions in scene.topics.items():
            await broker.cluster.create_topic(topic, partitions=partitions, replication_factor=scene.brokers)
        for topic, count in scene.preload.items():
            await broker.client(PRELOADER).send(topic, *[bytes(100)] * count)
        with ExitStack() as stack:
            if scene.quota:
                # A client without an id of its own, the only one that is throttled, has the quota of all.
                stack.enter_context(broker.quota(client_id=scene.jobs[0].client_id or None, **scene.quota))
            for fault in scene.faults:
                stack.enter_context(broker.faults.add(fault))
            async with _beside(scene, broker):
                failures = await asyncio.gather(*[_do(broker, client, job) for job in scene.jobs])
        run = Run(_events(broker.journal), [failure for failure in failures if failure])
        await client.end_run(broker.bootstrap)
        return run


def play_virtually(scene: Scene, client: Client, seed: int) -> Run:
    """Run the scene in virtual time; the client must be one of asyncio."""
    return testing.run(play(scene, client), seed=seed)


async def _do(broker: Broker, client: Client, job: Job) -> str:
    await asyncio.sleep(job.start_ms / 1e3)
    try:
        await client.do(broker.bootstrap, job)
    except Exception as error:  # any, in any language; the harness reports it
        return str(error) or repr(error)
    return ""


@asynccontextmanager
async def _beside(scene: Scene, broker: Broker) -> AsyncIterator[None]:
    """Restart a broker, and feed the first topic, while the clients run."""
    tasks = []
    if scene.restart_ms:
        tasks.append(asyncio.create_task(_restart(scene, broker)))
    if scene.feed_ms:
        topic = next(iter(scene.topics))
        job = Job(
            role="produce", client_id=FEEDER, settings=HEALTHY, topics=(topic,), bursts=10**9,
            every_ms=scene.feed_ms, size=scene.feed_size, wait=False,
        )  # fmt: skip
        tasks.append(asyncio.create_task(aiokafka_driver.run(broker.bootstrap, job)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _restart(scene: Scene, broker: Broker) -> None:
    await asyncio.sleep(scene.restart_ms / 1e3)
    await broker.cluster.stop(1)
    await asyncio.sleep(scene.down_ms / 1e3)
    await broker.cluster.start(1)


def _events(journal: JournalReader) -> list[AnyEvent]:
    events = journal.events()
    return [each for each in events if not (isinstance(each, ClientEvent) and each.client_id == PRELOADER)]
