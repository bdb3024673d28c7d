"""A progress bar on stderr for operations longer than a second; shown only on a terminal, and removed at the end."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Report = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Report]:
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def report(what: str, done: int, of: int) -> None:
            bars.update(task, description=what, completed=done, total=of)

        yield report
