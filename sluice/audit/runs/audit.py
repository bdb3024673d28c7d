"""The audit of several subjects, one after the other, because parallel audits would delay each other's timers."""

import asyncio
import logging
import os
import platform
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import AuditResult, SubjectResult
from sluice.audit.probes.probe import TOPIC, Probe, Produce
from sluice.audit.subjects.command import CommandSubject
from sluice.audit.subjects.subject import Job, Subject
from sluice.clock import Clock, LoopClock, sleep_ms
from sluice.embedded.broker import Broker
from sluice.embedded.upstream import Upstream
from sluice.errors import ConfigError, SluiceError, SubjectError
from sluice.journal_events import AnyEvent, ConnectionOpened, Request
from sluice.version import __version__

from .hints import not_connected
from .observation_files import observation_file
from .progress import DEFAULT_BUDGET, Budget, Progress
from .real_cluster import node_ids_of, why_not
from .subject_audit import AuditContext, SubjectAudit
from .timer_lag import LagMeter
from .worker import Worker, save_kept

log = logging.getLogger("sluice")


async def audit(
    subjects: Sequence[Subject],
    probes: Sequence[Probe],
    *,
    budget: Budget = DEFAULT_BUDGET,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    seed: int = 0,
    stop: asyncio.Event | None = None,
    report: Path | None = None,
    upstream: Upstream | None = None,
) -> AuditResult:
    """Audit each subject with the probes for its role.

    Args:
        subjects: The clients.
        probes: The probes; those for other roles are skipped.
        budget: Time and parallel runs per subject.
        on_progress: Called at each change.
        seed: Seed of brokers and faults.
        report: Folder of the report, where the observations are kept; None discards them.
        upstream: A real cluster, in front of which proxies take the place of the brokers.
        stop: Ends the audit when set. The result has the runs until then, and no subjects that had not started.

    Raises:
        SluiceError: A subject cannot run here or does not start, or no probe is for its role.
    """
    if not subjects or not probes:
        raise ConfigError(f"audit: expected subjects and probes, got {len(subjects)} subjects, {len(probes)} probes")
    for subject in subjects:
        missing = subject.missing()
        if missing is not None:
            raise SluiceError(missing)
    unfit = {} if upstream is None else await _unfit(probes, upstream)
    for subject in subjects:
        await subject.prepare()
    clock = LoopClock(asyncio.get_running_loop())
    began = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    meter = LagMeter(clock)
    stop = stop or asyncio.Event()
    try:
        with _quiet_brokers():
            async with _workers(any(subject.virtual for subject in subjects)) as workers:
                context = AuditContext(budget, on_progress, seed, clock, meter, workers, stop, upstream)
                results = []
                for subject in subjects:
                    if stop.is_set():
                        break
                    results.append(await _of_one(subject, probes, unfit, context))
                    if report is not None:
                        await workers[0].call(save_kept, observation_file(report, len(results) - 1))
    finally:
        meter.stop()
    return AuditResult(
        sluice=__version__,
        began=began.isoformat(timespec="seconds"),
        machine=f"{os.cpu_count()} processors, Python {platform.python_version()}, {platform.platform()}",
        upstream="" if upstream is None else upstream.bootstrap,
        subjects=results,
    )


async def _unfit(probes: Sequence[Probe], upstream: Upstream) -> dict[str, str]:
    """Return why probes cannot run in front of a cluster, by name."""
    node_ids = await node_ids_of(upstream)
    return {probe.name: reason for probe in probes if (reason := why_not(probe, node_ids)) is not None}


async def _of_one(
    subject: Subject, probes: Sequence[Probe], unfit: Mapping[str, str], context: AuditContext
) -> SubjectResult:
    try:
        roles = subject.roles or frozenset({await detect_role(subject, context.clock)})
        wanted = [probe for probe in probes if probe.role in roles and _can_run(probe, subject)]
        if not wanted:
            raise ConfigError(f"{subject.name}: no probe is for a {_listed(roles)}")
        runnable = [probe for probe in wanted if probe.name not in unfit]
        if not runnable:
            raise ConfigError(f"{wanted[0].name}: not applicable with --upstream: {unfit[wanted[0].name]}")
        result = await SubjectAudit(subject, runnable, context).measure()
        not_applicable = {probe.name: unfit[probe.name] for probe in wanted if probe.name in unfit}
        return msgspec.structs.replace(result, not_applicable=not_applicable)
    finally:
        await subject.close()


def _can_run(probe: Probe, subject: Subject) -> bool:
    if probe.needs_settings and isinstance(subject, CommandSubject):
        return False
    if subject.virtual:
        return probe.settings.get("security.protocol") != "SSL"  # the in-memory network has no TLS
    return not probe.virtual_only


def _listed(roles: frozenset[Role]) -> str:
    return " and a ".join(sorted(roles))


@asynccontextmanager
async def _workers(is_virtual: bool) -> AsyncIterator[list[Worker]]:
    """Yield one worker for the judge, and one per processor for virtual clients."""
    async with AsyncExitStack() as stack:
        workers = []
        for _ in range(1 + (os.cpu_count() or 1) * is_virtual):
            worker = Worker()
            stack.push_async_callback(worker.end)
            workers.append(worker)
        yield workers


@contextmanager
def _quiet_brokers() -> Iterator[None]:
    """Suppress the log messages about connections that the faults close."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


_WITHIN_MS = 20_000.0
_LOOK_EVERY_MS = 50.0
_BY_API = {
    "Produce": Role.PRODUCER,
    "Fetch": Role.CONSUMER,
    "CreateTopics": Role.ADMIN,
    "DeleteTopics": Role.ADMIN,
    "DescribeConfigs": Role.ADMIN,
    "DescribeCluster": Role.ADMIN,
    "DescribeGroups": Role.ADMIN,
    "ListGroups": Role.ADMIN,
}


async def detect_role(subject: Subject, clock: Clock) -> Role:
    """Return the role; raise SubjectError for a command that does not start, ends, or sends no conclusive request."""
    async with Broker() as broker:
        await broker.cluster.create_topic(TOPIC)
        job = Job(bootstrap=broker.bootstrap, role=Role.PRODUCER, workload=Produce(), settings={}, seed=0)
        running = await subject.start(job, lambda callback: None)
        try:
            until_ms = clock.monotonic_ms() + _WITHIN_MS
            while clock.monotonic_ms() < until_ms:
                events = broker.journal.events()
                role = _role_in(events)
                if role is not None:
                    return role
                ended = running.ended()
                if ended is not None:
                    raise SubjectError(f"{subject.name}: {ended} before it sent a request")
                await sleep_ms(clock, _LOOK_EVERY_MS)
        finally:
            await asyncio.shield(running.end())
    within = f"within {_WITHIN_MS / 1000:.0f} s"
    if not any(isinstance(event, ConnectionOpened) for event in events):
        raise SubjectError(f"{subject.name}: {not_connected(running, within)}")
    raise SubjectError(f"{subject.name}: sent no {', '.join(_BY_API)} {within}. Specify its role")


def _role_in(events: Sequence[AnyEvent]) -> Role | None:
    apis = (event.api for event in events if isinstance(event, Request))
    return next((_BY_API[api] for api in apis if api in _BY_API), None)
