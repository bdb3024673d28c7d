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
from sluice.audit.probes import GROUP, PROBES, TOPIC, Setting
from sluice.audit.runs.probe_run import run
from sluice.audit.subjects import Job, Subject
from sluice.audit.subjects.driven import RunningTask
from sluice.audit.subjects.subject import OnCallback
from sluice.clock import LoopClock
from sluice.protocol.apis import api_of
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.support.wire import error_codes, frame, read_response

SEEDS_PER_PROGRAM = 1000  # all runs of a program have its rhythm
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
LIST_OFFSETS = ListOffsetsRequest(
    replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(timestamp=-2)])]
)
INIT_PRODUCER_ID = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
FIND_COORDINATOR = FindCoordinatorRequest(key=GROUP)
DESCRIBE = DescribeGroupsRequest(groups=[GROUP])


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

    async def send(self, request: Message, version: int) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, int(self._port))
            await self.send(ApiVersionsRequest(), 0)
        reader, writer = self._streams
        writer.write(frame(request, version, client_id="loop"))
        size = int.from_bytes(await reader.readexactly(4))
        return read_response(memoryview(await reader.readexactly(size)), api_of(type(request)).key, version)

    async def errors(self, request: Message, version: int) -> list[int]:
        """Send a request and return the error codes of the response."""
        try:
            return error_codes(await self.send(request, version))
        except (OSError, EOFError):
            self.close()
            return [-1]

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    async def produce(self, topic_name: str = TOPIC) -> list[int]:
        """Send the next record, each with its own content."""
        self._sent += 1
        data = PartitionProduceData(records=build_batch([Record(0, 0, None, b"%d" % self._sent)]))
        topic = TopicProduceData(name=topic_name, partition_data=[data])
        return await self.errors(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 3)

    async def fetch(self) -> list[int]:
        topic = FetchTopic(topic=TOPIC, partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=1000)])
        return await self.errors(FetchRequest(max_wait_ms=5, min_bytes=1, max_bytes=1000, topics=[topic]), 4)

    async def join(self) -> list[int]:
        """Join the group once, as its only member."""
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        joined = await self.send(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id=self.member[0],
                protocol_type="consumer",
                protocols=protocols,
            ),
            2,
        )
        if joined.error_code:
            return [joined.error_code]
        self.member = joined.member_id, joined.generation_id
        own = SyncGroupRequestAssignment(member_id=self.member[0], assignment=b"")
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.member[1], member_id=self.member[0], assignments=[own]
        )
        return await self.errors(request, 1)

    async def heartbeat(self) -> list[int]:
        member_id, generation_id = self.member
        return await self.errors(HeartbeatRequest(group_id=GROUP, generation_id=generation_id, member_id=member_id), 1)

    async def commit(self) -> list[int]:
        member_id, generation_id = self.member
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[OffsetCommitRequestPartition(committed_offset=1)])
        return await self.errors(
            OffsetCommitRequest(
                group_id=GROUP, generation_id_or_member_epoch=generation_id, member_id=member_id, topics=[topic]
            ),
            2,
        )


Loop = Callable[[Client], Awaitable[None]]


async def forever(step: Callable[[], Awaitable[object]], client: Client) -> None:
    while True:
        await step()
        await client.pause()


def refreshes_after_failures(request: Message, version: int, pause_s: float = 0.02) -> Loop:
    """Send `request` once after each failed record, whatever its response, and go on with the next record."""

    async def loop(client: Client) -> None:
        while True:
            if await client.produce():
                await client.pause(pause_s)
                await client.errors(request, version)
            await client.pause(0.08)

    return loop


def refreshes_now_and_then(request: Message, version: int) -> Loop:
    """Send `request` after every third record, whatever its response."""

    async def loop(client: Client) -> None:
        while True:
            for _ in range(3):
                await client.produce()
                await client.pause(client.every_s / 3)
            await client.errors(request, version)

    return loop


def looks_up_after_failures(join: bool) -> Callable[[Client], Awaitable[None]]:
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


async def commits(client: Client) -> None:
    await client.join()
    await client.fetch()
    await forever(client.commit, client)


async def beats(client: Client) -> None:
    await client.join()
    await client.fetch()
    await forever(client.heartbeat, client)


def polls_after(request: Message, version: int) -> Loop:
    """Look something up, and read records whatever the response."""

    async def loop(client: Client) -> None:
        while True:
            await client.errors(request, version)
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


def retries(request: Message, version: int) -> Loop:
    """Send `request` again after a constant wait until it succeeds, and then records.

    The wait is longer than the time from a success to the next failure, from which it could not be distinguished, and
    too short after the fourth failure.
    """

    async def loop(client: Client) -> None:
        client.every_s = 0.4 + client.every_s / 10
        await client.produce()
        while True:
            if await client.produce():
                while await client.errors(request, version):
                    await client.pause()
            await client.pause(0.08)

    return loop


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
LOOPS = (
    LoopClient(
        _AFTER, "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, refreshes_after_failures(METADATA, 1)
    ),
    LoopClient(
        _RHYTHM, "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, refreshes_now_and_then(METADATA, 1)
    ),
    LoopClient(
        "constant retries", "metadata-leader-not-available", "KIP-580/8", Kind.METADATA, retries(METADATA, 1), _DEVIATES
    ),
    LoopClient(_RHYTHM, "metadata-unknown-topic", "KIP-580/8", Kind.METADATA, refreshes_now_and_then(METADATA, 1)),
    LoopClient(_AFTER, "metadata-disconnect", "KIP-580/9", Kind.METADATA, refreshes_after_failures(METADATA, 1)),
    LoopClient(
        _AFTER, "coordinator-lookup-error", "KIP-580/10", Kind.FIND_COORDINATOR, looks_up_after_failures(join=False)
    ),
    LoopClient(
        _RHYTHM, "coordinator-lookup-error", "KIP-580/10", Kind.FIND_COORDINATOR, polls_after(FIND_COORDINATOR, 1)
    ),
    LoopClient(_RHYTHM, "commit-error", "KIP-580/10", Kind.OFFSET_COMMIT, commits),
    LoopClient(
        _RHYTHM, "heartbeat-error", "KIP-580/11", Kind.HEARTBEAT, beats, settings={"heartbeat.interval.ms": 3000}
    ),
    LoopClient(_AFTER, "join-error", "KIP-580/12", Kind.JOIN_GROUP, looks_up_after_failures(join=True)),
    LoopClient(_RHYTHM, "list-offsets-error", "KIP-580/13", Kind.LIST_OFFSETS, polls_after(LIST_OFFSETS, 1)),
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
