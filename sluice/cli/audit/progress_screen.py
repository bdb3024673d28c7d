"""The progress of an audit: a bar per client, or lines without a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from sluice.audit.runs import Progress
from sluice.text.error_text import printable

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
