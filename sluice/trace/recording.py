"""What a trace is made of: events of journals, and the record of a test. Times are nanoseconds since the epoch."""

from collections.abc import Sequence
from typing import NamedTuple

from sluice.journal_events import AnyEvent

from .model import NONE, Result


class Recorded(NamedTuple):
    """The events of one cluster, in order of `seq`; `label` is "" if it is the only one."""

    label: str
    events: Sequence[AnyEvent]


class PhaseTimes(NamedTuple):
    """A phase of a test: setup, call or teardown; `result` is passed, failed, skipped or ""."""

    name: str
    start_ns: int
    end_ns: int
    result: str = ""


class LogLine(NamedTuple):
    at_ns: int
    level: str
    logger: str
    text: str


class FailedLine(NamedTuple):
    """The failed assertion, and its place in the test."""

    text: str
    file: str = ""
    line: int = NONE
    at_ns: int = NONE


class Run(NamedTuple):
    """A test, or any other run that a trace shows."""

    title: str
    subtitle: str = ""
    result: Result = ""
    phases: Sequence[PhaseTimes] = ()
    logs: Sequence[LogLine] = ()
    failure: FailedLine | None = None
