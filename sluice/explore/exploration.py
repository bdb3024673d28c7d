"""One exploration: the same for the mark, `explore`, `replay` and the command."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from sluice.embedded.traces import started
from sluice.errors import ArgumentError, ExploreError
from sluice.text.arguments import Count, Index, checked

from .execution import Options, Program, Schedule
from .injection import Injection, checked_failures, parse
from .invariants import Invariant
from .output.recorded import record
from .output.regression import Explored
from .output.report import report
from .reduction import Found
from .search import Evaluate, Result, search


class Settings(msgspec.Struct, frozen=True):
    """How a program is explored.

    options: what all its runs have in common
    failures: kinds of failures
    runs: maximum number of runs
    replayed: the run to repeat in place of a search, or None
    """

    options: Options
    failures: Sequence[str]
    runs: int
    replayed: Schedule | None


def settings(
    *,
    runs: Count = 200,
    invariants: Sequence[Invariant] = (),
    failures: Sequence[str] | None = None,
    brokers: Count = 3,
    config: Mapping[str, str | float | bool] | None = None,
    seed: int = 0,
    replay: Sequence[Injection | str] | None = None,
    order: Index | None = None,
    sizes: Mapping[str, Count] | None = None,
) -> Settings:
    """Return what the arguments of the mark set. Raises ArgumentError."""
    schedule = None
    if replay is not None:
        injections = tuple(parse(each) if isinstance(each, str) else each for each in replay)
        schedule = Schedule(injections, order or 0, tuple(sorted((sizes or {}).items())))
    elif order is not None or sizes is not None:
        raise ArgumentError(f"kafka_explore: {'sizes' if order is None else 'order'}: only with replay")
    return Settings(
        Options(invariants, brokers, config or {}, seed), checked_failures(failures, brokers), runs, schedule
    )


if not TYPE_CHECKING:  # type checkers need the signature
    settings = checked(settings, "kafka_explore", skip=0)


def explored(program: Program, chosen: Settings, evaluate: Evaluate) -> Result:
    """Search, or repeat a run. The run that fails is recorded for a trace. Raises ExploreError."""
    if chosen.replayed is not None:
        result = _replay(chosen.replayed, evaluate)
    else:
        result = search(evaluate, chosen.runs, chosen.options.seed, chosen.failures)
        if result.found is None and result.runs > 1 and not result.points:
            raise ExploreError("no failure was injected: the program sent no request at which one can be")
    if result.found is not None and started.recorder is not None:
        record(started.recorder, program, result.found, chosen.options)
    return result


def succeeded(program: Program, chosen: Settings, test: Explored, evaluate: Evaluate) -> Result:
    """Return the result of an exploration without a failure. Raises ExploreError with the report."""
    result = explored(program, chosen, evaluate)
    if result.found is not None:
        raise ExploreError(report(result, chosen.options, test if chosen.replayed is None else None))
    return result


def _replay(schedule: Schedule, evaluate: Evaluate) -> Result:
    for outcome in evaluate([schedule]):
        if outcome.error:
            return Result(1, Found(schedule, outcome))
        for missed in outcome.missed:
            # No error: after a fix, a program may send fewer requests.
            warnings.warn(f"no failure was injected: the program sent no request for {missed}", stacklevel=1)
    return Result(1)
