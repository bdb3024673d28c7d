"""KIP-13's text, and each release of Kafka: every difference between them has its test here, over all profiles.

| what | KIP-13 | releases |
|---|---|---|
| produce over quota | the answer waits | so up to 1.1; since 2.0 it goes out, and nothing is read (KIP-219) |
| the request's version | (one) | never decides; `by-version` is our own |
| fetch over quota | waits, then reads | up to 1.1 reads, then waits; since 2.0 is answered without records |
| its bytes | are charged | so up to 1.1; since 2.0 they cost nothing |
| acks=0 over quota | what follows waits | so in all |
| two quotas | (there is one) | one wait after the other up to 1.1, the longer one since |
| longest wait | none | none for bytes, a second for request time |
| no client id | shares the default quota | so up to 1.1; since 2.0 has none |
| the last quota of a level is deleted | - | the level counts on up to 4.1, not since 4.2; here not |
| static properties | defaults and overrides | defaults up to 2.8, overrides never; here in all profiles |
| its example | 2 s | so for a cold sensor; 3 s for a warm one |
| ten windows | ten | ten whole ones and the begun one, so that who sends exactly the quota waits |
| after the wait | the rate is at the quota | it may be over it still |
| a sample counts | - | from when it opened up to 3.7, from its last event since |
| size of a fetch | - | since 2.5 cut to what an idle client may have |
| oddities, not copied | - | a time that wraps around up to 4.3; a negative byte rate |

What each looks like for every version of a request is in test_throttler, more of two quotas in test_request_timer, and
the arithmetic to the last bit in test_sensor.
"""

from collections.abc import Mapping
from typing import TypeVar

import pytest

from sluice.broker.throttling.profile import PROFILES
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS
from tests.support.records import batch_of, fetch, fetched_bytes, produce, produce_of
from tests.support.slow_handlers import slow_handlers
from tests.support.virtual_broker import VirtualBroker

T = TypeVar("T")

# Of those that are alike in everything one each, and the newest.
KINDS = ("kip-13", "kafka-0.9", "kafka-2.0", "kafka-2.5", "kafka-3.8", "kafka-4.4", "by-version")

PRODUCE = "quota.producer.default=1000"  # 10,000 bytes at once, and 1 ms for each more
FETCH = "quota.consumer.default=1000"
LONG_MS = 60_000


def by_profile(since: Mapping[str, T]) -> list[object]:
    """All profiles, each with what holds since the last of these; `kip-13` and `by-version` are named."""
    assert {"kip-13", "by-version", "kafka-0.9"} <= since.keys() <= PROFILES.keys()
    cases: list[object] = []
    current = since["kafka-0.9"]
    for profile in PROFILES:
        if profile.startswith("kafka-"):
            current = since.get(profile, current)
        cases.append(pytest.param(profile, since.get(profile, current), id=profile))
    return cases


def broker_of(profile: str, *overrides: str) -> VirtualBroker:
    broker = VirtualBroker(f"quota.profile={profile}", *overrides)
    broker.topic()
    return broker


# -- how a client is made to wait --------------------------------------------------------------------------------------

BEFORE_KIP_219, AFTER = 5, 6  # versions of Produce
HELD_MS, AT_ONCE_MS = 2_000, 0


@pytest.mark.parametrize(
    ("profile", "answered_ms"),
    by_profile(
        {
            "kip-13": (HELD_MS, HELD_MS),
            "kafka-0.9": (HELD_MS, HELD_MS),
            "kafka-2.0": (AT_ONCE_MS, AT_ONCE_MS),
            "by-version": (HELD_MS, AT_ONCE_MS),
        }
    ),
)
def test_when_a_produce_over_quota_is_answered_and_whether_that_depends_on_its_version(
    profile: str, answered_ms: tuple[int, int]
) -> None:
    for version, expected_ms in zip((BEFORE_KIP_219, AFTER), answered_ms, strict=True):
        broker = broker_of(profile, PRODUCE)
        client = broker.client()
        client.send(produce_of(12_000, version, "client"), version)
        assert broker.partition().log.log_end_offset == 1, "it is appended at once in all of them"
        client.send(ApiVersionsRequest(), 0)
        broker.advance(LONG_MS)
        produced, following = client.take_answers()
        assert (produced.at_ms, produced.throttle_time_ms) == (expected_ms, 2_000)
        assert following.at_ms == 2_000, "what follows waits as long in all of them"


@pytest.mark.parametrize("profile", KINDS)
def test_after_a_produce_over_quota_without_acks_what_follows_waits(profile: str) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client()
    client.send(produce_of(12_000, 3, "client", acks=0), 3)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(LONG_MS)
    assert [(answer.api, answer.at_ms) for answer in client.take_answers()] == [("ApiVersions", 2_000)]


WAITS_THEN_READS, READS_THEN_WAITS, DROPS = "waits, then reads", "reads, then waits", "is answered without records"


@pytest.mark.parametrize(
    ("profile", "what_it_does"),
    by_profile(
        {
            "kip-13": (WAITS_THEN_READS, WAITS_THEN_READS),
            "kafka-0.9": (READS_THEN_WAITS, READS_THEN_WAITS),
            "kafka-2.0": (DROPS, DROPS),
            "by-version": (WAITS_THEN_READS, DROPS),
        }
    ),
)
def test_when_a_fetch_over_quota_reads_and_what_it_costs(profile: str, what_it_does: tuple[str, str]) -> None:
    for version, expected in zip((7, 8), what_it_does, strict=True):
        broker = broker_of(profile, FETCH)
        broker.client("producer").ask(produce(9, batch_of(12_000)), 9)
        client = broker.client()
        client.send(fetch(0), version)
        read_at_once = broker.partition().traffic.bytes_out > 0
        broker.advance(3_000)
        answer = client.answer()
        (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
        charged = round(usage.rate * usage.window_size_ms / 1_000)
        if expected == DROPS:
            assert (answer.at_ms, answer.message.responses, charged) == (0, [], 0), "it costs nothing"
            continue
        assert len(fetched_bytes(answer.message)) == 12_000
        assert read_at_once == (expected == READS_THEN_WAITS)
        assert answer.at_ms == answer.throttle_time_ms >= 2_000
        assert charged >= 12_000, "it costs what it brought"


@pytest.mark.parametrize(
    ("profile", "throttle_ms"), by_profile({"kip-13": 300, "kafka-0.9": 500, "kafka-2.0": 300, "by-version": 300})
)
def test_two_quotas_make_wait_one_after_the_other_or_for_the_longer_one(
    monkeypatch: pytest.MonkeyPatch, profile: str, throttle_ms: int
) -> None:
    broker = broker_of(profile, PRODUCE)
    broker.broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 10.0})
    slow_handlers(monkeypatch, broker, 1_030)  # of which 300 ms are to be waited for
    client = broker.client()
    client.send(produce_of(10_200, 3, "client"), 3)
    broker.advance(LONG_MS)
    assert client.answer().throttle_time_ms == throttle_ms


@pytest.mark.parametrize("profile", KINDS)
def test_the_longest_wait_is_a_second_for_request_time_and_without_a_limit_for_bytes(
    monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client("bytes")
    client.send(produce_of(110_000, 3, "bytes"), 3)
    broker.advance(LONG_MS * 2)
    assert client.answer().throttle_time_ms == 100_000
    broker.broker.cluster.client_quotas.alter({"client-id": "time"}, {"request_percentage": 1.0})
    client = broker.client("time")
    slow_handlers(monkeypatch, broker, 10_000)
    client.send(ApiVersionsRequest(), 1)
    broker.advance(LONG_MS)
    assert client.answer().throttle_time_ms == 1_000


# -- whom --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "shared"), by_profile({"kip-13": True, "kafka-0.9": True, "kafka-2.0": False, "by-version": True})
)
def test_clients_without_an_id_share_the_default_quota_or_have_none(profile: str, shared: bool) -> None:
    broker = broker_of(profile, PRODUCE)
    client = broker.client(None)
    client.send(produce_of(12_000, 9, None), 9)
    assert (broker.broker.quotas.produce.queue_size == 1) == shared, "whether it waits"


@pytest.mark.parametrize("profile", KINDS)
def test_static_quotas_hold_until_a_dynamic_one_is_set(profile: str) -> None:
    broker = broker_of(profile, PRODUCE, "quota.producer.override=gold:2000")
    limits = broker.broker.quotas.produce.rules

    def bound(client_id: str) -> float | None:
        return limits.limit(limits.bucket("ANONYMOUS", client_id))

    assert (bound("gold"), bound("other")) == (2_000, 1_000)
    broker.broker.cluster.client_quotas.alter({"client-id": "gold"}, {"producer_byte_rate": 3_000.0})
    assert (bound("gold"), bound("other")) == (3_000, 1_000)


@pytest.mark.parametrize("profile", KINDS)
def test_a_level_whose_last_quota_is_gone_does_not_count(profile: str) -> None:
    broker = broker_of(profile, PRODUCE).broker
    rules, client_quotas = broker.quotas.produce.rules, broker.cluster.client_quotas
    client_quotas.alter({"user": "alice"}, {"producer_byte_rate": 5_000.0})
    assert rules.bucket("alice", "client") == ("alice", None)
    client_quotas.alter({"user": "alice"}, {"producer_byte_rate": None})
    assert rules.bucket("alice", "client") == (None, "client")


# -- how long ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", KINDS)
@pytest.mark.parametrize(
    ("seconds", "throttle_ms"),
    [pytest.param(9, 2_000, id="a cold sensor: 2 s, as the KIP says"), pytest.param(20, 3_000, id="a warm one: 3 s")],
)
def test_the_example_of_kip_13(profile: str, seconds: int, throttle_ms: int) -> None:
    manager = broker_of(profile, "quota.producer.default=5000000").broker.quotas.produce
    for second in range(seconds):
        manager.record("ANONYMOUS", "client", 5e6, second * 1_000)
    assert manager.record("ANONYMOUS", "client", 15e6, seconds * 1_000) == throttle_ms


@pytest.mark.parametrize("profile", KINDS)
def test_ten_windows_are_ten_whole_ones_and_the_begun_one(profile: str) -> None:
    manager = broker_of(profile, "quota.producer.default=5000000").broker.quotas.produce
    assert (manager.config.num_samples, manager.config.window_ms) == (11, 1_000)
    told = [manager.record("ANONYMOUS", "client", 5e6, second * 1_000) for second in range(20)]
    assert told == [0] * 10 + [1_000] * 10, "who sends exactly the quota waits from the eleventh second on"


@pytest.mark.parametrize("profile", KINDS)
def test_who_served_the_delay_may_have_to_wait_again(profile: str) -> None:
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
def test_a_sample_counts_from_its_last_event_or_from_when_it_opened(profile: str, rate: float) -> None:
    manager = broker_of(profile, PRODUCE).broker.quotas.produce
    for at_ms in (0, 900, 11_500):
        manager.record("ANONYMOUS", "client", 1e6, at_ms)
    (usage,) = manager.snapshot(11_500)
    assert usage.rate == rate


@pytest.mark.parametrize(
    ("profile", "is_cut"), by_profile({"kip-13": True, "kafka-0.9": False, "kafka-2.5": True, "by-version": True})
)
def test_a_fetch_is_cut_to_what_an_idle_client_may_have_or_not(profile: str, is_cut: bool) -> None:
    broker = broker_of(profile, FETCH)
    client = broker.client()
    client.ask(ApiVersionsRequest(), 0)
    assert (broker.broker.throttler.largest_fetch(client.connection.ctx) == 10_000) == is_cut


# -- oddities that no profile has --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", KINDS)
def test_a_throttle_time_past_an_int32_does_not_wrap_around(profile: str) -> None:
    manager = broker_of(profile, "quota.producer.default=1").broker.quotas.produce
    assert manager.record("ANONYMOUS", "client", 2.2e6 * 1_000, 0) == MAX_THROTTLE_TIME_MS


@pytest.mark.parametrize("profile", KINDS)
def test_a_fetch_throttled_by_request_time_alone_leaves_no_negative_byte_rate(
    monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    broker = broker_of(profile)
    broker.broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 10.0})
    slow_handlers(monkeypatch, broker, 1_030)
    client = broker.client()
    client.send(fetch(0), 11)
    broker.advance(LONG_MS)
    assert client.answer().throttle_time_ms == 300
    assert all(usage.rate >= 0 for usage in broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms()))
