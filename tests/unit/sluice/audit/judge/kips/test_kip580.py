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


TOO_LONG = {
    "two of eight: caused by the machine": (2, 8, PASS),
    "three of eight, an eighth of all: more runs needed": (3, 8, INCONCLUSIVE),
    "half of them: caused by the client": (3, 6, DEVIATES),
    "three of many": (3, 60, PASS),
}


@pytest.mark.parametrize(("long", "batches", "state"), TOO_LONG.values(), ids=TOO_LONG)
def test_kip_580_1_too_long_waits_after_three_failures(long: int, batches: int, state: State) -> None:
    thirds = [700] * long + [400] * (batches - long)
    runs = [
        observed("produce-timed-out", failed_batch([100, 200, third]).events, repetition=number)
        for number, third in enumerate(thirds)
    ]
    assert judge("KIP-580/1", runs).state is state


MAXIMUM_BELOW_THE_BASE = {
    "the maximum": ([200] * 6, 500, PASS),
    "the base": ([500] * 6, 500, DEVIATES),
    "the maximum with jitter": ([160, 240, 170, 230, 180, 220], 500, DEVIATES),
    "with a base below the maximum": ([200] * 6, 100, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("waits", "base_ms", "state"), MAXIMUM_BELOW_THE_BASE.values(), ids=MAXIMUM_BELOW_THE_BASE)
def test_kip_580_3_waits_with_a_maximum_below_the_base(waits: list[float], base_ms: float, state: State) -> None:
    assert retried("KIP-580/3", waits, "produce-base-above-max", with_retry(base_ms, 200)).state is state


EQUAL_BASE_AND_MAXIMUM = {
    "the same": ([200] * 6, 200, PASS),
    "growing": ([200, 400, 800, 800], 200, DEVIATES),
    "shorter": ([170] * 6, 200, DEVIATES),
    "shorter at first, as in the KIP's formula": ([170, 200, 200, 200, 200], 200, PASS),
    "with a maximum above the base": ([200] * 6, 400, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("waits", "max_ms", "state"), EQUAL_BASE_AND_MAXIMUM.values(), ids=EQUAL_BASE_AND_MAXIMUM)
def test_kip_580_4_waits_with_equal_base_and_maximum(waits: list[float], max_ms: float, state: State) -> None:
    assert retried("KIP-580/4", waits, "produce-constant-backoff", with_retry(200, max_ms)).state is state


BESIDE_ANOTHER = {
    "has its own backoff": (1, RIGHT, PASS),
    "has the other batch's backoff": (1, [1000] * 7, DEVIATES),
    "is of the same partition": (0, RIGHT, INCONCLUSIVE),
}


@pytest.mark.parametrize(("partition", "waits", "state"), BESIDE_ANOTHER.values(), ids=BESIDE_ANOTHER)
def test_kip_580_5_batch_failing_beside_another(partition: int, waits: list[float], state: State) -> None:
    journal = Journal()
    for number, each in ((0, RIGHT), (partition, waits)):
        from_ms = 20_000.0 * (partition == 0 and each is waits) + 2000 * number
        sequence = int(each is waits)
        for at_ms in starts(each, from_ms=from_ms):
            journal.batch(at_ms, at_ms + 1, sequence=sequence, partition=number, errors=[19])
    assert judge("KIP-580/5", [observed("produce-two-partitions", journal.events)]).state is state


FORMER_LEADERS = {
    "is sent at once": ([1, 2, 3], 2, 10, PASS),
    "waits nevertheless": ([100, 95, 110], 2, 10, DEVIATES),
    "waits, in a version that does not name the leader": ([100, 95, 110], 2, 9, NOT_OBSERVABLE),
    "does both": ([1, 100, 1], 2, 10, INCONCLUSIVE),
    "has no new leader": ([1, 2, 3], 1, 10, INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "to", "version", "state"), FORMER_LEADERS.values(), ids=FORMER_LEADERS)
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


LOST_CONNECTIONS = {
    "lengthened by a reconnect": ([100, 210, 380, 1500, 2000], PASS),
    "constant": (CONSTANT, DEVIATES),
    "longer than both together": ([100, 210, 380, 3000, 3000, 3000], DEVIATES),
}


@pytest.mark.parametrize(("waits", "state"), LOST_CONNECTIONS.values(), ids=LOST_CONNECTIONS)
def test_kip_580_9_metadata_after_lost_connections(waits: list[float], state: State) -> None:
    verdict = judged_calls("KIP-580/9", "metadata-disconnect", "Metadata", waits, role=Role.PRODUCER, error=13)
    assert verdict.state is state


LOOKUPS = {
    "lengthened by the metadata backoff": ([100, 200, 1150, 1150, 1150], PASS),
    "constant": ([100] * 6, DEVIATES),
    "longer than both": ([100, 200, 2000, 2000, 2000], DEVIATES),
}


@pytest.mark.parametrize(("waits", "state"), LOOKUPS.values(), ids=LOOKUPS)
def test_kip_580_10_coordinator_lookups(waits: list[float], state: State) -> None:
    verdict = judged_calls("KIP-580/10", "coordinator-lookup-error", "FindCoordinator", waits, error=15)
    assert verdict.state is state


OTHER_THREADS = {
    "before a call that starts after 100 ms": ([[82, 127, 235, 365, 877]], PASS),
    "shortly before a call": ([[15, 102, 190, 365, 877]], PASS),
    "before waits that are too short": ([[82, 127, 235, 235, 365]], DEVIATES),
    "before most calls": ([[82, 127, 235, 365, 877]] * 4, DEVIATES),
}


@pytest.mark.parametrize(("others", "state"), OTHER_THREADS.values(), ids=OTHER_THREADS)
def test_kip_580_10_a_lookup_by_another_thread(others: list[list[float]], state: State) -> None:
    usual: list[list[float]] = [[100, 200, 400, 800, 900]]
    verdict = judged_calls("KIP-580/10", "coordinator-lookup-error", "FindCoordinator", *others, *usual * 3, error=15)
    assert verdict.state is state


def test_kip_580_13_a_consumer_retries_at_its_next_poll() -> None:
    waits = [[184, 128, 103, 102, 102], [185, 112, 195, 101, 102], [217, 120, 110, 112, 109]]
    assert judged_calls("KIP-580/13", "list-offsets-error", "ListOffsets", *waits, error=6).state is PASS


def test_kip_580_1_retries_that_the_broker_read_late_decide_nothing(journal: Journal) -> None:
    """As kafkajs sends them on a connection whose Produce is not answered."""
    for _ in range(5):
        journal.batch(0, 8000, sequence=0, errors=[7])
        journal.batch(7000, 8000, sequence=0, errors=[7])
    run = observed("produce-mute", journal.events, settings=SETTINGS)
    assert judge("KIP-580/1", [run]).state is not DEVIATES


STATIC: list[float] = [100, 101, 105, 99, 100]


JOINS = {
    "constant": (STATIC, 14, PASS),
    "doubling, as in the KIP's text": (RIGHT, 14, PASS),
    "linear": ([100, 200, 300, 400, 500, 600], 14, DEVIATES),
    "none": ([0] * 6, 14, DEVIATES),
    "none, after MEMBER_ID_REQUIRED": ([0] * 6, 79, PASS),
    "none, during a rebalance": ([0] * 6, 27, PASS),
}


@pytest.mark.parametrize(("waits", "error", "state"), JOINS.values(), ids=JOINS)
def test_kip_580_12_waits_before_joins(waits: list[float], error: int, state: State) -> None:
    assert judged_calls("KIP-580/12", "join-error", "JoinGroup", waits, error=error).state is state


STATIC_WAITS = {
    "as in Kafka": (STATIC, PASS),
    "as in the KIP": (RIGHT, PASS),
    "as neither": ([400] * 6, DEVIATES),
    "shorter": ([20] * 6, DEVIATES),
}


STATIC_CALLS = [
    ("KIP-580/13", "list-offsets-error", "ListOffsets", Role.CONSUMER),
    ("KIP-580/14", "init-producer-id-error", "InitProducerId", Role.PRODUCER),
]


@pytest.mark.parametrize(("statement", "probe", "api", "role"), STATIC_CALLS)
@pytest.mark.parametrize(("waits", "state"), STATIC_WAITS.values(), ids=STATIC_WAITS)
def test_waits_that_kafka_left_static(
    statement: str, probe: str, api: str, role: Role, waits: list[float], state: State
) -> None:
    assert judged_calls(statement, probe, api, waits, role=role, error=6).state is state


FIRST_SECOND = {
    "four times, without jitter": ([100, 200, 400, 800], 4, PASS),
    "as often as the shortest waits allow": ([80, 160, 320, 640], 4, PASS),
    "ten times": ([100] * 12, 10, DEVIATES),
    "three times, then never": ([100, 200], 3, INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "sends", "state"), FIRST_SECOND.values(), ids=FIRST_SECOND)
def test_kip_580_17_attempts_in_the_first_second(waits: list[float], sends: int, state: State) -> None:
    verdict = retried("KIP-580/17", waits)
    assert (verdict.state, verdict.measured["sends"]) == (state, sends)


OLDER_CLIENTS = {
    "constant": (CONSTANT, ["KIP-580"], PASS),
    "doubling": (RIGHT, ["KIP-580"], DEVIATES),
    "of a newer client": (CONSTANT, [], NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("waits", "before", "state"), OLDER_CLIENTS.values(), ids=OLDER_CLIENTS)
def test_kip_580_18_waits_of_clients_older_than_the_kip(waits: list[float], before: list[str], state: State) -> None:
    assert retried("KIP-580/18", waits, before=before).state is state


def test_kip_580_11_regular_heartbeats_are_recognized_beside_a_run_with_lag(journal: Journal) -> None:
    """A client that retries twice, and then waits for the next regular heartbeat, each second."""
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
