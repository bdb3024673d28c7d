"""Differences between KIP-13 and the Kafka releases, each with a test over all profiles.

| what | KIP-13 | releases |
|---|---|---|
| produce above quota | response is held | held up to 1.1; since 2.0 sent at once, connection muted (KIP-219) |
| request version | (one) | ignored; only `by-version`, our own profile, uses it |
| fetch above quota | waits, then reads | up to 1.1 reads, then waits; since 2.0 returns no records |
| its bytes | are charged | charged up to 1.1; free since 2.0 |
| acks=0 above quota | next request waits | same in all |
| two quotas | (one quota) | up to 1.1 one wait after the other; since 2.0 the longer one |
| longest wait | no limit | no limit for bytes, one second for request time |
| no client id | shares the default quota | shared up to 1.1; no quota since 2.0 |
| last quota of a level deleted | - | up to 4.1 the level still counts; not since 4.2, nor here |
| static properties | defaults and overrides | defaults up to 2.8, no overrides; here in all profiles |
| KIP-13's example | 2 s | 2 s for a cold sensor; 3 s for a warm one |
| ten windows | ten | ten whole ones plus the current one, so a client at exactly its quota is throttled |
| after the wait | the rate is at the quota | the rate may still be above the quota |
| a sample counts | - | up to 3.7 from its start; since 3.8 from its last event |
| fetch size | - | since 2.5 limited to the quota of an idle client |
| bugs, not copied | - | throttle time overflow up to 4.3; negative byte rate |

test_throttler tests every request version, test_request_timer two quotas, and test_sensor the exact arithmetic.
"""

from collections.abc import Mapping
from typing import TypeVar

import pytest

from sluice.broker.throttling.profile import PROFILES
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS
from tests.support.records import batch_of, fetch, fetched_bytes, produce, produce_of
from tests.support.slow_handlers import slow_handlers
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

T = TypeVar("T")

# One profile of each group that behaves alike, and the newest.
KINDS = ("kip-13", "kafka-0.9", "kafka-2.0", "kafka-2.5", "kafka-3.8", "kafka-4.4", "by-version")

PRODUCE = "quota.producer.default=1000"  # 10,000 bytes without a throttle time, then 1 ms per byte
FETCH = "quota.consumer.default=1000"
LONG_MS = 60_000


def by_profile(since: Mapping[str, T]) -> list[object]:
    """Return a case per profile, each with the value of the latest release in `since`."""
    assert {"kip-13", "by-version", "kafka-0.9"} <= since.keys() <= PROFILES.keys()
    cases: list[object] = []
    current = since["kafka-0.9"]
    for profile in PROFILES:
        if profile.startswith("kafka-"):
            current = since.get(profile, current)
        cases.append(pytest.param(profile, since.get(profile, current), id=profile))
    return cases


def broker_of(profile: str, *overrides: str) -> VirtualBroker:
    return broker_with_topic(f"quota.profile={profile}", *overrides)


# -- throttling modes --------------------------------------------------------------------------------------------------

BEFORE_KIP_219, AFTER = 5, 6  # versions of Produce
HELD_UNTIL_MS, AT_ONCE_MS = 2_000, 0


@pytest.mark.parametrize(
    ("profile", "answered_ms"),
    by_profile(
        {
            "kip-13": (HELD_UNTIL_MS, HELD_UNTIL_MS),
            "kafka-0.9": (HELD_UNTIL_MS, HELD_UNTIL_MS),
            "kafka-2.0": (AT_ONCE_MS, AT_ONCE_MS),
            "by-version": (HELD_UNTIL_MS, AT_ONCE_MS),
        }
    ),
)
def test_response_time_of_a_produce_above_the_quota(profile: str, answered_ms: tuple[int, int]) -> None:
    for version, expected_ms in zip((BEFORE_KIP_219, AFTER), answered_ms, strict=True):
        broker = broker_of(profile, PRODUCE)
        client = broker.client()
        client.send(produce_of(12_000, version, "client"), version)
        assert broker.partition().log.log_end_offset == 1, "the batch is appended at once in all profiles"
        client.send(ApiVersionsRequest(), 0)
        broker.advance(LONG_MS)
        produced, following = client.take_responses()
        assert (produced.at_ms, produced.throttle_time_ms) == (expected_ms, 2_000)
        assert following.at_ms == 2_000, "the next request waits as long in all profiles"


@pytest.mark.parametrize("profile", KINDS)
def test_request_after_a_produce_with_acks_0_above_the_quota_waits(profile: str) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client()
    client.send(produce_of(12_000, 3, "client", acks=0), 3)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(LONG_MS)
    assert [(response.api, response.at_ms) for response in client.take_responses()] == [("ApiVersions", 2_000)]


WAITS_THEN_READS, READS_THEN_WAITS, DROPS = "waits, then reads", "reads, then waits", "returns no records"


@pytest.mark.parametrize(
    ("profile", "behaviours"),
    by_profile(
        {
            "kip-13": (WAITS_THEN_READS, WAITS_THEN_READS),
            "kafka-0.9": (READS_THEN_WAITS, READS_THEN_WAITS),
            "kafka-2.0": (DROPS, DROPS),
            "by-version": (WAITS_THEN_READS, DROPS),
        }
    ),
)
def test_read_and_charge_of_a_fetch_above_the_quota(profile: str, behaviours: tuple[str, str]) -> None:
    for version, expected in zip((7, 8), behaviours, strict=True):
        broker = broker_of(profile, FETCH)
        broker.client("producer").call(produce(9, batch_of(12_000)), 9)
        client = broker.client()
        client.send(fetch(0), version)
        read_at_once = broker.partition().traffic.bytes_out > 0
        broker.advance(3_000)
        response = client.response()
        (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
        charged = round(usage.rate * usage.window_size_ms / 1_000)
        if expected == DROPS:
            assert (response.at_ms, response.message.responses, charged) == (0, [], 0), "a dropped fetch is not charged"
            continue
        assert len(fetched_bytes(response.message)) == 12_000
        assert read_at_once == (expected == READS_THEN_WAITS)
        assert response.at_ms == response.throttle_time_ms >= 2_000
        assert charged >= 12_000, "a fetch is charged the bytes that it returns"


@pytest.mark.parametrize(
    ("profile", "throttle_ms"), by_profile({"kip-13": 300, "kafka-0.9": 500, "kafka-2.0": 300, "by-version": 300})
)
def test_throttle_times_of_two_quotas_are_added_or_the_longer_one_counts(
    monkeypatch: pytest.MonkeyPatch, profile: str, throttle_ms: int
) -> None:
    broker = broker_of(profile, PRODUCE)
    broker.broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 10.0})
    slow_handlers(monkeypatch, broker, 1_030)  # 30 ms above the quota: a throttle time of 300 ms
    client = broker.client()
    client.send(produce_of(10_200, 3, "client"), 3)
    broker.advance(LONG_MS)
    assert client.response().throttle_time_ms == throttle_ms


@pytest.mark.parametrize("profile", KINDS)
def test_throttle_time_is_limited_for_request_time_and_unlimited_for_bytes(
    monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client("bytes")
    client.send(produce_of(110_000, 3, "bytes"), 3)
    broker.advance(LONG_MS * 2)
    assert client.response().throttle_time_ms == 100_000
    broker.broker.cluster.client_quotas.alter({"client-id": "time"}, {"request_percentage": 1.0})
    client = broker.client("time")
    slow_handlers(monkeypatch, broker, 10_000)
    client.send(ApiVersionsRequest(), 1)
    broker.advance(LONG_MS)
    assert client.response().throttle_time_ms == 1_000


# -- quota entities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "shared"), by_profile({"kip-13": True, "kafka-0.9": True, "kafka-2.0": False, "by-version": True})
)
def test_clients_without_a_client_id_share_the_default_quota_or_have_no_quota(profile: str, shared: bool) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client(None)
    client.send(produce_of(12_000, 9, None), 9)
    assert (broker.broker.quotas.produce.queue_size == 1) == shared, "the client is throttled"


@pytest.mark.parametrize("profile", KINDS)
def test_static_quotas_apply_until_a_dynamic_quota_is_set(profile: str) -> None:
    broker = broker_of(profile, PRODUCE, "quota.producer.override=gold:2000")
    limits = broker.broker.quotas.produce.rules

    def bound(client_id: str) -> float | None:
        return limits.limit(limits.bucket("ANONYMOUS", client_id))

    assert (bound("gold"), bound("other")) == (2_000, 1_000)
    broker.broker.cluster.client_quotas.alter({"client-id": "gold"}, {"producer_byte_rate": 3_000.0})
    assert (bound("gold"), bound("other")) == (3_000, 1_000)


@pytest.mark.parametrize("profile", KINDS)
def test_level_without_quotas_is_ignored(profile: str) -> None:
    broker = broker_of(profile, PRODUCE).broker
    rules, client_quotas = broker.quotas.produce.rules, broker.cluster.client_quotas
    client_quotas.alter({"user": "alice"}, {"producer_byte_rate": 5_000.0})
    assert rules.bucket("alice", "client") == ("alice", None)
    client_quotas.alter({"user": "alice"}, {"producer_byte_rate": None})
    assert rules.bucket("alice", "client") == (None, "client")


# -- throttle times ----------------------------------------------------------------------------------------------------


SENSORS = {"cold sensor: 2 s, as in the KIP": (9, 2_000), "warm sensor: 3 s": (20, 3_000)}


@pytest.mark.parametrize("profile", KINDS)
@pytest.mark.parametrize(("seconds", "throttle_ms"), SENSORS.values(), ids=SENSORS)
def test_the_example_of_kip_13(profile: str, seconds: int, throttle_ms: int) -> None:
    manager = broker_of(profile, "quota.producer.default=5000000").broker.quotas.produce
    for second in range(seconds):
        manager.record("ANONYMOUS", "client", 5e6, second * 1_000)
    assert manager.record("ANONYMOUS", "client", 15e6, seconds * 1_000) == throttle_ms


@pytest.mark.parametrize("profile", KINDS)
def test_rate_covers_ten_whole_windows_and_the_current_one(profile: str) -> None:
    manager = broker_of(profile, "quota.producer.default=5000000").broker.quotas.produce
    assert (manager.config.num_samples, manager.config.window_ms) == (11, 1_000)
    throttle_times = [manager.record("ANONYMOUS", "client", 5e6, second * 1_000) for second in range(20)]
    assert throttle_times == [0] * 10 + [1_000] * 10, (
        "a client at exactly its quota is throttled from the eleventh second on"
    )


@pytest.mark.parametrize("profile", KINDS)
def test_client_may_be_throttled_again_after_its_throttle_time(profile: str) -> None:
    manager = broker_of(profile, "quota.producer.default=5000000").broker.quotas.produce
    for second in range(9):
        manager.record("ANONYMOUS", "client", 5e6, second * 1_000)
    assert manager.record("ANONYMOUS", "client", 15e6, 9_000) == 2_000
    assert manager.record("ANONYMOUS", "client", 0.0, 11_000) == 1_000


@pytest.mark.parametrize(
    ("profile", "rate"),
    by_profile(
        {"kip-13": 260869.5652173913, "kafka-0.9": 1e5, "kafka-3.8": 260869.5652173913, "by-version": 260869.5652173913}
    ),
)
def test_sample_age_counts_from_its_last_event_or_from_its_start(profile: str, rate: float) -> None:
    manager = broker_of(profile, PRODUCE).broker.quotas.produce
    for at_ms in (0, 900, 11_500):
        manager.record("ANONYMOUS", "client", 1e6, at_ms)
    (usage,) = manager.snapshot(11_500)
    assert usage.rate == rate


@pytest.mark.parametrize(
    ("profile", "is_limited"), by_profile({"kip-13": True, "kafka-0.9": False, "kafka-2.5": True, "by-version": True})
)
def test_fetch_size_is_limited_to_the_quota_of_an_idle_client(profile: str, is_limited: bool) -> None:
    broker = broker_of(profile, FETCH)
    client = broker.client()
    client.call(ApiVersionsRequest(), 0)
    assert (
        broker.broker.throttler.largest_fetch("ANONYMOUS", client.connection.ctx.session.client_id) == 10_000
    ) == is_limited


# -- Kafka's bugs that no profile has ----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", KINDS)
def test_throttle_time_above_int32_does_not_overflow(profile: str) -> None:
    manager = broker_of(profile, "quota.producer.default=1").broker.quotas.produce
    assert manager.record("ANONYMOUS", "client", 2.2e6 * 1_000, 0) == MAX_THROTTLE_TIME_MS


@pytest.mark.parametrize("profile", KINDS)
def test_fetch_throttled_only_by_request_time_leaves_no_negative_byte_rate(
    monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    broker = broker_of(profile)
    broker.broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 10.0})
    slow_handlers(monkeypatch, broker, 1_030)
    client = broker.client()
    client.send(fetch(0), 11)
    broker.advance(LONG_MS)
    assert client.response().throttle_time_ms == 300
    assert all(usage.rate >= 0 for usage in broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms()))
