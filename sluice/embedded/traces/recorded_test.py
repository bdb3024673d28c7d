"""What a test did, for its trace. Times are those of the machine's clock, in seconds since the epoch."""

import logging
import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple

_LONGEST_STEM = 120  # characters; file systems accept names of up to 255 bytes


class RecordedPhase(NamedTuple):
    """A phase of a test, such as setup; `result` is passed, failed or skipped."""

    name: str
    start_s: float
    end_s: float
    result: str


class RecordedFailure(NamedTuple):
    """An exception; `at_s` is None if it was raised just now."""

    text: str
    file: str
    line: int
    at_s: float | None


class RecordedTest:
    def __init__(self, name: str) -> None:
        self.name = name
        self.phases: list[RecordedPhase] = []
        self.log_records: Iterable[logging.LogRecord] = ()
        self.failure: RecordedFailure | None = None


def file_stem(name: str) -> str:
    """Return a name for files, such as tests-test_shop.py-test_orders; with a hash if it would not be unique."""
    plain = name.replace("::", "-").replace("/", "-")
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", plain)[:_LONGEST_STEM].strip("-.")
    return stem if stem == plain else f"{stem}-{blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"


def shown_path(file: str) -> str:
    """Return the path of a file relative to the working directory, if the file is in it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def failure_of(error: BaseException, test_file: str = "", at_s: float | None = None) -> RecordedFailure:
    """Return the text, and the last line in the file of the test or, without one, the line that raised it."""
    lines = [(entry.f_code.co_filename, line) for entry, line in walk_tb(error.__traceback__)]
    own = [place for place in lines if place[0] == test_file]
    file, line = (own or lines or [(test_file, -1)])[-1]
    return RecordedFailure(f"{type(error).__name__}: {error}", file, line, at_s)
