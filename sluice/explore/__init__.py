"""A search for the failures that break an application, in virtual time.

    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")
        await run.broker.client().send("orders", *map(str, range(10)))
        run.start(lambda: application(run.broker.bootstrap, run.processed))
        await run.wait_for(lambda: len(run.processed_records) == 10)

    explore(program, invariants=[AtLeastOnce("orders")])

docs/explore.md describes it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.errors import ExploreError
from sluice.text.arguments import Count, Index, checked

from .evaluation import evaluating, in_this_process
from .execution import Program
from .exploration import settings, succeeded
from .injection import Injection
from .invariants import (
    AtLeastOnce,
    AtMostOnce,
    BoundedRetries,
    ExactlyOnce,
    InOrder,
    InOrderPerKey,
    Invariant,
    MonotonicCommits,
    NoAbortedRecords,
    NoCommitAhead,
    NoDuplicates,
    NoLeaks,
    Progress,
)
from .output.regression import Explored
from .run import Run
from .search import Result

__all__ = [
    "AtLeastOnce",
    "AtMostOnce",
    "BoundedRetries",
    "ExactlyOnce",
    "ExploreError",
    "InOrder",
    "InOrderPerKey",
    "Injection",
    "Invariant",
    "MonotonicCommits",
    "NoAbortedRecords",
    "NoCommitAhead",
    "NoDuplicates",
    "NoLeaks",
    "Progress",
    "Result",
    "Run",
    "explore",
    "replay",
]


def explore(
    program: Program,
    *,
    runs: Count = 200,
    invariants: Sequence[Invariant] = (),
    failures: Sequence[str] | None = None,
    brokers: Count = 3,
    config: Mapping[str, str | float | bool] | None = None,
    seed: int = 0,
    jobs: Count = 1,
) -> Result:
    """Run a program again and again in virtual time, with failures at the requests that it sends.

    Args:
        program: A coroutine function of a `Run`; it fails by an exception.
        runs: Maximum number of runs.
        invariants: Properties that are checked at the end of each run.
        failures: Kinds of failures; default: all that a correct application survives.
        brokers: Number of brokers.
        config: Properties of the brokers by name.
        seed: Seed of all randomness.
        jobs: Number of processes. It does not change what is found.

    Returns:
        The result, if no run failed.

    Raises:
        ExploreError: A run failed; the message has the fewest failures that break the program, and how to repeat them.
            Or the program sent no request at which a failure can be injected.
    """
    chosen = settings(runs=runs, invariants=invariants, failures=failures, brokers=brokers, config=config, seed=seed)
    with evaluating(program, chosen.options, jobs) as evaluate:
        return succeeded(program, chosen, Explored.of_program(program), evaluate)


def replay(
    program: Program,
    injections: Sequence[Injection | str],
    *,
    order: Index = 0,
    sizes: Mapping[str, Count] | None = None,
    invariants: Sequence[Invariant] = (),
    brokers: Count = 3,
    config: Mapping[str, str | float | bool] | None = None,
    seed: int = 0,
) -> None:
    """Run a program once, with these failures.

    Args:
        program: A coroutine function of a `Run`; it fails by an exception.
        injections: Failures, or their texts: `KIND CLIENT_ID API NTH`.
        order: Number of the order of events, as in a report.
        sizes: Sizes of the program by name, as in a report.
        invariants: Properties that are checked at the end of the run.
        brokers: Number of brokers.
        config: Properties of the brokers by name.
        seed: Seed of all randomness.

    Raises:
        ExploreError: The run failed.
        ArgumentError: An invalid text.

    Warns:
        UserWarning: The program did not send the request at which a failure is injected.
    """
    chosen = settings(invariants=invariants, brokers=brokers, config=config, seed=seed, replay=injections, order=order)
    succeeded(program, chosen, Explored.of_program(program), in_this_process(program, chosen.options))


if not TYPE_CHECKING:  # type checkers need the signatures
    explore = checked(explore, "explore", skip=0)
    replay = checked(replay, "replay", skip=0)
