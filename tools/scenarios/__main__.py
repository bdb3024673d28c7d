"""`python -m tools.scenarios [NAME...]`: run scenarios of the catalogue with real clients, and print the results.

Exit code 1: a scenario did not do what it claims.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice.broker.scenarios.files import names
from tools.scenarios.play import Played, play

_AT_ONCE = 2  # runs mostly wait
_HEAD = ("scenario", "seconds", "steps", "hits", "written", "refused", "read", "lost", "")
_WIDTHS = (24, 8, 6, 6, 8, 8, 6, 5, 0)


def main(wanted: list[str]) -> int:
    """Run the scenarios and return the exit code."""
    failed = []
    print(_line(_HEAD))
    with TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as runs:
        for played in runs.map(lambda name: play(name, Path(folder)), wanted):
            print(_line(_cells(played)), flush=True)
            if played.problems:
                failed.append(played.name)
    print(f"{len(wanted) - len(failed)} as claimed, {len(failed)} not{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _cells(played: Played) -> tuple[object, ...]:
    observed = played.observed
    return (
        played.name,
        f"{played.took_s:.1f}",
        played.steps,
        played.hits,
        len(observed.acknowledged),
        len(observed.failed),
        len(observed.read),
        len(observed.lost),
        "; ".join(played.problems) or "as claimed",
    )


def _line(cells: tuple[object, ...]) -> str:
    name, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return " ".join([f"{name.strip():<{_WIDTHS[0]}}", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or names()))
