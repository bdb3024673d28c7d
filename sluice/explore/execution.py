"""The execution of a run, and its outcome."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from sluice import testing
from sluice.embedded.broker import CLIENT_ID, Broker
from sluice.embedded.traces import started
from sluice.errors import DeadlockError, RunawayError
from sluice.journal_events import Event, GroupState, Request, TransactionState

from .injection import Injection
from .invariants import READER_ID, Invariant
from .run import Run, error_line

Program = Callable[[Run], Coroutine[Any, Any, object]]
# More than any wait of clients with default settings: delivery.timeout.ms and max.poll.interval.ms are minutes.
_LIMIT_S = 1800.0
# The largest delay of bytes between an application and the broker, in runs with another order.
_JITTER_S = 0.02


class Options(msgspec.Struct, frozen=True):
    """What all runs of a program have in common.

    invariants: checked at the end
    brokers, config: of the broker
    seed: of all randomness
    """

    invariants: Sequence[Invariant] = ()
    brokers: int = 1
    config: Mapping[str, str | float | bool] = {}
    seed: int = 0


class Schedule(msgspec.Struct, frozen=True):
    """What differs between runs.

    injections: failures
    order: number of the order of events; 0 is the order without delays, others delay the bytes of connections
    """

    injections: tuple[Injection, ...] = ()
    order: int = 0


class Outcome(msgspec.Struct):
    """How a run ended.

    error: why it failed, else ""
    requests: number of requests by client id and API
    covered: what happened: who, and two steps in order
    missed: injections that did not hit
    happened: times in seconds, and what happened
    """

    error: str
    requests: Mapping[tuple[str, str], int]
    covered: frozenset[tuple[str, object, object]]
    missed: Sequence[Injection]
    happened: Sequence[tuple[float, str]]


def execute(program: Program, schedule: Schedule, options: Options) -> Outcome:
    """Run a program in virtual time; the same arguments have the same outcome."""
    held: list[Outcome] = []
    try:
        with _quiet(), _unrecorded():
            testing.run(_run(program, schedule, options, held), seed=options.seed, until=_LIMIT_S)
    except (DeadlockError, RunawayError) as error:
        if not held:
            return Outcome(str(error), {}, frozenset(), [], [])
    return held[0]


async def _run(program: Program, schedule: Schedule, options: Options, held: list[Outcome]) -> None:
    if schedule.order:
        testing.network().link("*", jitter_s=_JITTER_S)
        asyncio.get_running_loop().random.seed(f"{options.seed}:{schedule.order}")  # type: ignore[attr-defined]
    # Without a rack, the order of aiokafka's sets of brokers differs between processes of Python 3.11.
    config = {"broker.rack": "a", **options.config}
    async with Broker(options.brokers, config=config, seed=options.seed) as broker:
        run = Run(broker)
        hits = run.inject(schedule.injections)
        error = await _error_of(program, run, options.invariants)
        missed = [injection for injection, count in zip(schedule.injections, hits, strict=True) if not count()]
        held.append(_outcome(run, error, missed, schedule))


async def _error_of(program: Program, run: Run, invariants: Sequence[Invariant]) -> str:
    try:
        await program(run)
    except Exception as error:
        return run.failed_application() or error_line(error)
    failed = run.failed_application()
    if failed:
        return failed
    for invariant in invariants:
        violation = await invariant.violation(run)
        if violation:
            return f"{type(invariant).__name__}: {violation}"
    return ""


def _outcome(run: Run, error: str, missed: Sequence[Injection], schedule: Schedule) -> Outcome:
    requests: Counter[tuple[str, str]] = Counter()
    covered: set[tuple[str, object, object]] = set()
    before: dict[str, object] = {}
    of_actions = {(each.client_id, each.api, each.nth): each for each in schedule.injections if not each.is_event}
    happened = list(run.happened)

    def add(event: Event, at_ns: int, what: str) -> None:
        at_s = max(0.0, (at_ns - run.began_ns) / 1e9)  # the times of the journal are rounded
        happened.append((event.seq, at_s, what))

    for event in run.broker.journal.events():
        step: object
        if isinstance(event, Request):
            if event.client_id in (CLIENT_ID, READER_ID):
                continue
            key = event.client_id, event.api
            requests[key] += 1
            injection = of_actions.get((*key, requests[key]))
            if injection is not None:
                add(event, event.received_ns, injection.sentence)
            who, step = event.client_id, (event.api, tuple(event.error_codes), event.answered_ns is None)
        elif isinstance(event, GroupState):
            who, step = event.group_id, (event.after, event.members)
            add(event, event.at_ns, f"group {who} is {event.after} with {event.members} members")
        elif isinstance(event, TransactionState):
            who, step = event.transactional_id, event.after
            add(event, event.at_ns, f"transaction {who} is {event.after}")
        else:
            continue
        covered.add((who, before.get(who), step))
        before[who] = step
    happened.sort(key=lambda each: each[0])
    return Outcome(error, requests, frozenset(covered), missed, [(at_s, what) for _, at_s, what in happened])


@contextmanager
def _unrecorded() -> Iterator[None]:
    """Keep no trace of the brokers: a test has hundreds."""
    before, started.recorder = started.recorder, None
    try:
        yield
    finally:
        started.recorder = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable logging: clients log each failure that is injected."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
