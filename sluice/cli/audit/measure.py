"""The measurement of `sluice audit run`, and its result."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from sluice.audit.judge.model.verdict import AuditResult
from sluice.audit.probes.probe import Probe
from sluice.audit.report.files import make_folder
from sluice.audit.report.words import style_of
from sluice.audit.runs import Budget, Progress, audit
from sluice.audit.subjects.subject import Subject
from sluice.broker.network.fair_selector import new_loop
from sluice.embedded.upstream import Upstream
from sluice.text.error_text import printable

from .reports import write_and_print
from .selection import chosen_probes, chosen_subjects
from .text import could_not_be_run


def measure(
    subjects: tuple[str, ...],
    probes: tuple[str, ...],
    out: Path,
    budget: float,
    role: str | None,
    settings: tuple[str, ...],
    like: str | None,
    virtual: bool,
    upstream: str | None,
    upstream_config: str | None,
    seed: int,
    fails_on: frozenset[str],
    output_format: str,
) -> None:
    """Measure, judge, report; exit with 1 if the result has a kind of `fails_on`."""
    what, who = chosen_probes(probes), chosen_subjects(subjects, role, settings, like, virtual=virtual)
    real = None if upstream is None else Upstream.of(upstream, upstream_config)
    make_folder(out)
    result, stopped = _measured(who, what, budget, seed, out, real)
    if stopped and not any(subject.verdicts for subject in result.subjects):
        raise click.ClickException("stopped by a signal before anything was measured")
    write_and_print(result, out, out, output_format)
    for name in could_not_be_run(result):
        click.echo(f"{name}: no verdict; its runs failed", err=True)
    found = _found(result, fails_on)
    if found:
        click.echo(f"failed because of --fail-on: {found}", err=True)
    if found or stopped or could_not_be_run(result):
        raise SystemExit(1)


def _measured(
    subjects: Sequence[Subject],
    probes: Sequence[Probe],
    seconds: float,
    seed: int,
    out: Path,
    upstream: Upstream | None,
) -> tuple[AuditResult, bool]:
    """Return also whether a signal stopped the run; a second signal skips the judge too."""
    stop = asyncio.Event()

    async def measure() -> AuditResult:
        task = asyncio.current_task()
        assert task is not None
        console = Console(stderr=True)

        def end() -> None:
            if stop.is_set():
                task.cancel()
            else:
                stop.set()
                console.print("stopping; judging the results so far, press Ctrl-C again to skip that", markup=False)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)
        with open_screen(console) as screen:
            budget = Budget(seconds=seconds)
            return await audit(
                subjects,
                probes,
                budget=budget,
                on_progress=screen.show,
                seed=seed,
                stop=stop,
                report=out,
                upstream=upstream,
            )

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(measure()), stop.is_set()
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise click.ClickException("stopped by a signal") from None


def _found(result: AuditResult, fails_on: frozenset[str]) -> str:
    """Describe the results that --fail-on includes, or return ""."""
    verdicts = [verdict for subject in result.subjects for verdict in subject.verdicts]
    count = sum(style_of(verdict).key in fails_on for verdict in verdicts)
    findings = sum(len(subject.findings) for subject in result.subjects) if "findings" in fails_on else 0
    parts = [f"{count} verdict{'s' * (count != 1)}"] if count else []
    parts += [f"{findings} finding{'s' * (findings != 1)}"] if findings else []
    return ", ".join(parts)


_LINE_EVERY_S = 15.0
_MOST_NAMED = 3


class Screen(Protocol):
    def show(self, progress: Progress) -> None:
        """Show the progress of one client."""


@contextmanager
def open_screen(console: Console) -> Iterator[Screen]:
    """Show bars until the end; without a terminal, occasional lines per client."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[running]}"),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def show(self, progress: Progress) -> None:
        if progress.subject not in self._tasks:
            name = escape(printable(progress.subject))
            self._tasks[progress.subject] = self._bars.add_task(name, running="")
        self._bars.update(
            self._tasks[progress.subject],
            completed=progress.done,
            total=progress.planned,
            running=escape(_running(progress)),
        )


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: dict[str, tuple[str, float]] = {}

    def show(self, progress: Progress) -> None:
        phase, at_s = self._printed.get(progress.subject, ("", 0.0))
        if phase == progress.phase and progress.seconds < at_s + _LINE_EVERY_S:
            return
        self._printed[progress.subject] = (progress.phase, progress.seconds)
        self._console.print(progress_line(progress), markup=False, highlight=False, soft_wrap=True)


def progress_line(progress: Progress) -> str:
    runs = f"{progress.done} of {progress.planned} runs"
    return f"{printable(progress.subject)}: {_running(progress)}, {runs}, {progress.seconds:.0f} s"


def _running(progress: Progress) -> str:
    if progress.phase != "measuring" or not progress.running:
        return progress.phase
    names = list(dict.fromkeys(progress.running))
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
