"""Ten minutes without a broker, and ten of failing batches, take seconds in virtual time and are deterministic.

`make test` runs our own client once; with --audit-seeds, aiokafka runs too, and both run twice.
"""

import time

import pytest

from sluice.audit.judge.model.observation import Observation
from sluice.audit.probes import PROBES
from sluice.audit.runs.virtual_run import run_virtual
from sluice.audit.subjects import VIRTUAL
from sluice.journal_events import ConnectionOpened, Request

PROBE = PROBES["ten-minutes"]
OUTAGE_S = 600
# Processor time; aiokafka connects twenty times a second.
SECONDS = 60


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_full = metafunc.config.getoption("--audit-seeds") is not None
    metafunc.parametrize("subject", list(VIRTUAL) if is_full else ["sluice-virtual"])
    metafunc.parametrize("times", [2 if is_full else 1])


def test_ten_minutes_take_seconds_and_are_deterministic(subject: str, times: int) -> None:
    began_s = time.process_time()
    runs = [run_virtual(VIRTUAL[subject], PROBE, repetition=0, seed=7).observation for _ in range(times)]
    assert time.process_time() - began_s < SECONDS * times
    assert all(run == runs[0] for run in runs)
    assert runs[0].problem == ""
    assert longest_s(runs[0], ConnectionOpened) > OUTAGE_S - 2, "connections failed for less than ten minutes"
    assert longest_s(runs[0], Request) > OUTAGE_S - 2, "batches failed for less than ten minutes"


def longest_s(run: Observation, kind: type[ConnectionOpened | Request]) -> float:
    """Return the longest time from the first to the last of such events without a pause above the maximum backoff."""
    longest_ns, first_ns, last_ns = 0, 0, 0
    for at_ns in [event.at_ns for event in run.events if isinstance(event, kind)]:
        if at_ns - last_ns > 3_000_000_000:
            first_ns = at_ns
        last_ns = at_ns
        longest_ns = max(longest_ns, last_ns - first_ns)
    return longest_ns / 1e9
