"""KIP-580 verdicts for failing requests and the waits between them."""

from collections.abc import Mapping, Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, failed_batch, starts

PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE
RIGHT: list[float] = [100, 210, 380, 840, 1000, 930, 1000]
CONSTANT: list[float] = [100] * 9
Settings = Mapping[str, float | str | bool]


def with_retry(base_ms: float, max_ms: float) -> dict[str, float | str | bool]:
    return {**SETTINGS, "retry.backoff.ms": base_ms, "retry.backoff.max.ms": max_ms}


def retried(
    statement: str,
    waits: Sequence[float],
    probe: str = "produce-timed-out",
    settings: Settings = SETTINGS,
    before: Sequence[str] = (),
) -> Verdict:
    return judge(statement, [observed(probe, failed_batch(waits).events, settings=settings, before=before)])


def judged_calls(
    statement: str, probe: str, api: str, *calls: Sequence[float], role: Role = Role.CONSUMER, error: int = 14
) -> Verdict:
    """Judge calls that fail with these waits and then succeed; a single one is made twice."""
    journal, at_ms = Journal(), 0.0
    for call in calls if len(calls) > 1 else calls * 2:
        for wait in call:
            journal.request(api, at_ms, at_ms + 1, group_id="g", errors=[error])
            at_ms += 1 + wait
        journal.request(api, at_ms, at_ms + 1, group_id="g")
        at_ms += 5000
    return judge(statement, [observed(probe, journal.events, role=role, settings=SETTINGS)])


GROWING = [
    pytest.param(RIGHT, PASS, id="double up to the maximum"),
    pytest.param(CONSTANT, DEVIATES, id="stay constant"),
    pytest.param([100, 200, 300, 400, 500, 600, 700], DEVIATES, id="grow linearly"),
    pytest.param([wait / 2 for wait in RIGHT], DEVIATES, id="are half as long"),
    pytest.param([300, 900, 1000, 1000, 1000, 1000], DEVIATES, id="are three times as long"),
    pytest.param([0] * 9, DEVIATES, id="are none"),
]


@pytest.mark.parametrize(("waits", "state"), [*GROWING, pytest.param([100, 200], INCONCLUSIVE, id="are two")])
def test_kip_580_1_waits(waits: list[float], state: State) -> None:
    assert retried("KIP-580/1", waits).state is state


@pytest.mark.parametrize(
    ("long", "batches", "state"),
    [
        pytest.param(2, 8, PASS, id="two of eight: caused by the machine"),
        pytest.param(3, 8, INCONCLUSIVE, id="three of eight, an eighth of all: more runs needed"),
        pytest.param(3, 6, DEVIATES, id="half of them: caused by the client"),
        pytest.param(3, 60, PASS, id="three of many"),
    ],
)
def test_kip_580_1_too_long_waits_after_three_failures(long: int, batches: int, state: State) -> None:
    thirds = [700] * long + [400] * (batches - long)
    runs = [
        observed("produce-timed-out", failed_batch([100, 200, third]).events, repetition=number)
        for number, third in enumerate(thirds)
    ]
    assert judge("KIP-580/1", runs).state is state


@pytest.mark.parametrize(
    ("waits", "base_ms", "state"),
    [
        pytest.param([200] * 6, 500, PASS, id="the maximum"),
        pytest.param([500] * 6, 500, DEVIATES, id="the base"),
        pytest.param([160, 240, 170, 230, 180, 220], 500, DEVIATES, id="the maximum with jitter"),
        pytest.param([200] * 6, 100, NOT_OBSERVABLE, id="with a base below the maximum"),
    ],
)
def test_kip_580_3_waits_with_a_maximum_below_the_base(waits: list[float], base_ms: float, state: State) -> None:
    assert retried("KIP-580/3", waits, "produce-base-above-max", with_retry(base_ms, 200)).state is state


@pytest.mark.parametrize(
    ("waits", "max_ms", "state"),
    [
        pytest.param([200] * 6, 200, PASS, id="the same"),
        pytest.param([200, 400, 800, 800], 200, DEVIATES, id="growing"),
        pytest.param([170] * 6, 200, DEVIATES, id="shorter"),
        pytest.param([170, 200, 200, 200, 200], 200, PASS, id="shorter at first, as in the KIP's formula"),
        pytest.param([200] * 6, 400, NOT_OBSERVABLE, id="with a maximum above the base"),
    ],
)
def test_kip_580_4_waits_with_equal_base_and_maximum(waits: list[float], max_ms: float, state: State) -> None:
    assert retried("KIP-580/4", waits, "produce-constant-backoff", with_retry(200, max_ms)).state is state


@pytest.mark.parametrize(
    ("partition", "waits", "state"),
    [
        pytest.param(1, RIGHT, PASS, id="has its own backoff"),
        pytest.param(1, [1000] * 7, DEVIATES, id="has the other batch's backoff"),
        pytest.param(0, RIGHT, INCONCLUSIVE, id="is of the same partition"),
    ],
)
def test_kip_580_5_batch_failing_beside_another(partition: int, waits: list[float], state: State) -> None:
    journal = Journal()
    for number, each in ((0, RIGHT), (partition, waits)):
        from_ms = 20_000.0 * (partition == 0 and each is waits) + 2000 * number
        sequence = int(each is waits)
        for at_ms in starts(each, from_ms=from_ms):
            journal.batch(at_ms, at_ms + 1, sequence=sequence, partition=number, errors=[19])
    assert judge("KIP-580/5", [observed("produce-two-partitions", journal.events)]).state is state


@pytest.mark.parametrize(
    ("waits", "to", "version", "state"),
    [
        pytest.param([1, 2, 3], 2, 10, PASS, id="is sent at once"),
        pytest.param([100, 95, 110], 2, 10, DEVIATES, id="waits nevertheless"),
        pytest.param([100, 95, 110], 2, 9, NOT_OBSERVABLE, id="waits, in a version that does not name the leader"),
        pytest.param([1, 100, 1], 2, 10, INCONCLUSIVE, id="does both"),
        pytest.param([1, 2, 3], 1, 10, INCONCLUSIVE, id="has no new leader"),
    ],
)
def test_kip_580_7_batch_sent_to_a_former_leader(waits: list[float], to: int, version: int, state: State) -> None:
    journal = Journal()
    for sequence, wait in enumerate(waits):
        at_ms = 3000.0 * sequence
        journal.batch(at_ms, at_ms + 1, sequence=sequence, errors=[6], broker=1, version=version)
        journal.batch(at_ms + 1 + wait, at_ms + 2 + wait, sequence=sequence, broker=to, connection=to, version=version)
    assert judge("KIP-580/7", [observed("produce-new-leader", journal.events)]).state is state


# Each call with its expected waits, as far as they double.
CALLS = {
    "KIP-580/8": ("metadata-unknown-topic", "Metadata", Role.PRODUCER, 3),
    "KIP-580/10": ("commit-error", "OffsetCommit", Role.CONSUMER, 14),
    "KIP-580/11": ("heartbeat-error", "Heartbeat", Role.CONSUMER, 14),
    "KIP-580/15": ("admin-error", "DescribeGroups", Role.ADMIN, 14),
}


@pytest.mark.parametrize("statement", CALLS)
@pytest.mark.parametrize(("waits", "state"), GROWING)
def test_waits_of_calls(statement: str, waits: list[float], state: State) -> None:
    probe, api, role, error = CALLS[statement]
    assert judged_calls(statement, probe, api, waits, role=role, error=error).state is state


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([100, 210, 380, 1500, 2000], PASS, id="lengthened by a reconnect"),
        pytest.param(CONSTANT, DEVIATES, id="constant"),
        pytest.param([100, 210, 380, 3000, 3000, 3000], DEVIATES, id="longer than both together"),
    ],
)
def test_kip_580_9_metadata_after_lost_connections(waits: list[float], state: State) -> None:
    verdict = judged_calls("KIP-580/9", "metadata-disconnect", "Metadata", waits, role=Role.PRODUCER, error=13)
    assert verdict.state is state


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([100, 200, 1150, 1150, 1150], PASS, id="lengthened by the metadata backoff"),
        pytest.param([100] * 6, DEVIATES, id="constant"),
        pytest.param([100, 200, 2000, 2000, 2000], DEVIATES, id="longer than both"),
    ],
)
def test_kip_580_10_coordinator_lookups(waits: list[float], state: State) -> None:
    verdict = judged_calls("KIP-580/10", "coordinator-lookup-error", "FindCoordinator", waits, error=15)
    assert verdict.state is state


@pytest.mark.parametrize(
    ("others", "state"),
    [
        pytest.param([[82, 127, 235, 365, 877]], PASS, id="before a call that starts after 100 ms"),
        pytest.param([[15, 102, 190, 365, 877]], PASS, id="shortly before a call"),
        pytest.param([[82, 127, 235, 235, 365]], DEVIATES, id="before waits that are too short"),
        pytest.param([[82, 127, 235, 365, 877]] * 4, DEVIATES, id="before most calls"),
    ],
)
def test_kip_580_10_a_lookup_by_another_thread(others: list[list[float]], state: State) -> None:
    usual: list[list[float]] = [[100, 200, 400, 800, 900]]
    verdict = judged_calls("KIP-580/10", "coordinator-lookup-error", "FindCoordinator", *others, *usual * 3, error=15)
    assert verdict.state is state


def test_kip_580_13_a_consumer_retries_at_its_next_poll() -> None:
    waits = [[184, 128, 103, 102, 102], [185, 112, 195, 101, 102], [217, 120, 110, 112, 109]]
    assert judged_calls("KIP-580/13", "list-offsets-error", "ListOffsets", *waits, error=6).state is PASS


def test_kip_580_1_retries_that_the_broker_read_late_decide_nothing() -> None:
    """As kafkajs sends them on a connection whose Produce is not answered."""
    journal = Journal()
    for _ in range(5):
        journal.batch(0, 8000, sequence=0, errors=[7])
        journal.batch(7000, 8000, sequence=0, errors=[7])
    run = observed("produce-mute", journal.events, settings=SETTINGS)
    assert judge("KIP-580/1", [run]).state is not DEVIATES


STATIC: list[float] = [100, 101, 105, 99, 100]


@pytest.mark.parametrize(
    ("waits", "error", "state"),
    [
        pytest.param(STATIC, 14, PASS, id="constant"),
        pytest.param(RIGHT, 14, PASS, id="doubling, as in the KIP's text"),
        pytest.param([100, 200, 300, 400, 500, 600], 14, DEVIATES, id="linear"),
        pytest.param([0] * 6, 14, DEVIATES, id="none"),
        pytest.param([0] * 6, 79, PASS, id="none, after MEMBER_ID_REQUIRED"),
        pytest.param([0] * 6, 27, PASS, id="none, during a rebalance"),
    ],
)
def test_kip_580_12_waits_before_joins(waits: list[float], error: int, state: State) -> None:
    assert judged_calls("KIP-580/12", "join-error", "JoinGroup", waits, error=error).state is state


@pytest.mark.parametrize(
    ("statement", "probe", "api", "role"),
    [
        ("KIP-580/13", "list-offsets-error", "ListOffsets", Role.CONSUMER),
        ("KIP-580/14", "init-producer-id-error", "InitProducerId", Role.PRODUCER),
    ],
)
@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param(STATIC, PASS, id="as in Kafka"),
        pytest.param(RIGHT, PASS, id="as in the KIP"),
        pytest.param([400] * 6, DEVIATES, id="as neither"),
        pytest.param([20] * 6, DEVIATES, id="shorter"),
    ],
)
def test_waits_that_kafka_left_static(
    statement: str, probe: str, api: str, role: Role, waits: list[float], state: State
) -> None:
    assert judged_calls(statement, probe, api, waits, role=role, error=6).state is state


@pytest.mark.parametrize(
    ("waits", "sends", "state"),
    [
        pytest.param([100, 200, 400, 800], 4, PASS, id="four times, without jitter"),
        pytest.param([80, 160, 320, 640], 4, PASS, id="as often as the shortest waits allow"),
        pytest.param([100] * 12, 10, DEVIATES, id="ten times"),
        pytest.param([100, 200], 3, INCONCLUSIVE, id="three times, then never"),
    ],
)
def test_kip_580_17_attempts_in_the_first_second(waits: list[float], sends: int, state: State) -> None:
    verdict = retried("KIP-580/17", waits)
    assert (verdict.state, verdict.measured["sends"]) == (state, sends)


@pytest.mark.parametrize(
    ("waits", "before", "state"),
    [
        pytest.param(CONSTANT, ["KIP-580"], PASS, id="constant"),
        pytest.param(RIGHT, ["KIP-580"], DEVIATES, id="doubling"),
        pytest.param(CONSTANT, [], NOT_OBSERVABLE, id="of a newer client"),
    ],
)
def test_kip_580_18_waits_of_clients_older_than_the_kip(waits: list[float], before: list[str], state: State) -> None:
    assert retried("KIP-580/18", waits, before=before).state is state


def test_kip_580_11_regular_heartbeats_are_recognized_beside_a_run_with_lag() -> None:
    """A client that retries twice, and then waits for the next regular heartbeat, each second."""
    journal = Journal()
    for begin_ms in range(0, 12_000, 2000):
        for at_ms, errors in ((0, [14]), (105, [14]), (344, [14]), (1000, [14]), (1111, [14]), (1318, [])):
            journal.request("Heartbeat", begin_ms + at_ms, begin_ms + at_ms + 0.2, group_id="g", errors=errors)
    settings = {**SETTINGS, "heartbeat.interval.ms": 1000}
    runs = [
        observed("heartbeat-error", journal.events, role=Role.CONSUMER, settings=settings, virtual=False, lag_ms=lag_ms)
        for lag_ms in (10, 150)
    ]
    verdict = judge("KIP-580/11", runs)
    assert verdict.state is not DEVIATES, verdict.why


def test_kip_580_14_is_not_observable_of_a_producer_that_is_not_idempotent() -> None:
    verdict = judge("KIP-580/14", [observed("init-producer-id-error", failed_batch([100]).events)])
    assert (verdict.state, verdict.why) == (
        NOT_OBSERVABLE,
        "it sends no InitProducerId: its producer is not idempotent",
    )
