"""The execution of a run, and its outcome."""

import asyncio
import gc
import logging
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from sluice import testing
from sluice.embedded.broker import Broker
from sluice.embedded.traces import started
from sluice.errors import DeadlockError, RunawayError, WaitTimeoutError
from sluice.virtual_time.runner import run_in

from .events import ELECTION_MS, OWN_CLIENTS
from .history import History, Point
from .injection import Injection
from .invariants import Invariant, NoLeaks
from .order import Order
from .process_loop import ProcessLoop
from .processes import error_line
from .run import Run

Program = Callable[[Run], Coroutine[Any, Any, object]]
# More than any wait of clients with default settings: delivery.timeout.ms and max.poll.interval.ms are minutes.
_LIMIT_S = 1800.0
# A hundred times those of the longest run of examples/explore. A client that retries without a wait stops virtual time.
_MOST_TURNS = 500_000


class Options(msgspec.Struct, frozen=True):
    """What all runs of a program have in common.

    invariants: checked at the end
    brokers, config: of the cluster
    seed: of all randomness
    """

    invariants: Sequence[Invariant] = ()
    brokers: int = 3
    config: Mapping[str, str | float | bool] = {}
    seed: int = 0


class Schedule(msgspec.Struct, frozen=True):
    """What differs between runs.

    injections: failures
    order: number of the order of events; 0 is asyncio's order, without delays
    sizes: smaller sizes of the program, by name
    """

    injections: tuple[Injection, ...] = ()
    order: int = 0
    sizes: tuple[tuple[str, int], ...] = ()


class Outcome(msgspec.Struct):
    """How a run ended.

    error: why it failed, else ""
    missed: injections that did not hit
    began_ns: time of the start, in nanoseconds since the epoch
    happened: times in seconds since the start, and what happened
    points: the requests of the program, in order, at which failures can be injected
    states: hashes of the states of the cluster that were reached
    pairs: pairs of events of different clients, in their order
    sizes: sizes that the program has read, by name
    """

    error: str
    missed: Sequence[Injection] = ()
    began_ns: int = 0
    happened: Sequence[tuple[float, str]] = ()
    points: Sequence[Point] = ()
    states: frozenset[int] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    sizes: Mapping[str, int] = {}


def execute(
    program: Program, schedule: Schedule, options: Options, recorder: "started.Recorder | None" = None
) -> Outcome:
    """Run a program in virtual time; the same arguments have the same outcome. `recorder` gets its trace."""
    with _quiet(), _recorded(recorder), _one_collection():
        return _executed(program, schedule, options)


def _executed(program: Program, schedule: Schedule, options: Options) -> Outcome:
    held: list[Outcome] = []
    loop = ProcessLoop(seed=options.seed, until=_LIMIT_S, max_turns=_MOST_TURNS)
    try:
        run_in(loop, _run(program, schedule, options, held), seed=options.seed)
    except (DeadlockError, RunawayError) as error:
        if not held:
            return Outcome(str(error))
    finally:
        _close(asyncio.all_tasks(loop))
    return held[0]


def _close(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Close the coroutines of tasks that the loop could not end: of clients that retry without a wait, for example.

    What they do then is no result of the run. No method of the abstract loop works; without one, aiokafka would make a
    loop that nobody closes. A coroutine that it is to run is not awaited.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        asyncio._set_running_loop(asyncio.AbstractEventLoop())  # type: ignore[abstract]
        for task in tasks:
            with suppress(Exception, asyncio.CancelledError):
                task.get_coro().close()
        asyncio._set_running_loop(None)


async def _run(program: Program, schedule: Schedule, options: Options, held: list[Outcome]) -> None:
    loop, network = asyncio.get_running_loop(), testing.network()
    assert isinstance(loop, ProcessLoop)
    order = Order(schedule.order, options.seed)
    try:
        async with Broker(options.brokers, config=_config(options), seed=options.seed) as broker:
            run = Run(broker, lambda host: order.start_host(host, network), dict(schedule.sizes))
            try:
                order.apply(loop, run)
                hits = run.inject(schedule.injections)
                error = await _error_of(program, run, options.invariants)
                missed = [each for each, has_hit in zip(schedule.injections, hits, strict=True) if not has_hit()]
                held.append(_outcome(run, error, missed, schedule))
            finally:
                await run.end()
    finally:
        loop.resume_all()
        network.abort()


def _config(options: Options) -> Mapping[str, str | float | bool]:
    """Return the config: in a cluster, topics have several replicas, and a broker can fail without a loss."""
    replicas = min(3, options.brokers)
    defaults: dict[str, str | float | bool] = {
        # Without a rack, the order of aiokafka's sets of brokers differs between processes of Python 3.11.
        "broker.rack": "a",
        "default.replication.factor": replicas,
        "min.insync.replicas": max(1, replicas - 1),
        "sluice.election.delay.ms": ELECTION_MS,
    }
    return {**defaults, **options.config}


async def _error_of(program: Program, run: Run, invariants: Sequence[Invariant]) -> str:
    error = ""
    try:
        await program(run)
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as raised:  # pytest's failures are no Exceptions
        error = error_line(raised)
        if not isinstance(raised, WaitTimeoutError):  # that a record is lost is often seen by a wait first
            return run.processes.error() or error
    failed = run.processes.error()
    if failed:
        return failed
    for invariant in sorted(invariants, key=lambda each: isinstance(each, NoLeaks)):  # it ends the applications
        violation = await invariant.violation(run)
        if violation:
            return f"{type(invariant).__name__}: {violation}"
    return error


def _outcome(run: Run, error: str, missed: Sequence[Injection], schedule: Schedule) -> Outcome:
    journal = run.broker._started.cluster.journal
    assert journal is not None  # it has noted what happened
    history = History(journal, OWN_CLIENTS, run.began_ns)
    happened = [*run.happened, *history.happened]
    hit = {(each.client_id, each.api, each.nth): each for each in schedule.injections if each not in missed}
    noted = {text for _, _, text in run.happened}
    for point in history.points:
        injection = hit.get((point.client_id, point.api, point.nth))
        if injection is not None and injection.sentence not in noted:
            happened.append((point.seq, point.at_s, injection.sentence))
    happened.sort(key=lambda each: each[0])
    return Outcome(
        error,
        missed,
        run.began_ns,
        [(at_s, what) for _, at_s, what in happened],
        history.points,
        frozenset(history.states),
        frozenset(history.pairs),
        run.sizes,
    )


@contextmanager
def _recorded(recorder: "started.Recorder | None") -> Iterator[None]:
    """Keep no other trace of the brokers: a test has hundreds."""
    before, started.recorder = started.recorder, recorder
    try:
        yield
    finally:
        started.recorder = before


@contextmanager
def _one_collection() -> Iterator[None]:
    """Collect garbage once, after the run: its objects are young, and end together."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            # An application that is killed closes nothing.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect(0)
            gc.collect(1)  # what they have kept until then
        if was_enabled:
            gc.enable()


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable logging: clients log each failure that is injected."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
