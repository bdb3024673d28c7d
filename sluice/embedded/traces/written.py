"""The trace of a recorded test, on the time axis of its brokers. Loaded with the first trace that is written."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sluice.trace import recording
from sluice.trace.stored import write_trace

from .recorded_test import RecordedTest, shown_path
from .started import Recorded

_NS_PER_S = 1_000_000_000


def write(path: Path, test: RecordedTest, recorded: Sequence[Recorded], compare: Path | None) -> None:
    """Raise OSError, or SluiceError if the other trace cannot be read."""
    axis = _Axis(recorded)
    failure = test.failure
    phases, lines = ([], []) if axis.is_virtual else (test.phases, _log_lines(test.log_records))
    logs = [recording.LogLine(axis.ns(at_s), *line) for at_s, *line in lines]
    logs += [recording.LogLine(at_ns, "INFO", "explore", text) for one in recorded for at_ns, text in one.notes]
    run = recording.Run(
        title=test.name,
        result="failed" if failure else "passed" if test.phases else "",
        phases=[recording.PhaseTimes(one.name, axis.ns(one.start_s), axis.ns(one.end_s), one.result) for one in phases],
        logs=logs,
        failure=failure
        and recording.FailedLine(failure.text, shown_path(failure.file), failure.line, axis.ns(failure.at_s)),
    )
    several = len(recorded) > 1
    journals = [recording.Recorded(one.bootstrap if several else "", one.events) for one in recorded]
    write_trace(path, journals, run, compare)


def _log_lines(records: Iterable[logging.LogRecord]) -> Iterator[tuple[float, str, str, str]]:
    for record in records:
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
