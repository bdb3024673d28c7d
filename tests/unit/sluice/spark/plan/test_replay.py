"""Replays compared with known figures, and with a naive replay that searches all requests for the next one."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.throttling.profile import MUTE, PROFILES
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.spark.charges.charges import Client, Requests
from sluice.spark.plan.replay import API_KEYS, LOOPS, Candidate, Loop, Outcome, replay

MS = 1_000_000
BEGIN_MS = 1_700_000_000_000
MUTES, HOLDS, WITHHOLDS = "kafka-4.4", "kip-13", "kafka-1.1"
PRODUCER = Client("Produce", "1", "", "shop")
CONSUMER = Client("Fetch", "1", "", "shop")

Row = tuple[int, int, int]  # ms since the start, bytes, lane


def requests_of(rows: list[Row], versions: list[int] | None = None) -> Requests:
    at_ms, values, lanes = ([row[column] for row in rows] for column in range(3))
    at_ns = [(BEGIN_MS + each) * MS for each in at_ms]
    return Requests(at_ns, values, lanes, versions or [9] * (max(lanes) + 1))


def every(step_ms: int, value: int, count: int) -> list[Row]:
    return [(step_ms * number, value, 0) for number in range(count)]


def plainly(client: Client, requests: Requests, candidate: Candidate) -> tuple[list[int], list[int], int, int]:
    """Return the throttle times of all responses, the added latencies, and the time of the last charge, in ms.

    No runs, no heap, no shift: of each lane the next request, of those the one that is due first.
    """
    profile = PROFILES[candidate.profile]
    manager = ClientQuotaManager(client.kind, QuotaConfig(rate=profile.rate), QuotaTable(profile.empty_client_id))
    manager.set_quota(QuotaEntity(client_id=DEFAULT), candidate.quota)
    at_ms = [at_ns // MS for at_ns in requests.at_ns]
    left = {lane: [row for row in range(len(requests)) if requests.lane[row] == lane] for lane in set(requests.lane)}
    due = {lane: at_ms[rows[0]] for lane, rows in left.items()}
    waited = dict.fromkeys(left, 0)
    told, added, last = [], [0] * len(requests), 0
    while left:
        lane = min(left, key=lambda each: (due[each], left[each][0]))
        row, last = left[lane][0], due[lane]
        throttling = profile.throttling_of(API_KEYS[client.kind], requests.versions[lane])
        throttle_ms = manager.record("", client.client_id, float(requests.value[row]), last)
        told.append(throttle_ms)
        if throttle_ms and throttling is MUTE and client.kind == "Fetch":
            manager.unrecord("", client.client_id, float(requests.value[row]), last)
            due[lane] += throttle_ms
            waited[lane] += throttle_ms
            continue
        added[row] = waited[lane] + (0 if throttling is MUTE else throttle_ms)
        left[lane].pop(0)
        if not left[lane]:
            del left[lane]
            continue
        after = left[lane][0]
        free = last + throttle_ms
        if candidate.loop == "open":
            due[lane] = max(at_ms[after], free)
            waited[lane] = due[lane] - at_ms[after]
        else:
            own_ms = at_ms[after] - at_ms[row]
            due[lane] = max(last + own_ms, free) if throttling is MUTE else free + own_ms
            waited[lane] = max(0, throttle_ms - own_ms) if throttling is MUTE else 0
    return told, added, sum(requests.value), last


@st.composite
def traces(draw: st.DrawFn) -> Requests:
    """A few seconds of one to three connections, with equal times, bursts, and pauses longer than all windows."""
    gaps = draw(
        st.lists(st.sampled_from([0, 0, 1, 7, 90, 400, 999, 1000, 1001, 2500, 12_000]), min_size=1, max_size=80)
    )
    lanes = draw(st.integers(1, 3))
    rows = [
        (at_ms, draw(st.sampled_from([1, 40, 700, 1000, 4000])), draw(st.integers(0, lanes - 1)))
        for at_ms in accumulate(gaps)
    ]
    return requests_of(rows, [draw(st.sampled_from([1, 9])) for _ in range(lanes)])


@given(
    traces(),
    st.sampled_from([PRODUCER, CONSUMER]),
    st.sampled_from([MUTES, HOLDS, WITHHOLDS, "kafka-3.7", "by-version"]),
    st.sampled_from(LOOPS),
    st.sampled_from([400.0, 450.0, 1000.0, 4000.0]),
)
def test_a_replay_equals_the_naive_replay(
    requests: Requests, client: Client, profile: str, loop: Loop, quota: float
) -> None:
    candidate = Candidate(quota, profile, loop)
    told, added, nbytes, last_ms = plainly(client, requests, candidate)
    outcome = replay(client, requests, candidate)
    assert (outcome.answers, outcome.bytes) == (len(told), nbytes)
    assert (outcome.delay_total_ms, outcome.delay_max_ms) == (sum(told), max(told))
    assert outcome.throttled == sum(each > 0 for each in told)
    assert outcome.delay_p99_ms == sorted(told)[-(-len(told) * 99 // 100) - 1]
    assert outcome.span_ms == last_ms - requests.at_ns[0] // MS
    assert (outcome.added_total_ms, outcome.added_max_ms) == (sum(added), max(added))
    exact_ms = sorted(added)[-(-len(added) * 99 // 100) - 1]
    assert outcome.added_p99_ms <= exact_ms <= outcome.added_p99_ms * 129 / 128


def figures(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.answers, outcome.throttled, outcome.delay_total_ms, outcome.added_total_ms


# KIP-13's example: 5 MB per second with a quota of 5 MB/s, then 15 MB at once, throttled for 2 s; 5 MB after 1 s.
KIP_13 = [*every(1000, 5_000_000, 9), (9000, 15_000_000, 0), (10_000, 5_000_000, 0)]


FIGURES = {
    # The mute ends at 11000. The 5 MB of 0 have left the window; 60 MB in 10.000 s are throttled for 2 s again.
    "think time passes during a mute": (PRODUCER, MUTES, "closed", (11, 2, 4000, 1000), 11_000),
    "requests queue during a mute": (PRODUCER, MUTES, "open", (11, 2, 4000, 1000), 11_000),
    # The response is sent at 11000, then 1 s of think time: at 12000 another 5 MB have left the window.
    "think time starts after a delayed response": (PRODUCER, HOLDS, "closed", (11, 2, 3000, 3000), 12_000),
    "a delayed response adds its delay": (PRODUCER, HOLDS, "open", (11, 2, 4000, 5000), 11_000),
    # The muted fetch of 15 MB is repeated: 55 MB at 11000, 50 MB at 12000, which is within the quota.
    "a muted fetch is repeated until it is served": (CONSUMER, MUTES, "closed", (13, 2, 3000, 3000), 13_000),
    "a delayed fetch is charged once": (CONSUMER, HOLDS, "closed", (11, 2, 3000, 3000), 12_000),
}


@pytest.mark.parametrize(("client", "profile", "loop", "expected", "span_ms"), FIGURES.values(), ids=FIGURES)
def test_figures_of_kip_13(
    client: Client, profile: str, loop: Loop, expected: tuple[int, int, int, int], span_ms: float
) -> None:
    outcome = replay(client, requests_of(KIP_13), Candidate(5e6, profile, loop))
    assert (figures(outcome), outcome.span_ms) == (expected, span_ms)


def test_the_offered_rate_is_over_the_trace_and_the_achieved_rate_over_the_replay() -> None:
    outcome = replay(PRODUCER, requests_of(KIP_13), Candidate(5e6, MUTES, "closed"))
    assert (outcome.offered_rate, outcome.achieved_rate) == (65e6 / 10, 65e6 / 11)


def test_a_single_request_has_a_rate_over_a_second() -> None:
    outcome = replay(PRODUCER, requests_of([(0, 500, 0)]), Candidate(1000.0, MUTES, "closed"))
    assert (outcome.offered_rate, outcome.achieved_rate, outcome.span_ms) == (500.0, 500.0, 0.0)


def test_a_mute_shorter_than_the_think_time_adds_no_latency() -> None:
    rows = [(0, 11_000, 0), (5000, 0, 0)]  # 1 kB/s: 11 kB throttle for 1 s, and so does the next request, of 0 bytes
    for profile, added_ms, span_ms in [(MUTES, 0, 5000.0), (HOLDS, 2000, 6000.0)]:
        outcome = replay(PRODUCER, requests_of(rows), Candidate(1000.0, profile, "closed"))
        assert (outcome.delay_total_ms, outcome.added_total_ms, outcome.span_ms) == (2000, added_ms, span_ms)


def test_connections_of_one_client_share_its_quota_but_not_its_throttle_time() -> None:
    rows = [(0, 11_000, 0), (100, 10, 1), (200, 10, 0)]
    outcome = replay(PRODUCER, requests_of(rows), Candidate(1000.0, MUTES, "open"))
    # Both connections exceed the quota; the next request of the first one waits until 1000.
    assert (outcome.throttled, outcome.added_total_ms) == (3, 800)


LARGE_FETCHES = {
    "is split by the quota of a window since 2.5": ("kafka-4.4", 3, 0),
    "is never served by 2.0 to 2.4": ("kafka-2.4", 1, 1),
    "is delayed up to 1.1": ("kafka-1.1", 2, 0),
}


@pytest.mark.parametrize(("profile", "requests", "starved"), LARGE_FETCHES.values(), ids=LARGE_FETCHES)
def test_a_fetch_larger_than_the_whole_window(profile: str, requests: int, starved: int) -> None:
    outcome = replay(CONSUMER, requests_of([(0, 15_000, 0), (60_000, 1, 0)]), Candidate(1000.0, profile, "closed"))
    assert (outcome.requests, outcome.starved) == (requests, starved)


def test_a_client_with_only_too_large_fetches_is_never_served() -> None:
    outcome = replay(CONSUMER, requests_of([(0, 15_000, 0)] * 3), Candidate(1000.0, "kafka-2.4", "closed"))
    assert (outcome.requests, outcome.starved, outcome.achieved_rate) == (0, 3, 0)


def test_a_client_without_an_id_has_no_limit_since_kafka_2_0() -> None:
    rows = every(100, 5000, 100)
    nobody = Client("Produce", "1", "", "")
    throttled = {
        profile: replay(nobody, requests_of(rows), Candidate(1000.0, profile, "closed")).throttled
        for profile in ("kafka-1.1", "kafka-2.0", "kip-13")
    }
    assert throttled["kafka-2.0"] == 0
    assert throttled["kafka-1.1"] > 0
    assert throttled["kip-13"] > 0


PER_USER = {
    "per user": (Client("Produce", "1", "alice", ""), True),
    "per user and client id": (Client("Produce", "1", "alice", "shop"), True),
}


@pytest.mark.parametrize(("client", "throttled"), PER_USER.values(), ids=PER_USER)
def test_a_quota_per_user_throttles(client: Client, throttled: bool) -> None:
    outcome = replay(client, requests_of(every(100, 5000, 100)), Candidate(1000.0, MUTES, "closed"))
    assert (outcome.throttled > 0) is throttled


def test_a_sensor_expires_after_an_hour() -> None:
    hour_ms = 3_600_000
    rows = [(0, 20_000, 0), (hour_ms + 1, 20_000, 0)]
    outcome = replay(PRODUCER, requests_of(rows), Candidate(1000.0, MUTES, "closed"))
    assert outcome.delay_total_ms == 20_000
