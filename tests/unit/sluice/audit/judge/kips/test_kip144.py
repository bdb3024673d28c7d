"""KIP-144 verdicts for failing connections and the waits between them."""

from collections.abc import Mapping, Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, closed_connections, starts

PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE
# Retries do not delay connections, and no client rebootstraps.
CONNECTING: Mapping[str, float | str | bool] = {
    **SETTINGS,
    "retry.backoff.max.ms": 10,
    "metadata.recovery.strategy": "none",
}
RIGHT: list[float] = [50, 105, 190, 420, 790, 1000, 930, 1000]


def without(name: str, **given: float) -> dict[str, float | str | bool]:
    """Return the settings without one, and with others (_ in place of dots)."""
    kept = {key: value for key, value in CONNECTING.items() if key != name}
    return kept | {key.replace("_", "."): value for key, value in given.items()}


def closed(
    statement: str,
    waits: Sequence[float],
    probe: str = "reconnect-closed",
    settings: Mapping[str, float | str | bool] = CONNECTING,
) -> Verdict:
    return judge(statement, [observed(probe, closed_connections(waits).events, settings=settings)])


def worked(waits: Sequence[float]) -> Journal:
    """Return connections that answered ApiVersions and were then closed by the broker."""
    journal = Journal()
    for at_ms in starts(waits, 10):
        journal.connection(at_ms, at_ms + 10, answers=True)
    return journal


WAITS = {
    "double up to the maximum": (RIGHT, PASS),
    "are twice as long": ([wait * 2 for wait in RIGHT], DEVIATES),
    "are half as long": ([wait / 2 for wait in RIGHT], DEVIATES),
    "stay constant": ([50] * 12, DEVIATES),
    "grow linearly": ([50, 100, 150, 200, 250, 300, 350], DEVIATES),
    "have jitter after the cap": ([50, 100, 200, 400, 800, 1150, 1190, 1100], PASS),
    "are two": ([50, 100], INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "state"), WAITS.values(), ids=WAITS)
def test_kip_144_1_waits(waits: list[float], state: State) -> None:
    assert closed("KIP-144/1", waits).state is state


def test_kip_144_1_refused_connections_are_unobservable() -> None:
    assert closed("KIP-144/1", RIGHT, "reconnect-refused").state is NOT_OBSERVABLE


AFTER_SUCCESS = {
    "waits the base again": ([50, 42, 58], PASS),
    "continues to double": ([50, 100, 200, 400, 800], DEVIATES),
    "does not wait": ([0, 0, 0], DEVIATES),
    "was observed twice": ([50, 50], INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "state"), AFTER_SUCCESS.values(), ids=AFTER_SUCCESS)
def test_kip_144_3_after_a_successful_connection_a_client(waits: list[float], state: State) -> None:
    run = observed("reconnect-after-versions", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/3", [run]).state is state


AFTER_ACCEPTANCE = {
    "the backoff continues to grow": (RIGHT, PASS),
    "the backoff restarts": ([50] * 8, DEVIATES),
    "fewer than three failures": ([50, 100], INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "state"), AFTER_ACCEPTANCE.values(), ids=AFTER_ACCEPTANCE)
def test_kip_144_4_after_an_accepted_connection(waits: list[float], state: State) -> None:
    assert closed("KIP-144/4", waits).state is state


def test_kip_144_4_is_inconclusive_with_constant_backoff() -> None:
    settings = without("", reconnect_backoff_ms=1000)
    assert closed("KIP-144/4", [1000] * 8, settings=settings).state is INCONCLUSIVE


HEALTHY = {
    "is the base": ([50, 45, 55, 50], RIGHT, PASS),
    "is that of the failing broker": ([800, 900, 1000, 900], RIGHT, DEVIATES),
    "was observed once after the other's had grown": ([50, 50], RIGHT, INCONCLUSIVE),
    "is the base, as that of the failing broker": ([50, 45, 55, 50], [50] * 40, INCONCLUSIVE),
}


@pytest.mark.parametrize(("first", "failing", "state"), HEALTHY.values(), ids=HEALTHY)
def test_kip_144_6_wait_before_a_healthy_broker(first: list[float], failing: list[float], state: State) -> None:
    journal = Journal()
    for at_ms in starts(failing):
        journal.connection(at_ms, at_ms + 1, broker=1)
    for at_ms in starts(first, 600):
        journal.connection(at_ms, at_ms + 600, broker=2, answers=True)
    run = observed("reconnect-two-brokers", journal.events, settings=CONNECTING)
    assert judge("KIP-144/6", [run]).state is state


def test_kip_144_6_requires_two_brokers() -> None:
    assert closed("KIP-144/6", RIGHT, "reconnect-two-brokers").state is INCONCLUSIVE


ONLY_THE_BASE = without("reconnect.backoff.max.ms", reconnect_backoff_ms=200)


BASE_ALONE = {
    "the same": ([200] * 6, ONLY_THE_BASE, PASS),
    "growing": ([200, 400, 800, 1000, 1000], ONLY_THE_BASE, DEVIATES),
    "jittered, as in the KIP's text": ([160, 240, 180, 210, 170, 230], ONLY_THE_BASE, PASS),
    "jittered by half": ([100, 300, 120, 290, 110, 280], ONLY_THE_BASE, DEVIATES),
    "with a maximum set as well": ([50] * 6, CONNECTING, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("waits", "settings", "state"), BASE_ALONE.values(), ids=BASE_ALONE)
def test_kip_144_7_waits_with_only_the_base_set(
    waits: list[float], settings: Mapping[str, float | str | bool], state: State
) -> None:
    assert closed("KIP-144/7", waits, "reconnect-constant", settings).state is state


MAXIMUM_BELOW_THE_BASE = {
    "the maximum": ([200] * 6, 500, PASS),
    "the base, as before Kafka 3.7": ([500] * 6, 500, DEVIATES),
    "with a base below the maximum": ([200] * 6, 100, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("waits", "base_ms", "state"), MAXIMUM_BELOW_THE_BASE.values(), ids=MAXIMUM_BELOW_THE_BASE)
def test_kip_144_8_waits_with_a_maximum_below_the_base(waits: list[float], base_ms: float, state: State) -> None:
    settings = without("", reconnect_backoff_ms=base_ms, reconnect_backoff_max_ms=200)
    assert closed("KIP-144/8", waits, "reconnect-base-above-max", settings).state is state


@pytest.mark.parametrize(
    ("at_once", "role", "state"),
    [
        (1, Role.PRODUCER, PASS),
        (2, Role.PRODUCER, PASS),
        (3, Role.PRODUCER, DEVIATES),
        (3, Role.CONSUMER, PASS),
        (4, Role.CONSUMER, DEVIATES),
        (0, Role.PRODUCER, INCONCLUSIVE),
    ],
    ids=lambda value: str(value),
)
def test_kip_144_10_simultaneous_connection_attempts(at_once: int, role: Role, state: State, journal: Journal) -> None:
    """One to a bootstrap address and one to a broker are allowed; for a consumer also one to its coordinator."""
    for number in range(at_once):
        journal.connection(number, 1000)
    run = observed("reconnect-silent", journal.events, role=role, settings=CONNECTING)
    assert judge("KIP-144/10", [run]).state is state


def test_kip_144_10_answered_connection_is_established(journal: Journal) -> None:
    for number in range(6):
        journal.connection(number * 10, 1000, answers=True)
    assert judge("KIP-144/10", [observed("reconnect-silent", journal.events)]).state is PASS


IDLE_CLOSES = {"when it has data to send": ([50, 6000, 6000], PASS), "at once": ([0, 0, 0], DEVIATES)}


@pytest.mark.parametrize(("waits", "state"), IDLE_CLOSES.values(), ids=IDLE_CLOSES)
def test_kip_144_11_client_reconnects_after_an_idle_close(waits: list[float], state: State) -> None:
    run = observed("reconnect-idle", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/11", [run]).state is state
