"""One run of a program in virtual time: its broker, its applications, and the failures that are injected."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, cast

from sluice import testing
from sluice.broker.faults.fault import Action, Fault
from sluice.broker.faults.requests.fault_execution import FaultExecution
from sluice.broker.faults.rule import Rule
from sluice.clock import LoopClock, sleep_ms
from sluice.embedded.broker import Broker
from sluice.errors import WaitTimeoutError
from sluice.journal_events import Fault as FaultEvent
from sluice.text.arguments import Count, check_argument

from .events import Hit
from .injection import KINDS, Calling, Injection, Kind, pattern_of
from .process_loop import ProcessLoop
from .processes import Application, Processes

Place = tuple[str, int, int]  # topic, partition, offset
_POLL_MS = 50.0
# After a longer wait, a share of it: a wait of minutes would poll thousands of times.
_POLL_SHARE = 0.02


class Record(Protocol):
    """A record of any client."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Processing(NamedTuple):
    """A record that was processed, and when: in seconds since the start of the run."""

    place: Place
    at_s: float


class Run:
    """What a program uses in a run.

    broker: the broker, which runs
    processed_records: how often the application has processed each record, by topic, partition and offset
    """

    def __init__(self, broker: Broker, starts: Callable[[str], None], sizes: Mapping[str, int]) -> None:
        """Make a run; `starts` is called with the host of each instance of an application."""
        self.broker = broker
        self.processed_records: Counter[Place] = Counter()
        self.order: list[Processing] = []
        # The position in the journal, seconds since the start, and what.
        self.happened: list[tuple[float, float, str]] = []
        self.sizes: dict[str, int] = {}  # that the program has read
        self._given_sizes = sizes
        self._loop = cast("ProcessLoop", asyncio.get_running_loop())
        self._clock = LoopClock(self._loop)
        self._began = self._loop.time()
        self.began_ns = self._loop.wall_ns()
        self.processes = Processes(self._loop, self.note, starts)
        self._rules: set[str] = set()  # ids of the rules of failures
        self._clients: set[asyncio.Task[None]] = set()

    # -- called by the program -----------------------------------------------------------------------------------------

    def start(self, application: Application, name: str = "app") -> None:
        """Start an application like a process: it can be killed, and is then started again, with new objects.

        Args:
            application: A function that returns a coroutine.
            name: Name of the application in reports.
        """
        self.processes.start(application, name)

    def size(self, name: str, most: Count) -> int:
        """Return a number of records, members or the like; smaller in runs that reduce a failure.

        Args:
            name: Name of the size in reports.
            most: The size, except in a reduced run.
        """
        check_argument("size", "most", most, Count)
        self.sizes[name] = min(most, self._given_sizes.get(name, most))
        return self.sizes[name]

    def processed(self, record: Record) -> None:
        """Note that the application has processed a record."""
        place = (record.topic, record.partition, record.offset)
        self.processed_records[place] += 1
        self.order.append(Processing(place, self.now_s))
        again = " again" if self.processed_records[place] > 1 else ""
        self.note(f"{self.processes.current() or 'the program'} processes {_named(place)}{again}")

    async def wait_for(self, condition: Callable[[], object], *, within_s: float = 600.0) -> None:
        """Wait until a condition is true. Raises WaitTimeoutError after `within_s` virtual seconds."""
        began = self._loop.time()
        while not condition():
            waited_s = self._loop.time() - began
            if waited_s >= within_s:
                raise WaitTimeoutError(f"after {within_s:g} s, the condition is not true")
            rest_ms = (within_s - waited_s) * 1000
            await sleep_ms(self._clock, max(_POLL_MS, min(_POLL_SHARE * waited_s * 1000, rest_ms)))

    # -- failures ------------------------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return self._loop.time() - self._began

    @property
    def failed_at_s(self) -> float:
        """Time of the last failure, in seconds since the start of the run."""
        hits = self.broker.journal.events(kind="fault")
        times = (each.at_ns for each in hits if isinstance(each, FaultEvent) and each.rule_id in self._rules)
        return max(0, max(times, default=0) - self.began_ns) / 1e9

    def inject(self, injections: Sequence[Injection]) -> list[Callable[[], object]]:
        """Add the injections; return functions that return whether each has hit."""
        return [self._inject(injection) for injection in injections]

    def add_rule(self, action: Action, **where: object) -> Fault:
        """Add a fault rule, whose action need not be one that rules in files may have."""
        return self.broker.faults._faults.add(cast("Callable[..., Rule]", Rule)(action=action, **where))

    def note(self, text: str) -> None:
        self.happened.append((self.broker.journal.last_seq + 0.5, self.now_s, text))

    async def end(self) -> None:
        """End the clients of failures, and restart no application."""
        self.processes.end()
        for client in self._clients:
            client.cancel()
        if self._clients:
            await asyncio.wait(self._clients)

    def _inject(self, injection: Injection) -> Callable[[], object]:
        kind, effects = KINDS[injection.kind], list[bool]()
        is_alone = kind.action is not None and len(self.broker.brokers) == 1
        if kind.event is None or is_alone:
            assert kind.action is not None
            fault = self._add(injection, kind.action)
            return partial(getattr, fault, "hits")
        happen = partial(self._happen, injection, kind, effects)
        self._add(injection, Calling()).action = Calling(happen, kind.is_after, kind.is_lost)
        return partial(any, effects)

    def _add(self, injection: Injection, action: Action) -> Fault:
        fault = self.add_rule(action, api=injection.api, client_id=pattern_of(injection.client_id), on=[injection.nth])
        self._rules.add(fault.id)
        return fault

    def _happen(self, injection: Injection, kind: Kind, effects: list[bool], execution: FaultExecution) -> None:
        self.note(injection.sentence)
        peer = execution.ctx.session.connection.peer
        host = testing.network().name(peer.rpartition(":")[0])
        hit = Hit(execution, self.broker._started, self.processes, self._loop, host, self._clients)
        assert kind.event is not None
        effects.append(kind.event(hit))


def _named(place: Place) -> str:
    topic, partition, offset = place
    return f"{topic}-{partition} offset {offset}"
