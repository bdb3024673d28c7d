"""The runs of a search as jobs of Spark, with the same findings as on one machine.

Executors need this package, and the file of the test at the same path. The driver proposes each generation of
schedules, and a task executes one of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial

from sluice.explore.execution import Options, Outcome, Program, Schedule, execute
from sluice.explore.exploration import settings
from sluice.explore.search import Evaluate
from sluice.explore.target import Target, load
from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.session import open_session_without_kafka


@contextmanager
def evaluating_on_spark(
    target: Target, given: Mapping[str, int], master: str, conf: Mapping[str, str]
) -> Iterator[Evaluate]:
    """Provide a function that executes runs of a test; `given` precedes the arguments of its mark."""
    with spark_errors_in_one_line():
        context = open_session_without_kafka("sluice explore", master=master, settings=conf).sparkContext

        def evaluate(schedules: Sequence[Schedule]) -> list[Outcome]:
            run = partial(_execute, target.resolved(), tuple(given.items()))
            outcomes: list[Outcome] = context.parallelize(schedules, len(schedules)).map(run).collect()
            return outcomes

        yield evaluate


# -- in Spark's workers ------------------------------------------------------------------------------------------------


@cache
def _loaded(target: Target, given: tuple[tuple[str, int], ...]) -> tuple[Program, Options]:
    loaded = load(target)
    return loaded.program, settings(**{**loaded.given, **dict(given)}).options


def _execute(target: Target, given: tuple[tuple[str, int], ...], schedule: Schedule) -> Outcome:
    program, options = _loaded(target, given)
    return execute(program, schedule, options)
