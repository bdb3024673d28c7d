"""The search for the smallest sufficient quota, and the rounding of quotas."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.spark.charges.charges import Client, Columns, lane_of, requests_of
from sluice.spark.plan.analysis import Limits, Settings, find_need, readable, try_candidates
from sluice.spark.plan.replay import Loop, replay

MS = 1_000_000
SHOP = Client("Produce", "1", "", "shop")


def packed(rows: list[tuple[int, int]]) -> bytes:
    columns = Columns()
    for at_ms, value in rows:
        columns.append(at_ms * MS, value, lane_of(1, 9), 0)
    return columns.pack()


def settings_with(limits: Limits | None, loop: Loop = "closed") -> Settings:
    return Settings((1000.0, 2000.0), ("kafka-4.4", "kip-13"), (loop,), "client-id", limits)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 50_000)), min_size=1, max_size=150),
    st.sampled_from([Limits(0, 0.0), Limits(100, 0.05), Limits(1000, 0.5)]),
    st.sampled_from(["closed", "open"]),
)
def test_the_required_quota_was_replayed_and_is_within_the_limits(
    steps: list[tuple[int, int]], limits: Limits, loop: Loop
) -> None:
    at_ms = list(accumulate(step_ms for step_ms, _ in steps))
    part = packed([(at, value) for at, (_, value) in zip(at_ms, steps, strict=True)])
    found = find_need(SHOP, [part], settings_with(limits, loop))
    requests = requests_of([part])
    assert found is not None
    assert requests is not None
    assert limits.are_met(found.outcome)
    assert found.outcome == replay(SHOP, requests, found.candidate)
    assert (found.candidate.profile, found.candidate.loop) == ("kafka-4.4", loop)


def test_without_throttling_the_required_quota_is_the_rate_of_the_busiest_ten_seconds() -> None:
    # 100 kB each half second, for 30 s, and 1 MB more: with that there are 3.1 MB in 10.1 s.
    rows = [(500 * number, 100_000) for number in range(60)] + [(15_100, 1_000_000)]
    found = find_need(SHOP, [packed(sorted(rows))], settings_with(Limits(0, 0.0)))
    assert found is not None
    assert found.candidate.quota == pytest.approx(3_100_000 / 10.1, rel=0.01)
    assert found.outcome.throttled == 0


BURSTS = {
    "no throttling: a burst may be ten seconds of the quota": (Limits(0, 0.0), 20_000),
    "2 s at most: KIP-13's formula solved for the quota": (Limits(2000, 1.0), 16_700),
}


@pytest.mark.parametrize(("limits", "quota"), BURSTS.values(), ids=BURSTS)
def test_one_burst(limits: Limits, quota: int) -> None:
    found = find_need(SHOP, [packed([(0, 200_000)])], settings_with(limits))
    assert found is not None
    assert found.candidate.quota == pytest.approx(quota, rel=0.011)
    assert found.candidate.quota >= quota


def test_without_limits_no_quota_is_required() -> None:
    assert find_need(SHOP, [packed([(0, 5)])], settings_with(None)) is None


def test_every_candidate_is_tried() -> None:
    every_loop = settings_with(None)._replace(loops=("open", "closed"))
    found = list(try_candidates(SHOP, [packed([(0, 20_000), (10, 20_000)])], every_loop))
    assert {each.candidate for each in found} == set(every_loop.candidates)
    assert len(found) == 8


def test_a_client_without_served_requests_is_omitted() -> None:
    columns = Columns()
    columns.append(0, 0, lane_of(1, 9), 500)
    assert list(try_candidates(SHOP, [columns.pack()], settings_with(None))) == []
    assert find_need(SHOP, [columns.pack()], settings_with(Limits(0, 0.0))) is None


@pytest.mark.parametrize(
    ("quota", "rounded"),
    [(0.1, 1), (1, 1), (12.01, 13), (999, 999), (999.5, 1000), (1001, 1010), (123_456, 124_000), (999_001, 1_000_000)],
)
def test_quotas_are_rounded_up_to_three_digits(quota: float, rounded: int) -> None:
    assert readable(quota) == rounded
