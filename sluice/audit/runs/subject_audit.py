"""The audit of one subject: runs its probes in parallel, and repeats them until verdicts are certain or time is up.

First each probe runs as often as it requires. Then the probes of a statement run again:

- as often as an inconclusive verdict needs;
- once for a new deviation, so that one bad minute of the machine does not blame a client;
- once after a verdict changed.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.judging import lacks_settings
from sluice.audit.judge.model.observation import Observation, Role
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import Finding, FindingKind, MeasuredBackoff, State, SubjectResult, Verdict
from sluice.audit.probes.probe import Probe
from sluice.audit.subjects.subject import Subject
from sluice.clock import Clock
from sluice.embedded.upstream import Upstream
from sluice.journal_events import Request

from .probe_run import RunResult, is_successful_work, run
from .progress import Budget, Phase, Progress
from .timer_lag import LagMeter
from .worker import Worker, backoffs_of_kept, find_in_kept, forget, judge_kept

_NS = 1e6  # per ms
# Reserves the time of the last judging, plus half of it for findings.
_JUDGED_ONCE_MORE = 1.5


class AuditContext(NamedTuple):
    budget: Budget
    on_progress: Callable[[Progress], None]
    seed: int
    clock: Clock
    meter: LagMeter
    workers: Sequence[Worker]
    stop: asyncio.Event
    upstream: Upstream | None = None


class SubjectAudit:
    def __init__(self, subject: Subject, probes: Sequence[Probe], context: AuditContext) -> None:
        self._subject = subject
        self._probes = {probe.name: probe for probe in probes}
        self._budget, self._on_progress, self._seed, self._clock, self._meter, workers, self._stop, self._upstream = (
            context
        )
        self._judge, *virtual_workers = workers
        self._free: asyncio.Queue[Worker] = asyncio.Queue()  # idle workers for clients in virtual time
        for worker in virtual_workers:
            self._free.put_nowait(worker)
        # All runs use the same topic and group: one after the other in a real cluster.
        at_once = self._budget.at_once if self._upstream is None else 1
        self._at_once = len(virtual_workers) if subject.virtual else at_once
        self._starting = asyncio.Lock()
        self._began_ms = self._clock.monotonic_ms()
        self._done: Counter[str] = Counter()
        self._usable = 0  # runs without a problem
        self._planned = 0
        self._running: list[str] = []
        self._verdicts: dict[str, Verdict] = {}
        self._judged_runs: Counter[str] = Counter()
        self._judging_ms = 0.0
        self._recovery_ms: dict[str, list[float]] = defaultdict(list)
        self._lost: dict[str, list[int]] = defaultdict(list)
        self._problems: Counter[str] = Counter()
        self._version = ""

    async def measure(self) -> SubjectResult:
        """Raise SubjectError if the subject cannot be started."""
        await self._judge.call(forget)
        more = {name: least_runs(probe, self._subject) for name, probe in self._probes.items()}
        while more and await self._round(more):
            more = await self._judged()
            if not self._usable:
                break  # more runs would fail as well
        if self._stop.is_set():
            self._problems[f"stopped after {self._done.total()} of {self._planned} runs"] = 1
        self._report_progress("judging")
        findings = [finding for name in self._probes for finding in await self._judge.call(find_in_kept, name)]
        backoffs = await self._judge.call(backoffs_of_kept)
        self._report_progress("done")
        return self._result([*findings, *self._lost_records()], backoffs)

    # -- runs ----------------------------------------------------------------------------------------------------------

    async def _round(self, more: dict[str, int]) -> int:
        """Run each probe as often as `more` states, while time is left, all probes once before any again.

        Return the number of runs.
        """
        runs = [
            (repetition, self._probes[name])
            for name, count in more.items()
            for repetition in range(self._done[name], self._done[name] + count)
        ]
        runs.sort(key=lambda planned: (planned[0], planned[1].virtual_only, -planned[1].duration_ms))
        before = self._done.total()
        self._planned = before + len(runs)
        at_once = asyncio.Semaphore(self._at_once)
        async with asyncio.TaskGroup() as group:
            for repetition, probe in runs:
                await at_once.acquire()
                if self._stop.is_set() or self._left_ms() < (0 if self._subject.virtual else probe.duration_ms):
                    at_once.release()
                    continue
                task = group.create_task(self._run(probe, repetition))
                task.add_done_callback(lambda _: at_once.release())
        return self._done.total() - before

    def _left_ms(self) -> float:
        spent_ms = self._clock.monotonic_ms() - self._began_ms
        return self._budget.seconds * 1000 - spent_ms - _JUDGED_ONCE_MORE * self._judging_ms

    async def _run(self, probe: Probe, repetition: int) -> None:
        self._running.append(probe.name)
        self._report_progress("measuring")
        try:
            result = await self._unless_stopped(self._run_once(probe, repetition))
            if result is None:
                return
            await self._record(probe, result)
        finally:
            self._running.remove(probe.name)
        self._done[probe.name] += 1
        self._report_progress("measuring")

    async def _unless_stopped(self, running: Coroutine[object, object, RunResult]) -> RunResult | None:
        run, stop = asyncio.create_task(running), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((run, stop), return_when=asyncio.FIRST_COMPLETED)
            return run.result() if run.done() else None
        finally:
            for task in (run, stop):
                task.cancel()
            await asyncio.wait((run, stop))

    async def _run_once(self, probe: Probe, repetition: int) -> RunResult:
        seed = self._seed + repetition
        if self._subject.virtual:
            worker = await self._free.get()
            try:
                return await self._run_virtual(worker, probe, repetition, seed)
            finally:
                self._free.put_nowait(worker)
        return await run(
            self._subject, probe, repetition, seed, self._clock, self._starting, self._meter.measure, self._upstream
        )

    async def _run_virtual(self, worker: Worker, probe: Probe, repetition: int, seed: int) -> RunResult:
        """Run in a worker, limited to the budget, because a storm makes virtual time slow."""
        try:
            left_s = max(0.0, self._left_ms() / 1000)
            return await asyncio.wait_for(worker.run(self._subject.name, probe, repetition, seed), left_s)
        except TimeoutError:
            await worker.end()
            info = self._subject.info(probe.role, probe.settings)
            problem = f"the run exceeded the budget of {self._budget.seconds:.0f} s"
            return RunResult(Observation(probe=probe.name, subject=info, repetition=repetition, problem=problem), [])

    async def _record(self, probe: Probe, result: RunResult) -> None:
        observation = result.observation
        self._version = self._version or observation.subject.version
        self._usable += not observation.problem
        if observation.problem:
            self._problems[f"{probe.name}: {observation.problem}"] += 1
        self._lost[probe.name] += result.lost
        recovery_ms = recovered_after_ms(observation, probe.role)
        if recovery_ms is not None:
            self._recovery_ms[probe.name].append(recovery_ms)
        await self._judge.keep(observation)

    # -- verdicts ------------------------------------------------------------------------------------------------------

    async def _judged(self) -> dict[str, int]:
        """Return the number of further runs by probe."""
        self._report_progress("judging")
        began_ms = self._clock.monotonic_ms()
        more: Counter[str] = Counter()
        for statement in dict.fromkeys(each for probe in self._probes.values() for each in probe.statements):
            about = [name for name, probe in self._probes.items() if statement in probe.statements]
            runs = sum(self._done[name] for name in about)
            if runs == self._judged_runs[statement]:
                continue
            self._judged_runs[statement] = runs
            before = self._verdicts.get(statement)
            verdict = self._verdicts[statement] = await self._judge.call(judge_kept, statement)
            for name in about:
                more[name] = max(more[name], _more_runs(verdict, before))
        self._judging_ms = max(self._judging_ms, self._clock.monotonic_ms() - began_ms)
        left = {name: min(count, self._probes[name].most - self._done[name]) for name, count in more.items()}
        return {name: count for name, count in left.items() if count > 0}

    def _lost_records(self) -> list[Finding]:
        return [
            Finding(
                kind=FindingKind.LOST,
                probe=name,
                why=f"{len(lost)} acknowledged records are not in the log",
                measured={"lost": len(lost), "runs": self._done[name]},
            )
            for name, lost in self._lost.items()
            if lost
        ]

    def _result(self, findings: list[Finding], backoffs: list[MeasuredBackoff]) -> SubjectResult:
        first = next(iter(self._probes.values()))
        info = self._subject.info(first.role, first.settings)
        return SubjectResult(
            subject=info if info.version else msgspec.structs.replace(info, version=self._version),
            verdicts=consistent(list(self._verdicts.values())),
            backoffs=backoffs,
            findings=findings,
            recovery_ms={name: median(times) for name, times in self._recovery_ms.items()},
            probes=dict(self._done),
            problems=[what if count == 1 else f"{what} ({count} times)" for what, count in self._problems.items()],
            seconds=(self._clock.monotonic_ms() - self._began_ms) / 1000,
            virtual=self._subject.virtual,
        )

    def _report_progress(self, phase: Phase) -> None:
        seconds = (self._clock.monotonic_ms() - self._began_ms) / 1000
        done = self._done.total()
        self._on_progress(
            Progress(self._subject.name, phase, done, max(done, self._planned), tuple(self._running), seconds)
        )


def least_runs(probe: Probe, subject: Subject) -> int:
    """Return the runs before the first verdict: one, for findings, if no verdict is possible."""
    info = subject.info(probe.role, probe.settings)
    statements = [STATEMENTS[each] for each in probe.statements]
    is_judged = any(not lacks_settings(each, info) for each in statements)
    return probe.least if is_judged or not statements else 1


def _more_runs(verdict: Verdict, before: Verdict | None) -> int:
    if verdict.state is State.INCONCLUSIVE:
        return verdict.runs_needed or 0
    is_new = before is None or before.state is not verdict.state
    return 1 if is_new and (before is not None or verdict.state is State.DEVIATES) else 0


def recovered_after_ms(observation: Observation, role: Role) -> float | None:
    until_ns = observation.fault_until_ns
    if until_ns is None:
        return None
    successes = (
        event.received_ns
        for event in observation.events
        if isinstance(event, Request) and event.received_ns >= until_ns and is_successful_work(event, role)
    )
    first_ns = next(successes, None)
    return None if first_ns is None else (first_ns - until_ns) / _NS
