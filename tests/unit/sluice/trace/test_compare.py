"""Two traces side by side."""

import pytest

from sluice.trace.build import build
from sluice.trace.compare import compare
from sluice.trace.model import Comparison, Trace
from sluice.trace.recording import Recorded, Run
from tests.support.journals import Journal
from tests.support.trace_findings import Make

NOT_LEADER = 6


def trace(make: Make) -> Trace:
    journal = Journal()
    make(journal)
    return build([Recorded("", journal.events)], Run("test"))


def compared(make: Make, other: Make) -> Comparison:
    return compare(trace(make), trace(other))


def batches(*errors: int, from_ms: float = 10, sequence: int | None = None) -> Make:
    """Return Produce requests with these error codes (0: none); of one batch, if it has a sequence."""

    def make(journal: Journal) -> None:
        for number, error in enumerate(errors):
            codes = [error] if error else []
            at_ms = from_ms + 10 * number
            journal.batch(at_ms, at_ms + 1, sequence=number if sequence is None else sequence, errors=codes)

    return make


def fetches(*errors: int) -> Make:
    def make(journal: Journal) -> None:
        for at_ms, error in enumerate(errors, 1):
            journal.request("Fetch", at_ms, at_ms + 0.5, errors=[error] if error else [])

    return make


def groups(*states: str) -> Make:
    def make(journal: Journal) -> None:
        for at_ms, (before, after) in enumerate(zip(("Empty", *states), states, strict=False), 1):
            journal.group_state(at_ms, before, after)

    return make


PRODUCE = "Produce t-0 of client app"
CASES = {
    "the same": (batches(0, 0), batches(0, 0), []),
    "the same at another time": (batches(0, 0), batches(0, 0, from_ms=500), []),
    "another outcome": (
        batches(0, NOT_LEADER),
        batches(0, 0),
        [f"{PRODUCE}: NOT_LEADER_OR_FOLLOWER here, ok in the other trace"],
    ),
    "a retry": (
        batches(NOT_LEADER, 0, sequence=0),
        batches(NOT_LEADER, sequence=0),
        [f"{PRODUCE}: ok here, not in the other trace"],
    ),
    "a request that is missing": (batches(0), batches(0, 0), [f"{PRODUCE}: ok in the other trace, not here"]),
    "more fetches": (fetches(0, 0, 0), fetches(0), []),
    "fewer fetches": (fetches(0), fetches(0, 0, 0), []),
    "a fetch with an error": (
        fetches(0, NOT_LEADER, NOT_LEADER),
        fetches(0),
        ["Fetch of client app: NOT_LEADER_OR_FOLLOWER here, never in the other trace"],
    ),
    "another state": (
        groups("Stable", "Empty"),
        groups("Stable", "Dead"),
        ["group-g: Empty here, Dead in the other trace"],
    ),
}


@pytest.mark.parametrize(("make", "other", "texts"), CASES.values(), ids=CASES)
def test_differences(make: Make, other: Make, texts: list[str]) -> None:
    found = compared(make, other)
    parts = [one.text for one in found.differences if not one.text.startswith("partition-")]
    assert parts == texts


def test_pairs_are_aligned_by_attempt_and_retry() -> None:
    made, other = trace(batches(NOT_LEADER, 0, sequence=0)), trace(batches(0, 0))
    found = compare(made, other)
    requests = [bar for bar, number in enumerate(made.bars.correlation_id) if number >= 0]
    pairs = dict(found.pairs)
    # The first tries are the same attempt; the retry here has no partner.
    assert [bar in pairs for bar in requests] == [True, False]


def test_the_first_difference_is_the_first_in_time() -> None:
    found = compared(batches(0, NOT_LEADER, 0, NOT_LEADER), batches(0, 0, 0))
    requests = [one for one in found.differences if one.text.startswith("Produce")]
    assert [one.at for one in requests] == sorted(one.at for one in requests)
    assert requests[0].bar >= 0
    assert requests[0].other_bar >= 0


def test_a_missing_request_is_shown_after_what_precedes_it() -> None:
    made = trace(batches(0))
    (missing,) = compare(made, trace(batches(0, 0))).differences
    assert (missing.bar, missing.at) == (-1, made.bars.start[0])


def test_many_differences_are_cut() -> None:
    found = compared(batches(*[NOT_LEADER] * 300), batches(*[0] * 300))
    assert len(found.differences) == 200
