"""Tests of the sentences of a report: from counts made by hand, and from simulated failures of each kind."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.mix import parse_mix
from sluice.fleet.report.sentences import (
    attempts_sentence,
    bytes_sentence,
    kinds_sentence,
    outcomes_sentence,
    queue_sentence,
    sweep_sentence,
)
from sluice.fleet.results import ClientGroup, Phase, Result
from sluice.fleet.run import run_fleet
from sluice.fleet.simulation.broker import BROKERS
from sluice.fleet.simulation.counters import KINDS, Count
from sluice.fleet.simulation.quota import Fairness
from sluice.fleet.sweep import Row

_HEALTHY = Phase(0, 3, 3, 0.0, 0, [])
_KILLED = Phase(10_000, 2, 2, 1 / 3, 19_000, [])
_HEALED = Phase(20_000, 3, 2, 0.0, 0, [])


def _result(seconds: Mapping[range, Mapping[Count, int]], phases: Sequence[Phase], brokers: int = 3) -> Result:
    """Return a run of 40 s with 100 operations/s, but for these seconds."""
    counts = np.zeros((400, len(KINDS)), dtype=np.int64)
    counts[::10, [Count.COMPLETED, Count.PRODUCE_REQUESTS, Count.SERVED]] = 100
    counts[::10, Count.LATENCY_US] = 100 * 1000
    for span, values in seconds.items():
        for second in span:
            for kind, count in values.items():
                counts[second * 10, kind] = count
    return Result(
        scenario="test",
        groups=[ClientGroup("kafka-4.4", 100, ClientModel())],
        broker=BROKERS["kafka"].scaled_to(200),
        brokers=brokers,
        trigger_ms=10_000,
        healed_ms=20_000,
        seeds=[0],
        counts=[counts.tolist()],
        events=1,
        phases=list(phases),
    )


_LOST = _result(
    {
        range(10, 19): {
            Count.COMPLETED: 0,
            Count.LATENCY_US: 0,
            Count.CONNECTIONS: 300,
            Count.REFUSED: 290,
            Count.METADATA_REQUESTS: 90,
        },
        range(19, 20): {Count.COMPLETED: 1000, Count.LATENCY_US: 1000 * 4_500_000},
    },
    [_HEALTHY, _KILLED, _HEALED],
)


def test_attempts_of_a_lost_leader_are_connections_to_it() -> None:
    assert attempts_sentence(_LOST) == (
        "Most attempts are made in second 10: 490, 4.9 times those of a normal second. 77 % of the additional ones are"
        " connections: 290 are refused, as 1 of 3 brokers is down. More than 1.2 times the normal attempts are made for"
        " 9 s."
    )
    assert kinds_sentence(_LOST) == (
        "From second 10 on, the failure adds 2,700 connections and 810 Metadata requests, 35.1 attempts per client;"
        " 2,610 connections are refused."
    )


def test_no_operations_complete_until_the_killed_replica_leaves_the_isr() -> None:
    assert outcomes_sentence(_LOST) == (
        "From second 10 to 18, no operations complete, because 33 % of the partitions do not have a leader that runs"
        " and acks=all waits for the killed replica until it leaves the ISR, at 19 s. In second 19, 1,000 complete:"
        " those that waited, after 4,500 ms on average."
    )


CAUSES = {
    "all brokers are down": (Phase(10_000, 0, 0, 1.0, 0, []), "no broker runs"),
    "a fault rule": (Phase(10_000, 3, 3, 0.0, 0, ["close connections"]), "the fault rules close connections"),
    "no leaders": (Phase(10_000, 2, 2, 0.5, 0, []), "50 % of the partitions do not have a leader that runs"),
}


@pytest.mark.parametrize(("phase", "cause"), CAUSES.values(), ids=CAUSES)
def test_cause_of_missing_operations_is_that_of_the_phase(phase: Phase, cause: str) -> None:
    found = _result({range(10, 20): {Count.COMPLETED: 20}}, [_HEALTHY, phase, _HEALED])
    assert f"20 % of the normal number of operations completes, because {cause}." in outcomes_sentence(found)


def test_result_without_phases_has_no_cause() -> None:
    found = _result({range(10, 20): {Count.COMPLETED: 0}}, [])
    assert outcomes_sentence(found) == "From second 10 to 19, no operations complete."


def test_cause_of_late_operations_is_the_queue() -> None:
    late = {Count.COMPLETED: 100, Count.LATENCY_US: 100 * 850_000, Count.QUEUED_US: 100 * 850_000}
    found = _result({range(20, 40): late}, [_HEALTHY, _KILLED, _HEALED])
    assert outcomes_sentence(found) == (
        "From second 20 to 39, operations complete up to 850 ms after their creation, because requests wait in the"
        " queues of the brokers."
    )


@pytest.mark.parametrize(
    ("produced", "last", "end"),
    [
        pytest.param(
            360, 36,
            "the work that arrives is 90 % of what the leaders can do. The rest of their time drains the queues.",
            id="drained by the rest of the time",
        ),
        pytest.param(
            480, 36,
            "the work that arrives is 120 % of what the leaders can do. Later seconds with less work drain the queues.",
            id="drained later",
        ),
        pytest.param(
            480, 40,
            "the work that arrives is 120 % of what the leaders can do, and the queues are not empty at the end of the"
            " run.",
            id="not drained",
        ),
    ],
)  # fmt: skip
def test_queue_is_explained_by_what_drains_it(produced: int, last: int, end: str) -> None:
    busy = {Count.PRODUCE_REQUESTS: produced, Count.SERVED: produced, Count.QUEUED_US: produced * 850_000}
    found = queue_sentence(_result({range(20, last): busy}, [_HEALTHY, _KILLED, _HEALED]))
    assert found.startswith("Requests wait longest in second 20, 850 ms on average: what arrives in second 20 needs ")
    assert f"From second 20 to {last - 1}, {end}" in found


def test_queue_is_explained_by_the_seconds_that_fill_it() -> None:
    connecting = {Count.CONNECTIONS: 20_000, Count.SERVED: 100, Count.QUEUED_US: 100 * 2_600_000}
    longest = {Count.PRODUCE_REQUESTS: 100, Count.SERVED: 100, Count.QUEUED_US: 100 * 3_000_000}
    found = _result({range(10, 11): connecting, range(11, 12): longest}, [_HEALTHY, _KILLED, _HEALED])
    assert re.match(
        r"Requests wait longest in second 11, 3,000 ms on average: what arrives from second 10 to 11 needs \d+ % of the"
        r" CPU time of the leaders, \d+ % of it for connections\.",
        queue_sentence(found),
    )


def test_short_queue_has_the_use_of_the_brokers() -> None:
    assert queue_sentence(_LOST).startswith("Requests wait for less than 5 ms: in the busiest second, they need ")


def test_retries_have_the_errors_of_their_second() -> None:
    found = _result({range(12, 14): {Count.PRODUCE_RETRIES: 200, Count.ERRORS: 180}}, [_HEALTHY, _KILLED, _HEALED])
    assert "retries of Produce: in this second 180 requests got an error, and 0 timed out." in attempts_sentence(found)


def test_expired_operations_have_their_second() -> None:
    found = _result({range(15, 16): {Count.EXPIRED: 70}}, [_HEALTHY, _KILLED, _HEALED])
    assert "70 operations fail, most in second 15: they were created delivery.timeout.ms before." in outcomes_sentence(
        found
    )


def test_failure_without_effect_is_stated() -> None:
    found = _result({}, [_HEALTHY, _KILLED, _HEALED])
    assert attempts_sentence(found).startswith("No second has more than 1.2 times the normal attempts")
    assert kinds_sentence(found) == "The failure adds no attempts."
    assert outcomes_sentence(found) == (
        "Operations complete at the normal rate, at most 0 ms later than in a normal second."
    )


def test_quota_has_its_burst_and_throttle_time() -> None:
    found = _result(
        {range(12, 13): {Count.BYTES: 10_000, Count.THROTTLED_US: 250_000_000}}, [_HEALTHY, _KILLED, _HEALED]
    )
    found = Result(**{**{name: getattr(found, name) for name in found.__struct_fields__}, "fairness": [Fairness(1, 9)]})
    assert bytes_sentence(found).startswith(
        "Most bytes are sent in second 12, 10,000; the mean from second 10 on is 333."
    )
    assert "throttled for 2.5 s each" in bytes_sentence(found)


def test_cells_without_recovery_have_the_reason() -> None:
    rows = [Row("f", 20, load, 0, 1, 1, 9 if load < 0.7 else 99, 3 if load < 0.7 else -1, 0) for load in (0.3, 0.8)]
    assert sweep_sentence(rows, "f", 3) == (
        "f does not recover at a load of 0.8 from an outage of 20 s on: after the outage, 2 of 3 brokers lead all"
        " partitions, and can carry a load of 0.67. It is disturbed longest, for 99 s, by an outage of 20 s at a"
        " load of 0.8."
    )
    assert sweep_sentence(rows[:1], "f", 3).startswith("f recovers in all cells.")
    assert "wait longer than their timeouts" in sweep_sentence(rows, "f", 1)


def test_phases_are_those_of_the_scenario() -> None:
    document = {
        "name": "two", "brokers": 3, "duration": "30s",
        "steps": [
            {"at": "5s", "kill": 1, "during": "12s"},
            {"at": "20s", "fault": {"api": "Produce", "action": {"kind": "close"}}, "during": "2s"},
        ],
    }  # fmt: skip
    found = run_fleet(scenario_of(document), parse_mix("java:30"), BROKERS["kafka"]).phases
    seen = [(phase.from_ms, phase.running, phase.leading, round(phase.without_leader, 2)) for phase in found]
    assert seen == [
        (0, 3, 3, 0), (5000, 2, 2, 0.33), (14_000, 2, 2, 0), (17_000, 3, 2, 0), (20_000, 3, 2, 0), (22_000, 3, 2, 0),
    ]  # fmt: skip
    assert [phase.replicated_ms for phase in found] == [0, 14_000, 0, 0, 0, 0]
    assert [phase.faults for phase in found] == [[], [], [], [], ["close connections"], []]
