"""The figures of a cell: the duration of each phase of its tests, and the part of it that is the broker's."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from sluice.journal_events import Request

PHASES = ("create", "produce", "consume", "commit", "close")

Interval = tuple[int, int]


class Figures:
    """Nanoseconds by phase, summed over tests."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.answering: Counter[str] = Counter()  # while the broker had a request to answer
        self.polling: Counter[str] = Counter()  # while it had only Fetch requests that found nothing
        self.broker_cpu_ns = 0

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        begin = time.time_ns()
        yield
        self.total[phase] += time.time_ns() - begin

    def add_test(self, begin: int, ends: Sequence[int], requests: Sequence[Request]) -> None:
        for phase, interval in zip(PHASES, pairwise((begin, *ends)), strict=True):
            waits = [(each.received_ns, each.written_ns or each.received_ns, _is_poll(each)) for each in requests]
            answering = covered(interval, [(since, until) for since, until, is_poll in waits if not is_poll])
            self.total[phase] += interval[1] - interval[0]
            self.answering[phase] += answering
            self.polling[phase] += covered(interval, [wait[:2] for wait in waits]) - answering

    def as_json(self, tests: int) -> dict[str, object]:
        def seconds(by_phase: Counter[str]) -> dict[str, float]:
            return {phase: round(ns / 1e9, 3) for phase, ns in by_phase.items() if ns}

        return {
            "tests": tests,
            "seconds": round(self.total.total() / 1e9, 3),
            "broker_cpu_s": round(self.broker_cpu_ns / 1e9, 3),
            "phases": seconds(self.total),
            "answering": seconds(self.answering),
            "long_polls": seconds(self.polling),
        }


def covered(within: Interval, intervals: Sequence[Interval]) -> int:
    """Return how much of an interval the others cover together."""
    total, end = 0, within[0]
    for since, until in sorted(intervals):
        total += max(0, min(until, within[1]) - max(since, end))
        end = max(end, until)
    return total


def _is_poll(request: Request) -> bool:
    """Return whether the response of a Fetch has no records; one of a record is longer than 100 bytes."""
    return request.api == "Fetch" and request.response_bytes < 100
