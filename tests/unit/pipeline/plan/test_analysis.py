"""The search for the smallest quota that is enough, and numbers that people can say."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.pipeline.charges.charges import Client, Columns, lane_of, requests_of
from sluice.pipeline.plan.analysis import Limits, Settings, needed, readable, tried
from sluice.pipeline.plan.replay import Loop, replay

MS = 1_000_000
SHOP = Client("Produce", "1", "", "shop")


def packed(rows: list[tuple[int, int]]) -> bytes:
    columns = Columns()
    for at_ms, value in rows:
        columns.append(at_ms * MS, value, lane_of(1, 9), 0)
    return columns.pack()


def asking(limits: Limits | None, loop: Loop = "closed") -> Settings:
    return Settings((1000.0, 2000.0), ("kafka-4.4", "kip-13"), (loop,), "client-id", limits)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 50_000)), min_size=1, max_size=150),
    st.sampled_from([Limits(0, 0.0), Limits(100, 0.05), Limits(1000, 0.5)]),
    st.sampled_from(["closed", "open"]),
)
def test_what_is_needed_was_replayed_and_spares(steps: list[tuple[int, int]], limits: Limits, loop: Loop) -> None:
    at_ms = list(accumulate(step_ms for step_ms, _ in steps))
    part = packed([(at, value) for at, (_, value) in zip(at_ms, steps, strict=True)])
    found = needed(SHOP, [part], asking(limits, loop))
    requests = requests_of([part], undelayed=loop == "closed")
    assert found is not None
    assert requests is not None
    assert limits.spare(found.outcome)
    assert found.outcome == replay(SHOP, requests, found.candidate)
    assert (found.candidate.profile, found.candidate.loop) == ("kafka-4.4", loop)


def test_a_client_that_never_may_wait_needs_what_its_busiest_ten_seconds_had() -> None:
    # 100 kB each half second, for 30 s, and 1 MB more: with that there are 3.1 MB in 10.1 s.
    rows = [(500 * number, 100_000) for number in range(60)] + [(15_100, 1_000_000)]
    found = needed(SHOP, [packed(sorted(rows))], asking(Limits(0, 0.0)))
    assert found is not None
    assert found.candidate.quota == pytest.approx(3_100_000 / 10.1, rel=0.01)
    assert found.outcome.throttled == 0


@pytest.mark.parametrize(
    ("limits", "quota"),
    [
        pytest.param(Limits(0, 0.0), 20_000, id="none may wait: twenty seconds' worth at once is ten seconds'"),
        pytest.param(Limits(2000, 1.0), 16_700, id="2 s at most: KIP-13's formula turned round"),
    ],
)
def test_one_burst(limits: Limits, quota: int) -> None:
    found = needed(SHOP, [packed([(0, 200_000)])], asking(limits))
    assert found is not None
    assert found.candidate.quota == pytest.approx(quota, rel=0.011)
    assert found.candidate.quota >= quota


def test_without_limits_nothing_is_needed() -> None:
    assert needed(SHOP, [packed([(0, 5)])], asking(None)) is None


def test_every_candidate_is_tried() -> None:
    asked = asking(None)._replace(loops=("open", "closed"))
    found = list(tried(SHOP, [packed([(0, 20_000), (10, 20_000)])], asked))
    assert {each.candidate for each in found} == set(asked.candidates)
    assert len(found) == 8


def test_a_client_that_was_served_nothing_is_left_out() -> None:
    columns = Columns()
    columns.append(0, 0, lane_of(1, 9), 500)
    assert list(tried(SHOP, [columns.pack()], asking(None))) == []
    assert needed(SHOP, [columns.pack()], asking(Limits(0, 0.0))) is None


@pytest.mark.parametrize(
    ("quota", "said"),
    [(0.1, 1), (1, 1), (12.01, 13), (999, 999), (999.5, 1000), (1001, 1010), (123_456, 124_000), (999_001, 1_000_000)],
)
def test_numbers_that_people_can_say(quota: float, said: int) -> None:
    assert readable(quota) == said
