"""`sluice explore`."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import gettempdir

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.options import duration, format_option
from sluice.cli.pipeline import CONF, MASTER
from sluice.cli.progress import Report, progress
from sluice.cli.written_file import write_file
from sluice.clock import monotonic_s
from sluice.embedded.traces.of_broker import write_in_folder
from sluice.embedded.traces.recorded_test import RecordedFailure, RecordedTest
from sluice.embedded.traces.started import Recorder
from sluice.errors import ConfigError
from sluice.explore.evaluation import evaluating
from sluice.explore.execution import Options, Outcome, Schedule
from sluice.explore.exploration import explored, settings
from sluice.explore.output.recorded import record
from sluice.explore.output.regression import regression_file
from sluice.explore.output.report import document, report
from sluice.explore.reduction import Found
from sluice.explore.search import Evaluate
from sluice.explore.target import Loaded, Target, load, parse_target
from sluice.text.json_text import json_text
from sluice.trace.model import NONE

from .on_spark import evaluating_on_spark

_TRACES = "sluice-traces"


@click.command(cls=Command)
@click.argument("test", metavar="FILE::TEST")
@click.option("--runs", type=Integer(1), metavar="N", help="Maximum number of runs.  [default: as in the mark, or 200]")
@click.option("--seed", type=int, metavar="N", help="Seed of all randomness.  [default: as in the mark, or 0]")
@click.option("--jobs", type=Integer(1), metavar="N", help="Number of processes on this machine.  [default: 1]")
@click.option(
    "--spark", is_flag=True, help="Execute the runs as Spark jobs; requires pip install 'kafka-sluice[spark]'."
)
@click.option(
    "--time-limit", type=duration(1), metavar="DURATION", help="Time after which the search ends, such as 10m."
)
@click.option(
    "--trace", type=click.Path(file_okay=False, path_type=Path), default=Path(gettempdir(), _TRACES), metavar="DIR",
    help=f"Folder for the trace of the run that fails.  [default: {_TRACES} in the system's temporary folder]",
)  # fmt: skip
@click.option(
    "--write-test", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="New file for a test that repeats the run that fails.",
)  # fmt: skip
@format_option
@MASTER
@CONF
def explore(
    test: str,
    runs: int | None,
    seed: int | None,
    jobs: int | None,
    spark: bool,
    time_limit: int | None,
    trace: Path,
    write_test: Path | None,
    output_format: str,
    master: str,
    conf: dict[str, str],
) -> None:
    """Run a test again and again in virtual time, with failures, and print the fewest that break it.

    FILE::TEST is a coroutine test with the fixture kafka_run. The arguments of its mark kafka_explore apply, if it has
    one. The number of processes, and Spark, do not change what is found.
    """
    if spark and jobs is not None:
        raise click.UsageError("--jobs and --spark exclude each other")
    if conf and not spark:
        raise click.UsageError("--conf: only with --spark")
    if write_test is not None and write_test.exists():
        raise ConfigError(f"{write_test}: exists; expected a new file")
    target = parse_target(test)
    loaded = load(target)
    given = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    chosen = settings(**{**loaded.given, **given})
    evaluating_runs: AbstractContextManager[Evaluate]
    if spark:
        evaluating_runs = evaluating_on_spark(target, given, master, conf)
    else:
        evaluating_runs = evaluating(loaded.program, chosen.options, jobs or 1)
    until = None if time_limit is None else monotonic_s() + time_limit / 1000
    with progress() as show, evaluating_runs as evaluate:
        result = explored(loaded.program, chosen, _Limited(evaluate, chosen.runs, until, show))
    found, options = result.found, chosen.options
    written = {} if found is None else _write_found(loaded, target, options, found, trace, write_test)
    if output_format == "json":
        click.echo(json_text(document(result, options, loaded.test) | written))
    else:
        click.echo(report(result, options, loaded.test if chosen.replayed is None else None))
        for what, path in written.items():
            click.echo(f"{what}: {path}")
    if found is not None:
        raise SystemExit(1)


def _write_found(
    loaded: Loaded, target: Target, options: Options, found: Found, folder: Path, test_file: Path | None
) -> dict[str, str]:
    """Write the trace and the test; return their paths."""
    written = {}
    if test_file is not None:
        write_file(test_file, regression_file(loaded.test, loaded.module, found.schedule, options))
        written["test"] = str(test_file)
    recorder, recorded_test = Recorder(), RecordedTest(str(target))
    recorded_test.failure = RecordedFailure(found.outcome.error, target.file, NONE, None)
    record(recorder, loaded.program, found, options)
    return {**written, "trace": write_in_folder(folder, recorded_test, recorder.recorded())}


class _Limited:
    """Shows the progress of runs, and ends a search when its time is over; a failure is still reduced."""

    def __init__(self, evaluate: Evaluate, runs: int, until: float | None, show: Report) -> None:
        self._evaluate, self._runs, self._until, self._show = evaluate, runs, until, show
        self._done = 0
        self._has_failed = False

    def __call__(self, schedules: Sequence[Schedule]) -> Iterator[Outcome]:
        for outcome in self._evaluate(schedules):
            self._done += 1
            self._has_failed = self._has_failed or bool(outcome.error)
            self._show("reducing" if self._has_failed else "exploring", self._done, max(self._done, self._runs))
            yield outcome
            if self._until is not None and monotonic_s() >= self._until and not self._has_failed:
                return
