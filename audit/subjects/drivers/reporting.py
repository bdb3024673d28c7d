"""How drivers tell what happens: a line of JSON each, with the time; and how they are told what to do."""

import sys
import time
from collections.abc import Iterator
from itertools import count

import msgspec

from sluice.audit.judge.model.observation import Callback
from sluice.audit.subjects.subject import Job, Tell

_encoder = msgspec.json.Encoder()


def job_from_stdin() -> Job:
    """What the process is to do."""
    return msgspec.json.decode(sys.stdin.buffer.read(), type=Job)


def print_line(told: Callback) -> None:
    """One line, written at once and as a whole: threads tell, too."""
    sys.stdout.buffer.write(_encoder.encode(told) + b"\n")
    sys.stdout.buffer.flush()


class Teller:
    """Tells of one client, with times, and numbers its records."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._numbers: Iterator[int] = count()

    def event(self, event: str, error: BaseException | str | None = None) -> None:
        """Something that is about no record."""
        self._tell(Callback(at_ns=time.time_ns(), event=event, error=_name(error), text=_text(error)))

    def sent(self, partition: int) -> int:
        """A record is handed over; returns its number, which is its value as well."""
        number = next(self._numbers)
        self._tell(Callback(at_ns=time.time_ns(), event="sent", record=number, partition=partition))
        return number

    def delivered(self, number: int, partition: int, offset: int) -> None:
        """A record is acknowledged."""
        self._tell(Callback(at_ns=time.time_ns(), event="delivered", record=number, partition=partition, offset=offset))

    def failed(self, number: int, partition: int, error: BaseException | str) -> None:
        """A record is given up."""
        self._tell(
            Callback(
                at_ns=time.time_ns(),
                event="failed",
                record=number,
                partition=partition,
                error=_name(error),
                text=_text(error),
            )
        )

    def received(self, value: bytes | None, partition: int, offset: int) -> None:
        """A record is read."""
        record = int(value) if value is not None and value.isdigit() else -1
        self._tell(Callback(at_ns=time.time_ns(), event="received", record=record, partition=partition, offset=offset))


def _name(error: BaseException | str | None) -> str:
    if error is None or isinstance(error, str):
        return error or ""
    return type(error).__name__


def _text(error: BaseException | str | None) -> str:
    return "" if error is None or isinstance(error, str) else str(error).split("\n")[0][:500]
