"""How far something is that takes longer than a second: a bar on stderr that is gone in the end, where that is a
terminal; nothing anywhere else.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Told what is done, how much of it, and of how much.
Tell = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Tell]:
    """What to report; each new text begins anew."""
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def report(what: str, done: int, of: int) -> None:
            bars.update(task, description=what, completed=done, total=of)

        yield report
