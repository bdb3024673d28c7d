"""Naive programs, run as commands: loops whose requests have the rhythm of an application or of the injected fault.

None of them retries the request that its probe lets fail: each failed one is a new call, after a success, after another
failure, or when it is due. So no verdict may be about their waits. The exception is a loop with retries, whose constant
waits deviate.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sluice import testing
from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Observation, Role, SubjectInfo
from sluice.audit.judge.model.verdict import State
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import GROUP, TOPIC, Setting
from sluice.audit.runs.probe_run import run
from sluice.audit.subjects.driven import RunningTask
from sluice.audit.subjects.subject import Job, OnCallback, Subject
from sluice.clock import LoopClock
from sluice.protocol.apis import api_of
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.support.messages import request
from tests.support.wire import error_codes, frame, read_response

SEEDS_PER_PROGRAM = 1000  # all runs of a program have its rhythm
METADATA = request("Metadata", topics=[{"name": TOPIC}])
LIST_OFFSETS = request("ListOffsets", replica_id=-1, topics=[{"name": TOPIC, "partitions": [{"timestamp": -2}]}])
INIT_PRODUCER_ID = request("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
FIND_COORDINATOR = request("FindCoordinator", key=GROUP)
DESCRIBE = request("DescribeGroups", groups=[GROUP])


class Client:
    """One connection at a time, made when it is needed; a request without a response returns [-1]."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._host, _, self._port = bootstrap.partition(",")[0].rpartition(":")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._sent = 0
        self.random = Random(seed)
        self.every_s = Random(seed // SEEDS_PER_PROGRAM).uniform(0.15, 0.45)
        self.member: tuple[str, int] = "", -1

    async def pause(self, seconds: float | None = None) -> None:
        """Wait, by default for the rhythm of this program."""
        await asyncio.sleep((self.every_s if seconds is None else seconds) + self.random.uniform(0, 0.003))

    async def send(self, message: Message, version: int) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, int(self._port))
            await self.send(request("ApiVersions"), 0)
        reader, writer = self._streams
        writer.write(frame(message, version, client_id="loop"))
        size = int.from_bytes(await reader.readexactly(4))
        return read_response(memoryview(await reader.readexactly(size)), api_of(type(message)).key, version)

    async def errors(self, message: Message, version: int) -> list[int]:
        """Send a request and return the error codes of the response."""
        try:
            return error_codes(await self.send(message, version))
        except (OSError, EOFError):
            self.close()
            return [-1]

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    async def produce(self, topic: str = TOPIC) -> list[int]:
        """Send the next record, each with its own content."""
        self._sent += 1
        data = [{"records": build_batch([Record(0, 0, None, b"%d" % self._sent)])}]
        topics = [{"name": topic, "partition_data": data}]
        return await self.errors(request("Produce", acks=-1, timeout_ms=1000, topic_data=topics), 3)

    async def fetch(self) -> list[int]:
        topics = [{"topic": TOPIC, "partitions": [{"fetch_offset": 0, "partition_max_bytes": 1000}]}]
        return await self.errors(request("Fetch", max_wait_ms=5, min_bytes=1, max_bytes=1000, topics=topics), 4)

    async def join(self) -> list[int]:
        """Join the group once, as its only member."""
        timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": b""}]
        member_id, _ = self.member
        joining = request("JoinGroup", group_id=GROUP, member_id=member_id, protocols=protocols, **timeouts)
        joined = await self.send(joining, 2)
        if joined.error_code:
            return [joined.error_code]
        self.member = joined.member_id, joined.generation_id
        own = [{"member_id": joined.member_id, "assignment": b""}]
        return await self.errors(self._of_member("SyncGroup", assignments=own), 1)

    async def heartbeat(self) -> list[int]:
        return await self.errors(self._of_member("Heartbeat"), 1)

    async def commit(self) -> list[int]:
        topics = [{"name": TOPIC, "partitions": [{"committed_offset": 1}]}]
        member_id, generation_id = self.member
        member = {"group_id": GROUP, "member_id": member_id, "generation_id_or_member_epoch": generation_id}
        return await self.errors(request("OffsetCommit", topics=topics, **member), 2)

    def _of_member(self, api: str, **fields: Any) -> Message:
        member_id, generation_id = self.member
        return request(api, group_id=GROUP, generation_id=generation_id, member_id=member_id, **fields)


Loop = Callable[[Client], Awaitable[None]]


async def forever(step: Callable[[], Awaitable[object]], client: Client) -> None:
    while True:
        await step()
        await client.pause()


async def refreshes_after_failures(client: Client) -> None:
    """Refresh metadata once after each failed record, whatever the response, and go on with the next record."""
    while True:
        if await client.produce():
            await client.pause(0.02)
            await client.errors(METADATA, 1)
        await client.pause(0.08)


async def refreshes_now_and_then(client: Client) -> None:
    """Refresh metadata after every third record, whatever the response."""
    while True:
        for _ in range(3):
            await client.produce()
            await client.pause(client.every_s / 3)
        await client.errors(METADATA, 1)


def looks_up_after_failures(join: bool) -> Loop:
    """Look up the coordinator, or rejoin, once after a failed heartbeat, whatever the response."""

    async def loop(client: Client) -> None:
        await client.join()
        while True:
            await client.fetch()
            if await client.heartbeat():
                await client.pause(0.02)
                await (client.join() if join else client.errors(FIND_COORDINATOR, 1))
            await client.pause(0.08)

    return loop


def repeats(step: Callable[[Client], Awaitable[object]]) -> Loop:
    """Join the group, read once, and repeat a step of a member."""

    async def loop(client: Client) -> None:
        await client.join()
        await client.fetch()
        await forever(lambda: step(client), client)

    return loop


def polls_after(message: Message) -> Loop:
    """Look something up, and read records whatever the response."""

    async def loop(client: Client) -> None:
        while True:
            await client.errors(message, 1)
            await client.fetch()
            await client.pause()

    return loop


async def starts_without_an_id(client: Client) -> None:
    while True:
        await client.errors(INIT_PRODUCER_ID, 0)
        for _ in range(2):
            await client.produce()
            await client.pause(client.every_s / 2)


async def describes(client: Client) -> None:
    await forever(lambda: client.errors(DESCRIBE, 0), client)


async def sends_rarely(client: Client) -> None:
    """Connect on demand, less often than any backoff requires."""
    client.every_s += 1
    await forever(client.produce, client)


async def retries(client: Client) -> None:
    """Refresh metadata again after a constant wait until it succeeds, and then send records.

    The wait is longer than the time from a success to the next failure, from which it could not be distinguished, and
    too short after the fourth failure.
    """
    client.every_s = 0.4 + client.every_s / 10
    await client.produce()
    while True:
        if await client.produce():
            while await client.errors(METADATA, 1):
                await client.pause()
        await client.pause(0.08)


@dataclass(frozen=True)
class LoopClient:
    """One program.

    kind: the operation that must have no measured backoff
    settings: those of the probe, unless they differ
    allowed: the states of the verdict that are right
    """

    name: str
    probe: str
    statement: str
    kind: Kind
    loop: Loop
    allowed: frozenset[State] = frozenset({State.NOT_OBSERVABLE, State.INCONCLUSIVE})
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.probe}: {self.name}"


_DEVIATES = frozenset({State.DEVIATES})
_AFTER, _RHYTHM = "once after each failure of something else", "in the rhythm of the application"
_HEARTBEATS: Mapping[str, Setting] = {"heartbeat.interval.ms": 3000}
LOOPS = (
    LoopClient(_AFTER, "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, refreshes_after_failures),
    LoopClient(_RHYTHM, "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, refreshes_now_and_then),
    LoopClient("constant retries", "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, retries, _DEVIATES),
    LoopClient(_RHYTHM, "metadata-unknown-topic", "KIP-580/8", Kind.METADATA, refreshes_now_and_then),
    LoopClient(_AFTER, "metadata-disconnect", "KIP-580/9", Kind.METADATA, refreshes_after_failures),
    LoopClient(_AFTER, "coordinator-lookup-error", "KIP-580/10", Kind.FIND_COORDINATOR, looks_up_after_failures(False)),
    LoopClient(_RHYTHM, "coordinator-lookup-error", "KIP-580/10", Kind.FIND_COORDINATOR, polls_after(FIND_COORDINATOR)),
    LoopClient(_RHYTHM, "commit-error", "KIP-580/10", Kind.OFFSET_COMMIT, repeats(Client.commit)),
    LoopClient(
        _RHYTHM, "heartbeat-error", "KIP-580/11", Kind.HEARTBEAT, repeats(Client.heartbeat), settings=_HEARTBEATS
    ),
    LoopClient(_AFTER, "join-error", "KIP-580/12", Kind.JOIN_GROUP, looks_up_after_failures(True)),
    LoopClient(_RHYTHM, "list-offsets-error", "KIP-580/13", Kind.LIST_OFFSETS, polls_after(LIST_OFFSETS)),
    LoopClient(_RHYTHM, "init-producer-id-error", "KIP-580/14", Kind.INIT_PRODUCER_ID, starts_without_an_id),
    LoopClient(_RHYTHM, "admin-error", "KIP-580/15", Kind.ADMIN, describes),
    LoopClient(_RHYTHM, "reconnect-closed", "KIP-144/1", Kind.CONNECT, sends_rarely),
    LoopClient(_RHYTHM, "reconnect-closed", "KIP-144/2", Kind.CONNECT, sends_rarely),
    LoopClient(_RHYTHM, "reconnect-closed", "KIP-144/9", Kind.CONNECT, sends_rarely),
    LoopClient(_RHYTHM, "reconnect-after-versions", "KIP-144/3", Kind.CONNECT, sends_rarely),
)


class LoopSubject(Subject):
    """A program as a command in virtual time."""

    virtual = True

    def __init__(self, client: LoopClient) -> None:
        super().__init__("loop", None)
        self._client = client

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return SubjectInfo(name=self.name, role=role, settings={**settings, **self._client.settings}, is_command=True)

    async def start(self, job: Job, on_callback: OnCallback) -> RunningTask:
        with testing.network().host("client"):
            return RunningTask(asyncio.create_task(self._run(Client(job.bootstrap, job.seed))))

    async def _run(self, client: Client) -> None:
        try:
            while True:
                with suppress(OSError, EOFError):
                    await self._client.loop(client)
                client.close()
                await client.pause()
        finally:
            client.close()


def observe_loop(client: LoopClient, seed: int) -> Observation:
    async def main() -> Observation:
        clock = LoopClock(asyncio.get_running_loop())
        subject = LoopSubject(client)
        result = await run(subject, PROBES[client.probe], seed, seed, clock, asyncio.Lock(), lambda: lambda: 0.0)
        return result.observation

    return testing.run(main(), seed=seed)
