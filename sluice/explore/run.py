"""One run of a program in virtual time: its broker, its application, and the failures that are injected."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from glob import escape
from typing import Any, Protocol, cast

from sluice import testing
from sluice.broker.faults.fault import Fault
from sluice.broker.faults.rule import Rule
from sluice.broker.requests.context import RequestContext
from sluice.clock import LoopClock, sleep_ms
from sluice.embedded.broker import Broker
from sluice.errors import WaitTimeoutError
from sluice.virtual_time.event_loop import VirtualLoop

from .injection import KINDS, Injection, calling

Application = Callable[[], Coroutine[Any, Any, object]]
Place = tuple[str, int, int]  # topic, partition, offset
_POLL_MS = 50.0
_LONGEST_ERROR = 300  # characters
# Shorter than any session timeout, so that the killed instance is still a member when the next one joins.
_RESTART_S = 0.5

_instance: ContextVar[str] = ContextVar("sluice.explore.instance", default="")


class Record(Protocol):
    """A record of any client."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


class Run:
    """What a program uses in a run.

    broker: the broker, which runs
    processed_records: how often the application has processed each record, by topic, partition and offset
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.processed_records: Counter[Place] = Counter()
        self.order: list[Place] = []  # of processing
        # The position in the journal, seconds since the start, and what.
        self.happened: list[tuple[float, float, str]] = []
        self._loop = cast("VirtualLoop", asyncio.get_running_loop())
        self._clock = LoopClock(self._loop)
        self._began = self._loop.time()
        self.began_ns = self._loop.wall_ns()
        self._applications: dict[str, Application] = {}
        self._instances: dict[str, asyncio.Task[object]] = {}  # by host
        self._killed: set[str] = set()
        self._numbers: Counter[str] = Counter()

    # -- called by the program -----------------------------------------------------------------------------------------

    def start(self, application: Application, name: str = "app") -> None:
        """Start an application like a process: it can be killed, and is then started again, with new objects.

        Args:
            application: A function that returns a coroutine.
            name: Name of the application in reports.
        """
        self._applications[name] = application
        self._start(name)

    def processed(self, record: Record) -> None:
        """Note that the application has processed a record; without effect in an instance that was killed."""
        instance = _instance.get()
        if instance in self._killed:
            return
        place = (record.topic, record.partition, record.offset)
        self.processed_records[place] += 1
        self.order.append(place)
        again = " again" if self.processed_records[place] > 1 else ""
        self.note(f"{instance or 'the program'} processes {_named(place)}{again}")

    async def wait_for(self, condition: Callable[[], object], *, within_s: float = 60.0) -> None:
        """Wait until a condition is true. Raises WaitTimeoutError after `within_s` virtual seconds."""
        end = self._loop.time() + within_s
        while not condition():
            if self._loop.time() >= end:
                raise WaitTimeoutError(f"after {within_s:g} s, the condition is not true")
            await sleep_ms(self._clock, _POLL_MS)

    # -- failures ------------------------------------------------------------------------------------------------------

    def inject(self, injections: Sequence[Injection]) -> list[Callable[[], int]]:
        """Add the injections; return functions that return how often each has hit."""
        return [partial(getattr, self._fault(injection), "hits") for injection in injections]

    def failed_application(self) -> str:
        """Return the error of an application that has failed and was not killed, else ""."""
        for host, task in self._instances.items():
            error = task.exception() if host not in self._killed and task.done() and not task.cancelled() else None
            if error is not None:
                return f"{host} failed: {error_line(error)}"
        return ""

    def note(self, text: str) -> None:
        self.happened.append((self.broker.journal.last_seq + 0.5, self._loop.time() - self._began, text))

    def _fault(self, injection: Injection) -> Fault:
        kind = KINDS[injection.kind]
        action = kind.action or calling(partial(self._happen, injection), is_after=kind.is_after)
        where = {"api": injection.api, "client_id": escape(injection.client_id), "on": [injection.nth]}
        # Rules in files have other actions only.
        return self.broker.faults._faults.add(cast("Callable[..., Rule]", Rule)(action=action, **where))

    def _happen(self, injection: Injection, ctx: RequestContext) -> None:
        """Let something happen to the instance that has sent a request; the program itself is no instance."""
        self.note(injection.sentence)
        host = testing.network().name(ctx.session.connection.peer.rpartition(":")[0])
        if host not in self._instances:
            return
        if KINDS[injection.kind].event == "kill":
            self._kill(host)
        else:
            self._start(_name_of(host))

    def _start(self, name: str) -> None:
        self._numbers[name] += 1
        host = f"{name}-{self._numbers[name]}"
        self.note(f"{host} starts")
        token = _instance.set(host)
        try:
            with testing.network().host(host):
                self._instances[host] = self._loop.create_task(self._applications[name](), name=host)
        finally:
            _instance.reset(token)

    def _kill(self, host: str) -> None:
        """Kill an instance. Its code continues, but without a connection and without an effect."""
        if host in self._killed:
            return
        self._killed.add(host)
        self.note(f"{host} is killed")
        testing.network().reset(host)
        testing.network().partition(host)
        self._loop.call_later(_RESTART_S, self._start, _name_of(host))


def _name_of(host: str) -> str:
    return host.rpartition("-")[0]


def _named(place: Place) -> str:
    topic, partition, offset = place
    return f"{topic}-{partition} offset {offset}"


def error_line(error: BaseException) -> str:
    """Return an error as one line, of clients whose messages are paragraphs too."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LONGEST_ERROR]
