"""A run of a scenario: executes the actions of its timeline on time, reports them, and records them in the journal.

A run continues after a failed action: a leader that cannot be moved must not leave the cluster without its brokers. At
the end, brokers, quotas and configs are restored unless `keep` is set; topics, records and leaders are not.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import count

from msgspec import UNSET

from sluice.broker.controller.controller import BrokerState
from sluice.broker.scenarios.steps.action import ExpectedState, ScenarioContext
from sluice.broker.scenarios.steps.topics import InitialTopic
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import TimerHandle
from sluice.config.broker_config import Config
from sluice.config.value_types import text_of
from sluice.errors import ClusterError, ProxyError, SluiceError, UnknownResourceError
from sluice.journal_events import NO_ID

from .model import Scenario
from .report import RuleReport, RunReport, StepDone
from .timeline import Moment, timeline

log = logging.getLogger("sluice.broker")

_KIND = "scenario-step"
_MOST_RUNS = 100  # finished ones to keep


class RunState(Enum):
    NEW = "new"
    RUNNING = "running"
    ENDED = "ended"  # on time
    STOPPED = "stopped"  # early


class Run:
    """One run; `on_step` is called with each executed step."""

    def __init__(
        self,
        scenario: Scenario,
        server: ClusterServer,
        *,
        on_step: Callable[[StepDone], None] = lambda step: None,
        run_id: str = "run",
        keep: bool = False,
    ) -> None:
        """`keep` disables the restoration. Raises ScenarioError."""
        self.scenario = scenario
        self.run_id = run_id
        self.state = RunState.NEW
        self.steps: list[StepDone] = []
        self._moments, self.duration_ms, self._config = timeline(scenario)
        if server.is_proxy:
            self._moments = _moments_at_proxy(self._moments)
        self._clock = server.cluster.runtime.clock
        self._server = server
        self._context = ScenarioContext(server, None if scenario.seed is UNSET else scenario.seed, self._broker_started)
        self._on_step = on_step
        self._keep = keep
        self._began_ms = self._ended_ms = 0.0
        self._next = 0  # index of the next moment
        self._timer: TimerHandle | None = None
        self._done = asyncio.Event()  # over, and everything is restored

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def elapsed_ms(self) -> float:
        if self.state is RunState.NEW:
            return 0.0
        return (self._clock.monotonic_ms() if self.state is RunState.RUNNING else self._ended_ms) - self._began_ms

    def start(self) -> None:
        assert self.state is RunState.NEW, "a run is started once"
        problem = self._start_problem()
        if problem is not None:
            raise ClusterError(problem)
        if self._server.is_proxy and (problem := proxy_refusal(self.scenario)) is not None:
            raise ProxyError(problem)
        self.state = RunState.RUNNING
        self._began_ms = self._clock.monotonic_ms()
        self._record("begins", "", "", NO_ID)
        self._continue()

    def stop(self) -> None:
        if self.state is RunState.RUNNING:
            self._end(RunState.STOPPED)

    async def wait(self) -> None:
        await self._done.wait()

    def _start_problem(self) -> str | None:
        controller = self._server.cluster.controller
        wanted, brokers = ExpectedState(self._config).brokers, self._server.servers
        if not brokers.keys() >= {*wanted}:
            return f"brokers: the scenario expects {_listed(wanted)}, got {_listed(brokers)}"
        down = [node_id for node_id in self._server.servers if not controller.is_running(node_id)]
        if down:
            state = controller.state(down[0])
            return f"broker {down[0]}: expected {BrokerState.RUNNING.value} at the start, got {state.value}"
        return None

    def report(self) -> RunReport:
        return RunReport(
            id=self.run_id,
            scenario=self.scenario.name,
            description=self.scenario.description,
            state=self.state.value,
            done=self.done,
            elapsed_ms=self.elapsed_ms,
            duration_ms=self.duration_ms,
            steps=list(self.steps),
            rules=self._rules(),
            differences=self._differences(),
        )

    def _rules(self) -> list[RuleReport]:
        # Sum the counts of successive rules with the same id.
        rules: dict[str, RuleReport] = {}
        for fault in self._context.faults:
            before = rules.get(fault.id)
            matched, hits = (0, 0) if before is None else (before.matched, before.hits)
            rules[fault.id] = RuleReport(
                fault.id, fault.action.kind, matched + fault.matched, hits + fault.hits, fault.problem
            )
        return list(rules.values())

    def _differences(self) -> list[str]:
        names = self.scenario.config
        values = {name: (_value(self._config, name), _value(self._server.config, name)) for name in names}
        return [f"{name} is {is_}, not {wanted}" for name, (wanted, is_) in values.items() if is_ != wanted]

    # Execution

    def _continue(self) -> None:
        if self._server.is_stopping:
            self._keep = True  # the brokers stop: nothing to restore
            self.stop()
        now_ms = self._clock.monotonic_ms()
        while self.state is RunState.RUNNING and self._is_due(now_ms):  # `on_step` may stop the run
            moment = self._moments[self._next]
            self._next += 1
            self._do(moment)
        if self.state is not RunState.RUNNING:
            return
        if self._next < len(self._moments):
            self._timer = self._clock.call_at(self._due_ms(self._next), self._continue)
        elif now_ms < self._began_ms + self.duration_ms:
            self._timer = self._clock.call_at(self._began_ms + self.duration_ms, self._continue)
        else:
            self._end(RunState.ENDED)

    def _is_due(self, now_ms: float) -> bool:
        return self._next < len(self._moments) and self._due_ms(self._next) <= now_ms

    def _due_ms(self, number: int) -> float:
        return self._began_ms + self._moments[number].at_ms

    def _do(self, moment: Moment) -> None:
        problem = _problem(lambda: moment.action.do(self._context))
        self._report_step(moment.path, moment.action.description + moment.times, problem, moment.action.broker)

    def _end(self, state: RunState) -> None:
        self.state = state
        self._ended_ms = self._clock.monotonic_ms()
        if self._timer is not None:
            self._timer.cancel()
        self._settle()

    def _broker_started(self, node_id: int, error: SluiceError | None) -> None:
        if error is not None:
            self._report_step("", f"broker {node_id} starts", str(error), node_id)
        if self.state is not RunState.RUNNING:
            self._settle()

    def _settle(self) -> None:
        if self._context.starting:
            return
        for what, restore in [] if self._keep else self._context.restorations():
            problem = _problem(restore)
            if problem:
                self._report_step("", f"{what}: as before the scenario", problem, NO_ID)
        if not self._context.starting:
            self._finish()

    def _finish(self) -> None:
        self._done.set()
        self._record("ends" if self.state is RunState.ENDED else "is stopped", "", "", NO_ID)

    # Reports

    def _report_step(self, path: str, what: str, problem: str, broker: int) -> None:
        step = StepDone(self._clock.monotonic_ms() - self._began_ms, path, what, problem)
        self.steps.append(step)
        self._record(what, path, problem, broker)
        self._on_step(step)

    def _record(self, what: str, path: str, problem: str, broker: int) -> None:
        journal = self._server.cluster.journal
        if journal is not None:
            own = {"run": self.run_id, "scenario": self.scenario.name, "step": path, "what": what, "problem": problem}
            journal.add_cluster_event(_KIND, broker, **own)


def proxy_refusal(scenario: Scenario) -> str | None:
    """Return why a scenario cannot run in a proxy, in front of another cluster; None if it can."""
    if scenario.loses_records:
        return "loses_records: not possible in a proxy, which cannot make the upstream cluster lose records"
    refused = (moment for moment in _moments_at_proxy(timeline(scenario).moments) if moment.action.proxy_refusal)
    return next((f"{each.path}: not possible in a proxy: {each.action.proxy_refusal}" for each in refused), None)


def _moments_at_proxy(moments: Iterable[Moment]) -> list[Moment]:
    """Return the moments without topics at the start: the upstream cluster has the topics, and may not have theirs."""
    return [moment for moment in moments if not isinstance(moment.action, InitialTopic)]


class Runs:
    """The runs of scenarios on a cluster, one at a time, because they would undo each other's steps."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._runs: dict[str, Run] = {}

    def start(self, scenario: Scenario, *, keep: bool) -> Run:
        under_way = next((run for run in self._runs.values() if not run.done), None)
        if under_way is not None:
            raise ClusterError(f"{under_way.run_id} ({under_way.scenario.name}) is in progress. Stop it first")
        run = Run(scenario, self._server, run_id=f"run-{next(self._numbers)}", keep=keep)
        run.start()
        self._runs[run.run_id] = run
        if len(self._runs) > _MOST_RUNS:
            del self._runs[next(iter(self._runs))]
        return run

    def get(self, run_id: str) -> Run:
        run = self._runs.get(run_id)
        if run is None:
            runs = f"expected one of {', '.join(self._runs)}" if self._runs else "no scenario has run yet"
            raise UnknownResourceError(f"unknown run {run_id}; {runs}")
        return run

    def all(self) -> list[Run]:
        return list(self._runs.values())


def _value(config: Config, name: str) -> str | None:
    try:
        return text_of(config.value(name))
    except KeyError:  # a property without effect
        return None


def _listed(node_ids: Iterable[int]) -> str:
    return ", ".join(map(str, node_ids))


def _problem(act: Callable[[], None]) -> str:
    try:
        act()
    except SluiceError as error:
        return str(error)
    except Exception as error:
        log.exception("scenario step failed")
        return f"{type(error).__name__}: {error}"
    return ""
