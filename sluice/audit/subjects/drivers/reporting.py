"""Output of drivers: callbacks as JSON lines with timestamps; their input, the job; and lifetimes of their clients."""

import asyncio
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from itertools import count

import msgspec

from sluice.audit.judge.model.observation import Callback
from sluice.audit.subjects.subject import Job, OnCallback

_encoder = msgspec.json.Encoder()


def job_from_stdin() -> Job:
    return msgspec.json.decode(sys.stdin.buffer.read(), type=Job)


def print_line(callback: Callback) -> None:
    """Write one line atomically, because several threads report."""
    sys.stdout.buffer.write(_encoder.encode(callback) + b"\n")
    sys.stdout.buffer.flush()


class DriverReporter:
    """Reports callbacks of one client with timestamps, and numbers its records."""

    def __init__(self, on_callback: OnCallback) -> None:
        self._on_callback = on_callback
        self._numbers: Iterator[int] = count()

    def event(self, event: str, error: BaseException | str | None = None) -> None:
        self._report(event, error=error)

    def sent(self, partition: int) -> int:
        """Report a record passed to the client; return its number, which is also its value."""
        number = next(self._numbers)
        self._report("sent", number, partition)
        return number

    def delivered(self, number: int, partition: int, offset: int) -> None:
        self._report("delivered", number, partition, offset)

    def failed(self, number: int, partition: int, error: BaseException | str) -> None:
        self._report("failed", number, partition, error=error)

    def received(self, value: bytes | None, partition: int, offset: int) -> None:
        number = int(value) if value is not None and value.isdigit() else -1
        self._report("received", number, partition, offset)

    def _report(
        self,
        event: str,
        record: int = -1,
        partition: int = -1,
        offset: int = -1,
        error: BaseException | str | None = None,
    ) -> None:
        callback = Callback(
            at_ns=time.time_ns(),
            event=event,
            record=record,
            partition=partition,
            offset=offset,
            error=_name(error),
            text=_text(error),
        )
        self._on_callback(callback)


def _name(error: BaseException | str | None) -> str:
    if error is None or isinstance(error, str):
        return error or ""
    return type(error).__name__


def _text(error: BaseException | str | None) -> str:
    return "" if error is None or isinstance(error, str) else str(error).split("\n")[0][:500]


FOREVER_S = 1e6


async def run_for(ms: int, work: Coroutine[object, object, None]) -> None:
    """Cancel the work after this long; 0 means no limit."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, ms / 1000 or None)


def deadline_s(lifetime_ms: int) -> float:
    return time.monotonic() + (lifetime_ms / 1000 or FOREVER_S)
