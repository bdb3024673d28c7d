"""Responses that took long."""

import pytest

from sluice.trace.findings.responses import slow_response as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def took(api: str, ms: float, *, throttle_ms: int = 0, rule_id: str = "", **sent: int) -> Make:
    return lambda journal: journal.request(api, 0, ms, throttle_ms=throttle_ms, rule_id=rule_id, sent=sent)


def twice(journal: Journal) -> None:
    for at_ms in (0, 5_000):
        journal.request("Produce", at_ms, at_ms + 2_000)


CASES = {
    "a Produce": (took("Produce", 2_000), ["1 Produce request of client app took up to 2 s"]),
    "two": (twice, ["2 Produce requests of client app took up to 2 s"]),
    "by a rule": (
        took("Metadata", 2_000, rule_id="r"),
        ["1 Metadata request of client app took up to 2 s, by fault rule r"],
    ),
    "a Fetch above its wait": (took("Fetch", 2_000, max_wait_ms=500), ["1 Fetch request of client app took up to 2 s"]),
    "a Fetch within its wait": (took("Fetch", 5_000, max_wait_ms=5_000), []),
    "a Fetch of an older journal": (took("Fetch", 5_000), []),
    "throttled before the response": (took("Produce", 2_000, throttle_ms=1_900), []),
    "a rebalance": (took("JoinGroup", 4_000), []),
    "a long rebalance": (took("JoinGroup", 6_000), ["1 JoinGroup request of client app took up to 6 s"]),
    "fast": (took("Produce", 900), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_slow_responses(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles
