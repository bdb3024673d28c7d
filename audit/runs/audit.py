"""The audit of several subjects, one after the other: at the same time they would make each other late."""

import asyncio
import logging
import os
import platform
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import AuditResult, SubjectResult
from sluice.audit.probes import Probe
from sluice.audit.subjects import Subject
from sluice.clock import LoopClock
from sluice.errors import ConfigError, SluiceError
from sluice.version import __version__

from .progress import DEFAULT_BUDGET, Budget, Progress
from .role_detection import detect_role
from .subject_audit import AuditContext, SubjectAudit
from .timer_lag import LagMeter
from .worker import Worker

log = logging.getLogger("sluice")


async def audit(
    subjects: Sequence[Subject],
    probes: Sequence[Probe],
    *,
    budget: Budget = DEFAULT_BUDGET,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    seed: int = 0,
    stop: asyncio.Event | None = None,
) -> AuditResult:
    """Looks at each subject under each probe that is for its role. When `stop` is set, the runs under way are given up,
    and what was measured until then is judged; subjects whose turn has not come are left out.

    Raises SluiceError, one line, for a subject that cannot run here or does not begin, and for probes none of which is
    for it.
    """
    if not subjects or not probes:
        raise ConfigError(f"an audit is of subjects, here {len(subjects)}, under probes, here {len(probes)}")
    for subject in subjects:
        missing = subject.missing()
        if missing is not None:
            raise SluiceError(missing)
    clock = LoopClock(asyncio.get_running_loop())
    began = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    meter = LagMeter(clock)
    stop = stop or asyncio.Event()
    try:
        with _quiet_brokers():
            async with _workers(any(subject.virtual for subject in subjects)) as workers:
                context = AuditContext(budget, on_progress, seed, clock, meter, workers, stop)
                results = [await _of_one(subject, probes, context) for subject in subjects if not stop.is_set()]
    finally:
        meter.stop()
    return AuditResult(
        sluice=__version__,
        began=began.isoformat(timespec="seconds"),
        machine=f"{os.cpu_count()} processors, Python {platform.python_version()}, {platform.platform()}",
        subjects=results,
    )


async def _of_one(subject: Subject, probes: Sequence[Probe], context: AuditContext) -> SubjectResult:
    try:
        roles = subject.roles or frozenset({await detect_role(subject, context.clock)})
        wanted = [probe for probe in probes if probe.role in roles and (subject.virtual or not probe.virtual_only)]
        if not wanted:
            raise ConfigError(f"{subject.name} is a {_listed(roles)}: none of the probes is for that")
        return await SubjectAudit(subject, wanted, context).measure()
    finally:
        await subject.close()


def _listed(roles: frozenset[Role]) -> str:
    return " and a ".join(sorted(roles))


@asynccontextmanager
async def _workers(is_virtual: bool) -> AsyncIterator[list[Worker]]:
    """One to judge; where clients live in virtual time, one more for each processor."""
    async with AsyncExitStack() as stack:
        workers = []
        for _ in range(1 + (os.cpu_count() or 1) * is_virtual):
            worker = Worker()
            stack.push_async_callback(worker.end)
            workers.append(worker)
        yield workers


@contextmanager
def _quiet_brokers() -> Iterator[None]:
    """Brokers log each connection that they close on purpose: nobody wants to read thousands of that."""
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
