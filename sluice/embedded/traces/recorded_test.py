"""What a test did, and its trace. Times are those of the machine's clock, in seconds since the epoch."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple

from .started import Recorded

_LONGEST_STEM = 120  # characters; file systems accept names of up to 255 bytes
_NS_PER_S = 1_000_000_000


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

    def write(self, folder: Path, recorded: Sequence[Recorded], *, has_passed: bool = False) -> str:
        """Write the trace into a folder, and return its path or, in one line, why it was not written.

        A failed test is compared with the trace of the last run that passed, if the folder has one.
        """
        stem = file_stem(self.name)
        path, passed = folder / f"{stem}.html", folder / f"{stem}.passed.html"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if has_passed:
                path = passed
                self.write_file(path, recorded)
            else:
                self.write_file(path, recorded, passed if passed.is_file() else None)
        except OSError as error:
            return f"{path}: cannot write the trace: {error.strerror or error}"
        except Exception as error:  # an error here must not hide the failure of the test
            return f"{path}: cannot write the trace: {error!r}"
        return str(path)

    def write_file(self, path: Path, recorded: Sequence[Recorded], compare: Path | None = None) -> None:
        """Raise OSError, or SluiceError if the other trace cannot be read."""
        from sluice.trace.recording import FailedLine, LogLine, PhaseTimes, Run
        from sluice.trace.recording import Recorded as Journal
        from sluice.trace.stored import write_trace

        axis = _Axis(recorded)
        failure = self.failure
        phases, lines = ([], []) if axis.is_virtual else (self.phases, self._log_lines())
        run = Run(
            title=self.name,
            result="failed" if failure else "passed" if self.phases else "",
            phases=[PhaseTimes(one.name, axis.ns(one.start_s), axis.ns(one.end_s), one.result) for one in phases],
            logs=[LogLine(axis.ns(at_s), *line) for at_s, *line in lines],
            failure=failure and FailedLine(failure.text, failure.file, failure.line, axis.ns(failure.at_s)),
        )
        several = len(recorded) > 1
        write_trace(path, [Journal(one.bootstrap if several else "", one.events) for one in recorded], run, compare)

    def _log_lines(self) -> Iterator[tuple[float, str, str, str]]:
        for record in self.log_records:
            try:
                text = record.getMessage()
            except Exception:  # arguments that do not fit: logging prints such an error, and continues
                text = str(record.msg)
            yield record.created, record.levelname, record.name, text


class _Axis:
    """The time axis of the journals; those of one machine differ by less than a millisecond."""

    def __init__(self, recorded: Sequence[Recorded]) -> None:
        self._ahead_ns = recorded[0].ahead_ns
        self._last_ns = max((event.at_ns for one in recorded for event in one.events[-1:]), default=0)
        self.is_virtual = self._ahead_ns is None

    def ns(self, at_s: float | None) -> int:
        """Return the time on the axis; the end, if it is not known."""
        return self._last_ns if at_s is None or self._ahead_ns is None else round(at_s * _NS_PER_S) + self._ahead_ns


def file_stem(name: str) -> str:
    """Return a name for files, such as tests-test_shop.py-test_orders; with a hash if it would not be unique."""
    plain = name.replace("::", "-").replace("/", "-")
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", plain)[:_LONGEST_STEM].strip("-.")
    return stem if stem == plain else f"{stem}-{blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"


def failure_of(error: BaseException, test_file: str = "", at_s: float | None = None) -> RecordedFailure:
    """Return the text, and the last line in the file of the test or, without one, the line that raised it."""
    lines = [(entry.f_code.co_filename, line) for entry, line in walk_tb(error.__traceback__)]
    own = [place for place in lines if place[0] == test_file]
    file, line = (own or lines or [(test_file, -1)])[-1]
    return RecordedFailure(f"{type(error).__name__}: {error}", file, line, at_s)
