"""Whole cycles and replay, with simulated clients in virtual time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.cli.demo.trace import FETCH, PRODUCE, Client, Exchange, Trace, replay
from tests.support.held_client import QUOTA, held_client


def trace_of(*responses: tuple[float, float]) -> Trace:
    """Return a trace of exchanges, as response times in seconds and payloads in MB."""
    trace = Trace()
    for at_s, payload_mb in responses:
        trace.add(Exchange(at_s * 1e3, at_s * 1e3, round(payload_mb * 1e6), 0))
    return trace


class TestTrace:
    def test_exchanges_from_start_inclusive_to_end_exclusive_are_counted(self) -> None:
        trace = trace_of((0, 1), (1, 2), (2, 4))
        assert trace.bytes_between(0, 2000) == 3_000_000
        assert trace.bytes_between(1000, 2001) == 6_000_000
        assert trace.byte_rate(0, 4000) == 1_750_000.0
        assert trace.payload_bytes == 7_000_000

    def test_empty_trace_has_no_bytes_and_no_burst(self) -> None:
        assert Trace().bytes_between(0, 1e6) == 0
        assert Trace().burst_starts(QUOTA) == []
        assert Trace().whole_cycles(QUOTA) is None


BURSTS = {
    "a burst exceeds 1.5 s of the quota within 1 s": ([(0, 10), (12, 10), (24, 10), (26, 0)], [0, 12, 24]),
    "even traffic at the quota is no burst": ([(0, 1), (1, 1), (2, 1), (3, 1)], []),
    "no second burst starts within 8 s": ([(0, 3), (7.9, 7), (9, 0)], [0]),
    "a burst may start after 8 s": ([(0, 3), (8.1, 7), (10, 0)], [0, 8.1]),
    "the first response of a burst may be smaller": ([(0.6, 0.6), (1, 0.8), (1.7, 0.9), (2, 7), (4, 0)], [0.6]),
    "but not 1.5 s earlier": ([(0, 1.2), (1.6, 7), (3, 0)], [1.6]),
    "an incomplete second does not count": ([(0, 10), (12, 10), (12.5, 0)], [0]),
}


@pytest.mark.parametrize(("responses", "starts_s"), BURSTS.values(), ids=BURSTS)
def test_burst_starts(responses: list[tuple[float, float]], starts_s: list[float]) -> None:
    assert trace_of(*responses).burst_starts(QUOTA) == [at_s * 1e3 for at_s in starts_s]


class TestWholeCycles:
    def test_whole_cycles_exclude_the_first_burst_and_the_rest_after_the_last(self) -> None:
        cycles = trace_of((0, 99), (11, 11), (22, 9), (31, 12), (33, 50)).whole_cycles(QUOTA)
        assert cycles is not None
        assert (cycles.count, cycles.start_ms, cycles.end_ms) == (2, 11_000, 31_000)
        assert cycles.byte_rate == QUOTA

    def test_there_are_no_whole_cycles_before_the_third_burst(self) -> None:
        assert trace_of((0, 10), (11, 10), (21, 0)).whole_cycles(QUOTA) is None


def test_new_sensor_accepts_ten_seconds_of_quota_at_once_so_one_second_is_inconclusive() -> None:
    trace = held_client(PRODUCE, 100_000, 2.0).trace
    begin_ms = trace.exchanges[0].answered_ms
    by_second = [trace.byte_rate(begin_ms + s * 1e3, begin_ms + (s + 1) * 1e3) / QUOTA for s in range(11)]
    assert 10.0 <= by_second[0] <= 11.1
    assert max(by_second[2:]) <= 0.2


WHOLE_CYCLES = {"a producer within 5 and 2 %": (PRODUCE, 0.01, 0.01), "a consumer within 5 %": (FETCH, 0.045, 0.06)}


@pytest.mark.parametrize(("kind", "off_quota", "off_replay"), WHOLE_CYCLES.values(), ids=WHOLE_CYCLES)
@settings(max_examples=settings().max_examples // 4)
@given(
    requests_per_s=st.sampled_from([10, 20]),  # a tenth and a twentieth of a second's quota, as the demo's clients
    times_as_fast=st.floats(3, 60),
    late_ms=st.floats(0, 20),
    stops_ms=st.sampled_from([0.0, 2000.0]),
)
def test_over_whole_cycles_a_throttled_client_runs_at_its_quota(
    kind: str,
    off_quota: float,
    off_replay: float,
    requests_per_s: int,
    times_as_fast: float,
    late_ms: float,
    stops_ms: float,
) -> None:
    payload_bytes = int(QUOTA / requests_per_s)
    client = held_client(kind, payload_bytes, 1e3 / requests_per_s / times_as_fast, late_ms=late_ms, stops_ms=stops_ms)
    cycles, virtual = client.trace.whole_cycles(QUOTA), replay(client).whole_cycles(QUOTA)
    assert cycles is not None
    assert virtual is not None
    assert cycles.byte_rate == pytest.approx(QUOTA, rel=off_quota)
    assert cycles.byte_rate == pytest.approx(virtual.byte_rate, rel=off_replay)


class TestReplay:
    @pytest.mark.parametrize("kind", [PRODUCE, FETCH])
    def test_replay_of_a_virtual_run_is_identical(self, kind: str) -> None:
        client = held_client(kind, 100_000, 0.0)
        exchanges = client.trace.exchanges
        # The replay may continue to its last response.
        replayed = [(e.payload_bytes, e.throttle_ms) for e in replay(client).exchanges]
        assert replayed[: len(exchanges)] == [(e.payload_bytes, e.throttle_ms) for e in exchanges]

    @pytest.mark.parametrize("enforced", [0.9, 1.1])
    def test_replay_detects_a_broker_with_another_quota(self, enforced: float) -> None:
        client = held_client(PRODUCE, 100_000, 2.0, enforced=enforced * QUOTA)
        cycles, virtual = client.trace.whole_cycles(QUOTA), replay(client).whole_cycles(QUOTA)
        assert cycles is not None
        assert virtual is not None
        assert cycles.byte_rate == pytest.approx(enforced * QUOTA, rel=0.02)
        assert virtual.byte_rate == pytest.approx(QUOTA, rel=0.02)

    def test_replay_continues_with_the_first_request_when_virtual_time_is_ahead(self) -> None:
        # A pause of the broker, unlike one of the client, is not part of virtual time.
        trace = Trace()
        trace.add(Exchange(0.0, 0.0, 20_000_000, 10_000))
        trace.add(Exchange(0.0, 30_000.0, 1_000_000, 1_000))
        trace.add(Exchange(30_000.0, 31_000.0, 1_000_000, 0))
        assert len(replay(Client("c", "", PRODUCE, QUOTA, trace)).exchanges) > 2

    def test_replay_keeps_the_clients_own_delays(self) -> None:
        trace = Trace()
        for at_s in range(20):
            trace.add(Exchange(at_s * 1e3, at_s * 1e3 + 5, 1000, 0))
        assert [e.answered_ms for e in replay(Client("c", "", PRODUCE, QUOTA, trace)).exchanges] == [
            e.answered_ms for e in trace.exchanges
        ]
