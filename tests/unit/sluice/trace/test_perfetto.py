"""Chrome trace events, which ui.perfetto.dev opens."""

import json
from collections import Counter
from typing import Any

import pytest

from sluice.trace.build import build
from sluice.trace.perfetto import perfetto
from sluice.trace.recording import Recorded, Run
from tests.support.journals import Journal

NOT_LEADER = 6
# The fields that the format requires, by phase.
REQUIRED = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "b": {"name", "cat", "id", "pid", "tid", "ts", "args"},
    "e": {"name", "cat", "id", "pid", "tid", "ts"},
    "i": {"name", "cat", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    journal = Journal()
    journal.connection(0, 90, by_client=True)
    journal.batch(10, 20, errors=[NOT_LEADER])
    journal.batch(30, 40)
    journal.request("Metadata", 32, 34)  # pipelined: begins within the batch
    journal.group_state(5, "Empty", "Stable")
    trace = build([Recorded("", journal.events)], Run("test"))
    return dict(json.loads(perfetto(trace)))


@pytest.fixture(scope="module")
def events(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["traceEvents"])


def test_every_event_has_the_fields_of_its_phase(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert event.keys() - {"ph"} == REQUIRED[event["ph"]], event


def test_all_phases_occur(events: list[dict[str, Any]]) -> None:
    assert Counter(event["ph"] for event in events).keys() == REQUIRED.keys()


def test_times_are_integers_within_the_trace(events: list[dict[str, Any]]) -> None:
    for event in events:
        if event["ph"] != "M":
            assert 0 <= event["ts"] <= 90_000
            assert event.get("dur", 0) >= 0


def test_complete_events_of_a_thread_do_not_overlap(events: list[dict[str, Any]]) -> None:
    until: dict[int, int] = {}
    for event in events:
        if event["ph"] == "X":
            assert event["ts"] >= until.get(event["tid"], 0)
            until[event["tid"]] = event["ts"] + event["dur"]


def test_async_events_and_flows_are_pairs(events: list[dict[str, Any]]) -> None:
    for begin, end in (("b", "e"), ("s", "f")):
        begun = [event["id"] for event in events if event["ph"] == begin]
        assert begun
        assert begun == [event["id"] for event in events if event["ph"] == end]


def test_threads_are_named_after_lanes(events: list[dict[str, Any]]) -> None:
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names.keys() == {event["tid"] for event in events}
    assert "#1 to broker 1" in names.values()


def test_arguments_show_the_request(events: list[dict[str, Any]]) -> None:
    (failed,) = [event for event in events if event.get("cat") == "error"]
    assert failed["name"] == "Produce t-0 (v9)"
    expected = {"outcome": "NOT_LEADER_OR_FOLLOWER", "request_bytes": 100, "parked_ms": 10.0}
    assert failed["args"].items() >= expected.items()


def test_the_document_names_the_trace(document: dict[str, Any]) -> None:
    assert document["otherData"]["title"] == "test"
    assert document["displayTimeUnit"] == "ms"
