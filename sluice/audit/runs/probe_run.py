"""One run of one probe with one subject: its cluster, the subject, the faults, and the observation.

The cluster shares the event loop, and so the clock, with the code that reads the drivers' output; judging is slow, and
has its own process (worker.py).
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from sluice.audit.judge.model.observation import Callback, Observation, Role, SubjectInfo
from sluice.audit.probes.probe import FREE_ADDRESS, GROUP, RECORDS, TOPIC, Begin, Probe
from sluice.audit.subjects.subject import Job, Running, Subject
from sluice.client.consumer import Consumer, OffsetAndMetadata, TopicPartition
from sluice.client.producer import Producer
from sluice.clock import Clock, sleep_ms
from sluice.embedded.broker import Broker
from sluice.embedded.upstream import Upstream
from sluice.errors import SluiceError
from sluice.journal_events import AnyEvent, ClientEvent, ConnectionOpened, Request, ScenarioStep
from sluice.protocol.errors import ErrorCode

from .hints import did_nothing, not_connected
from .real_cluster import brokers_for

# A Java client takes seconds to start on a busy machine.
_WORKS_WITHIN_MS = 20_000.0
_STARTS_WITHIN_MS = 5000.0
_LOOK_EVERY_MS = 50.0
_READ_S = 60.0  # a busy machine needs seconds
# The requests that show that a client works; for an admin client, all but _BEFORE_WORK.
_WORK = {Role.PRODUCER: ("Produce",), Role.CONSUMER: ("Fetch",)}
# The end of a command that may have done all its work.
_NO_CRASH = "exited with 0"
_BEFORE_WORK = frozenset({"ApiVersions", "Metadata", "GetTelemetrySubscriptions"})
_NS_PER_MS = 1_000_000


class RunResult(NamedTuple):
    """The result of a run; `lost` are the numbers of acknowledged records that are not in the log."""

    observation: Observation
    lost: list[int]


class ProbeRun:
    """A run, from before the subject's start until after its end."""

    def __init__(
        self, broker: Broker, subject: Subject, probe: Probe, seed: int, clock: Clock, starting: asyncio.Lock
    ) -> None:
        self._broker = broker
        self._subject = subject
        self._probe = probe
        self._seed = seed
        self._clock = clock
        self._starting = starting
        self._running: Running | None = None
        self._faults: asyncio.Task[object] | None = None
        self.callbacks: list[Callback] = []
        self._refused = ""
        self.is_client_failure = False
        self.first_seq = broker.journal.last_seq

    async def execute(self) -> str:
        """Run the probe; return why it failed, or "".

        Raises:
            SubjectError: The subject cannot be started.
        """
        try:
            if self._probe.begins is Begin.AT_ONCE:
                self._begin_faults()
                await sleep_ms(self._clock, 0)  # the task of the faults runs first
                await self._begin_subject()
            else:
                await self._begin_subject()
                problem = await self._until_it_works()
                if problem:
                    return problem
                self._begin_faults()
            return await self._until_over()
        finally:
            await self._end()

    def events(self) -> list[AnyEvent]:
        events = self._broker.journal.events(after=self.first_seq)
        own = {event.connection for event in events if isinstance(event, ConnectionOpened)}
        return [event for event in events if not isinstance(event, ClientEvent) or event.connection in own]

    def _begin_faults(self) -> None:
        self._faults = asyncio.create_task(self._broker.run_scenario(self._probe.cluster))

    async def _begin_subject(self) -> None:
        """Start the subject; one at a time, because a start delays other runs."""
        probe = self._probe
        async with self._starting:
            job = Job(
                bootstrap=self._broker.bootstrap,
                role=probe.role,
                workload=probe.workload,
                settings=probe.settings,
                seed=self._seed,
            )
            self._running = await self._subject.start(job, self._on_callback)
            await self._shows_activity(_STARTS_WITHIN_MS)

    async def _until_it_works(self) -> str:
        role, until_ms = self._probe.role, self._clock.monotonic_ms() + _WORKS_WITHIN_MS
        while not any(isinstance(event, Request) and is_successful_work(event, role) for event in self.events()):
            problem = self._problem()
            if not problem and self._clock.monotonic_ms() > until_ms:
                assert self._running is not None
                problem = _never_worked(self._running, self.events(), role)
                self.is_client_failure = any(
                    isinstance(event, Request) and _is_work(event, role) for event in self.events()
                )
            if problem:
                return problem
            await sleep_ms(self._clock, _LOOK_EVERY_MS)
        return ""

    async def _until_over(self) -> str:
        assert self._faults is not None
        is_working = self._probe.begins is Begin.WORKING
        while not self._faults.done() and not (is_working and self._problem()):
            await sleep_ms(self._clock, _LOOK_EVERY_MS)
        if is_working and (problem := self._problem()):
            assert self._running is not None
            self.is_client_failure = not self._refused and not (self._running.ended() or "").startswith(_NO_CRASH)
            return problem
        self._faults.result()
        if is_working:
            return ""
        return "" if await self._shows_activity(_WORKS_WITHIN_MS) else "the client did not start"

    async def _shows_activity(self, within_ms: float) -> bool:
        until_ms = self._clock.monotonic_ms() + within_ms
        while not (self.callbacks or self._problem() or _has_connected(self.events())):
            if self._clock.monotonic_ms() > until_ms:
                return False
            await sleep_ms(self._clock, _LOOK_EVERY_MS)
        return True

    def _on_callback(self, callback: Callback) -> None:
        self.callbacks.append(callback)
        if callback.event == "rejected":
            self._refused = callback.text or callback.error

    def _problem(self) -> str:
        assert self._running is not None
        if self._refused:
            return f"the client rejects its settings: {self._refused}"
        ended = self._running.ended()
        # Without the address, which differs in each run, equal problems are counted together.
        return "" if ended is None else f"the client ended: {ended}".replace(self._broker.bootstrap, "{bootstrap}")

    async def _end(self) -> None:
        """End the subject before the faults, so that it does not react to their end."""
        try:
            if self._running is not None:
                await self._running.end()
        finally:
            if self._faults is not None and not self._faults.done():
                self._faults.cancel()
                await asyncio.wait([self._faults])


async def run(
    subject: Subject,
    probe: Probe,
    repetition: int,
    seed: int,
    clock: Clock,
    starting: asyncio.Lock,
    lag: Callable[[], Callable[[], float]],
    upstream: Upstream | None = None,
) -> RunResult:
    """Run once. `lag` starts a measurement and returns a function for its result. Raises SluiceError."""
    probe = _at_free_port(probe)
    async with brokers_for(probe, seed, upstream) as broker:
        await _prepare(broker, probe)
        probe_run = ProbeRun(broker, subject, probe, seed, clock, starting)
        lag_ms = lag()
        began_ns = clock.wall_ms() * _NS_PER_MS
        problem = await probe_run.execute()
        events = probe_run.events()
        fault_from_ns, fault_until_ns = _fault_ns(probe, events)
        observation = Observation(
            probe=probe.name,
            subject=_with_software_version(subject.info(probe.role, probe.settings), events),
            repetition=repetition,
            seed=seed,
            events=events,
            callbacks=sorted(probe_run.callbacks, key=lambda callback: callback.at_ns),
            fault_from_ns=fault_from_ns,
            fault_until_ns=fault_until_ns,
            began_ns=began_ns,
            ended_ns=clock.wall_ms() * _NS_PER_MS,
            lag_ms=lag_ms(),
            virtual=subject.virtual,
            problem=problem,
            is_client_failure=probe_run.is_client_failure,
        )
        return RunResult(observation, await _lost(broker, probe_run.callbacks))


def _at_free_port(probe: Probe) -> Probe:
    config = probe.cluster.config
    if not any(FREE_ADDRESS in str(value) for value in config.values()):
        return probe
    # A loop in virtual time has its own sockets.
    bind: Callable[[str, int, int], socket.socket] = getattr(asyncio.get_running_loop(), "bind", _bind)
    listening = bind("127.0.0.1", 0, 1)
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    listening.close()
    resolved = {
        name: value.replace(FREE_ADDRESS, address) if isinstance(value, str) else value
        for name, value in config.items()
    }
    return msgspec.structs.replace(probe, cluster=msgspec.structs.replace(probe.cluster, config=resolved))


def _bind(host: str, port: int, backlog: int) -> socket.socket:
    return socket.create_server((host, port), backlog=backlog)


def is_successful_work(request: Request, role: Role) -> bool:
    return _is_work(request, role) and request.answered_ns is not None and not request.error_codes


def _is_work(request: Request, role: Role) -> bool:
    return request.api in _WORK[role] if role in _WORK else request.api not in _BEFORE_WORK


def _has_connected(events: Sequence[AnyEvent]) -> bool:
    return any(isinstance(event, ConnectionOpened) for event in events)


def _never_worked(running: Running, events: Sequence[AnyEvent], role: Role) -> str:
    within = f"within {_WORKS_WITHIN_MS / 1000:.0f} s"
    if not _has_connected(events):
        return f"the client {not_connected(running, within)}"
    requests = (event for event in events if isinstance(event, Request) and _is_work(event, role))
    failed = Counter((request.api, _end_of(request)) for request in requests)
    if not failed:
        what = " or ".join(_WORK.get(role, ("any call",)))
        return did_nothing(running, f"the client connected, but no {what} succeeded {within}")
    (api, end), count = failed.most_common(1)[0]
    return did_nothing(running, f"{count} of {failed.total()} {api} requests {within} {end}")


def _end_of(request: Request) -> str:
    if not request.error_codes:
        return "got no response"
    return f"got {ErrorCode(request.error_codes[0]).name}"


async def _prepare(broker: Broker, probe: Probe) -> None:
    for topic in probe.cluster.topics:
        assert topic.assignments is not UNSET, topic
        await broker.cluster.create_topic(topic.name, assignments=dict(enumerate(topic.assignments)))
    if probe.role is Role.CONSUMER:
        async with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            for number in range(RECORDS):
                await producer.send(TOPIC, b"%d" % number, partition=0)
    if probe.role is Role.ADMIN:
        config = {"bootstrap.servers": broker.bootstrap, "group.id": GROUP}
        async with Consumer(config) as member:
            member.assign([TopicPartition(TOPIC, 0)])
            await member.commit({TopicPartition(TOPIC, 0): OffsetAndMetadata(0)})


def _fault_ns(probe: Probe, events: Sequence[AnyEvent]) -> tuple[int | None, int | None]:
    began = next((event.at_ns for event in events if isinstance(event, ScenarioStep)), None)
    fault_ms = probe.fault_ms()
    if began is None or fault_ms is None:
        return None, None
    from_ms, until_ms = fault_ms
    return began + round(from_ms * _NS_PER_MS), None if until_ms is None else began + round(until_ms * _NS_PER_MS)


def _with_software_version(info: SubjectInfo, events: Sequence[AnyEvent]) -> SubjectInfo:
    versions = (event.software_version for event in events if isinstance(event, Request) and event.software_version)
    return info if info.version else msgspec.structs.replace(info, version=next(versions, ""))


async def _lost(broker: Broker, callbacks: Sequence[Callback]) -> list[int]:
    """Return the acknowledged records that the log does not have. Raises SluiceError if it cannot be read."""
    acknowledged = {callback.record for callback in callbacks if callback.event == "delivered"}
    if not acknowledged:
        return []
    partitions = [
        TopicPartition(TOPIC, number) for number in {callback.partition for callback in callbacks} if number >= 0
    ]
    try:
        async with (
            asyncio.timeout(_READ_S),
            Consumer({"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest"}) as consumer,
        ):
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            while acknowledged and any([await consumer.position(each) < end for each, end in ends.items()]):
                acknowledged -= {int(record.value or b"-1") for record in await consumer.poll(200)}
    except TimeoutError:
        raise SluiceError(f"cannot read the log of topic {TOPIC} within {_READ_S:.0f} s") from None
    return sorted(acknowledged)
