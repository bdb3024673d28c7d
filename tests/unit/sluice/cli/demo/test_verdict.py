"""The demo's verdicts."""

import pytest

from sluice.cli.demo.trace import FETCH, PRODUCE, Client, Exchange, Trace, replay
from sluice.cli.demo.verdict import Result, as_json, bursts_within, judge
from tests.support.held_client import QUOTA, STARTED_MS, held_client


def calm_client(exchanges: int = 300) -> Client:
    trace = Trace()
    for number in range(exchanges):
        trace.add(Exchange(STARTED_MS + number * 100, STARTED_MS + number * 100 + 2, 20_000, 0))
    return Client("steady", "kafka-python", PRODUCE, QUOTA, trace, exceeds_quota=False)


class TestAThrottledClient:
    @pytest.mark.parametrize("kind", [PRODUCE, FETCH])
    def test_rate_within_5_percent_of_the_quota_passes(self, kind: str) -> None:
        result = judge(held_client(kind, 100_000, 5.0), 30.0)
        assert result.problems == []
        assert result.byte_rate == pytest.approx(QUOTA, rel=0.02)
        assert result.cycles is not None
        assert result.cycles.count == 2
        assert result.virtual_byte_rate == pytest.approx(result.byte_rate, rel=0.02)

    def test_trace_may_end_with_its_last_burst(self) -> None:
        """In virtual time, without the client's delays, that burst is a second later."""
        exchanges = held_client(PRODUCE, 100_000, 2.0, late_ms=5, stops_ms=500).trace.exchanges
        trace = Trace()
        while trace.whole_cycles(QUOTA) is None:
            trace.add(exchanges[len(trace.exchanges)])
        client = Client("bronze", "aiokafka", PRODUCE, QUOTA, trace)
        assert replay(client).whole_cycles(QUOTA) is None
        result = judge(client, 30.0)
        assert result.problems == []
        assert result.virtual_byte_rate == pytest.approx(result.byte_rate, rel=0.02)

    @pytest.mark.parametrize(("enforced", "off"), [(0.93, "-7"), (1.07, "+7")])
    @pytest.mark.parametrize("kind", [PRODUCE, FETCH])
    def test_rate_off_by_more_than_5_percent_fails(self, kind: str, enforced: float, off: str) -> None:
        (problem, *_) = judge(held_client(kind, 100_000, 5.0, enforced=enforced * QUOTA), 30.0).problems
        assert problem.startswith(f"bronze is {off[0]}")
        assert problem.endswith("off its quota; 5% is allowed")

    @pytest.mark.parametrize("enforced", [0.97, 1.03])
    def test_rate_that_differs_from_the_virtual_replay_fails(self, enforced: float) -> None:
        (problem,) = judge(held_client(PRODUCE, 100_000, 5.0, enforced=enforced * QUOTA), 30.0).problems
        assert problem.endswith("off its rate in virtual time; 2% is allowed")

    def test_client_without_throttling_fails(self) -> None:
        trace = Trace()
        for number in range(4000):
            trace.add(Exchange(STARTED_MS + number * 10, STARTED_MS + number * 10 + 5, 100_000, 0))
        (problem,) = judge(Client("bronze", "", PRODUCE, QUOTA, trace), 0.0).problems
        assert "no whole cycle" in problem

    def test_client_without_a_whole_cycle_fails(self) -> None:
        (problem,) = judge(Client("bronze", "", PRODUCE, QUOTA, Trace()), 0.0).problems
        assert "no whole cycle" in problem


class TestTheUnthrottledClient:
    def test_unthrottled_client_below_its_quota_passes(self) -> None:
        result = judge(calm_client(), 0.0)
        assert result.problems == []
        assert result.byte_rate == pytest.approx(200_000, rel=0.01)

    def test_any_throttle_of_the_client_below_its_quota_fails(self) -> None:
        (problem,) = judge(calm_client(), 0.01).problems
        assert problem == "steady was throttled for 0.01 s, but sent less than its quota"

    def test_client_without_requests_fails(self) -> None:
        assert judge(calm_client(0), 0.0).problems == ["steady sent nothing"]


BURSTS = {"one whole cycle in 25 s": (25, 3), "two in 35 s": (35, 4)}


@pytest.mark.parametrize(("seconds", "bursts"), BURSTS.values(), ids=BURSTS)
def test_expected_number_of_bursts(seconds: int, bursts: int) -> None:
    assert bursts_within(seconds) == bursts


class TestTheSummaryForMachines:
    def test_summary_has_rates_relative_to_quotas_and_times_since_the_start(self) -> None:
        results = [judge(held_client(PRODUCE, 100_000, 5.0), 30.5), judge(calm_client(), 0.0)]
        summary = as_json(results, STARTED_MS)
        assert summary["passed"] is True
        held, calm = _rows(summary)
        assert (held["client_id"], held["resource"], held["whole_cycles"]) == ("bronze", "Produce", 2)
        assert held["of_quota"] == results[0].byte_rate / QUOTA
        assert (held["from_s"], held["throttle_s"]) == (pytest.approx(12, abs=0.5), 30.5)
        assert (calm["whole_cycles"], calm["virtual_of_quota"], calm["of_quota"]) == (
            None,
            None,
            pytest.approx(0.2, 0.1),
        )

    def test_one_problem_fails_the_summary(self) -> None:
        bad = Result(calm_client(), 0.0, None, None, 1.0, ["steady was throttled"])
        summary = as_json([judge(held_client(PRODUCE, 100_000, 5.0), 30.5), bad], STARTED_MS)
        assert summary["passed"] is False
        assert _rows(summary)[1]["problems"] == ["steady was throttled"]


def _rows(summary: dict[str, object]) -> list[dict[str, object]]:
    rows = summary["clients"]
    assert isinstance(rows, list)
    return rows
