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


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param(RIGHT, PASS, id="double up to the maximum"),
        pytest.param([wait * 2 for wait in RIGHT], DEVIATES, id="are twice as long"),
        pytest.param([wait / 2 for wait in RIGHT], DEVIATES, id="are half as long"),
        pytest.param([50] * 12, DEVIATES, id="stay constant"),
        pytest.param([50, 100, 150, 200, 250, 300, 350], DEVIATES, id="grow linearly"),
        pytest.param([50, 100, 200, 400, 800, 1150, 1190, 1100], PASS, id="have jitter after the cap"),
        pytest.param([50, 100], INCONCLUSIVE, id="are two"),
    ],
)
def test_kip_144_1_waits(waits: list[float], state: State) -> None:
    assert closed("KIP-144/1", waits).state is state


def test_kip_144_1_refused_connections_are_unobservable() -> None:
    assert closed("KIP-144/1", RIGHT, "reconnect-refused").state is NOT_OBSERVABLE


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([50, 42, 58], PASS, id="waits the base again"),
        pytest.param([50, 100, 200, 400, 800], DEVIATES, id="continues to double"),
        pytest.param([0, 0, 0], DEVIATES, id="does not wait"),
        pytest.param([50, 50], INCONCLUSIVE, id="was observed twice"),
    ],
)
def test_kip_144_3_after_a_successful_connection_a_client(waits: list[float], state: State) -> None:
    run = observed("reconnect-after-versions", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/3", [run]).state is state


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param(RIGHT, PASS, id="the backoff continues to grow"),
        pytest.param([50] * 8, DEVIATES, id="the backoff restarts"),
        pytest.param([50, 100], INCONCLUSIVE, id="fewer than three failures"),
    ],
)
def test_kip_144_4_after_an_accepted_connection(waits: list[float], state: State) -> None:
    assert closed("KIP-144/4", waits).state is state


def test_kip_144_4_is_inconclusive_with_constant_backoff() -> None:
    settings = without("", reconnect_backoff_ms=1000)
    assert closed("KIP-144/4", [1000] * 8, settings=settings).state is INCONCLUSIVE


@pytest.mark.parametrize(
    ("first", "failing", "state"),
    [
        pytest.param([50, 45, 55, 50], RIGHT, PASS, id="is the base"),
        pytest.param([800, 900, 1000, 900], RIGHT, DEVIATES, id="is that of the failing broker"),
        pytest.param([50, 50], RIGHT, INCONCLUSIVE, id="was observed once after the other's had grown"),
        pytest.param([50, 45, 55, 50], [50] * 40, INCONCLUSIVE, id="is the base, as that of the failing broker"),
    ],
)
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


@pytest.mark.parametrize(
    ("waits", "settings", "state"),
    [
        pytest.param([200] * 6, ONLY_THE_BASE, PASS, id="the same"),
        pytest.param([200, 400, 800, 1000, 1000], ONLY_THE_BASE, DEVIATES, id="growing"),
        pytest.param([160, 240, 180, 210, 170, 230], ONLY_THE_BASE, PASS, id="jittered, as in the KIP's text"),
        pytest.param([100, 300, 120, 290, 110, 280], ONLY_THE_BASE, DEVIATES, id="jittered by half"),
        pytest.param([50] * 6, CONNECTING, NOT_OBSERVABLE, id="with a maximum set as well"),
    ],
)
def test_kip_144_7_waits_with_only_the_base_set(
    waits: list[float], settings: Mapping[str, float | str | bool], state: State
) -> None:
    assert closed("KIP-144/7", waits, "reconnect-constant", settings).state is state


@pytest.mark.parametrize(
    ("waits", "base_ms", "state"),
    [
        pytest.param([200] * 6, 500, PASS, id="the maximum"),
        pytest.param([500] * 6, 500, DEVIATES, id="the base, as before Kafka 3.7"),
        pytest.param([200] * 6, 100, NOT_OBSERVABLE, id="with a base below the maximum"),
    ],
)
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
def test_kip_144_10_simultaneous_connection_attempts(at_once: int, role: Role, state: State) -> None:
    """One to a bootstrap address and one to a broker are allowed; for a consumer also one to its coordinator."""
    journal = Journal()
    for number in range(at_once):
        journal.connection(number, 1000)
    run = observed("reconnect-silent", journal.events, role=role, settings=CONNECTING)
    assert judge("KIP-144/10", [run]).state is state


def test_kip_144_10_answered_connection_is_established() -> None:
    journal = Journal()
    for number in range(6):
        journal.connection(number * 10, 1000, answers=True)
    assert judge("KIP-144/10", [observed("reconnect-silent", journal.events)]).state is PASS


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([50, 6000, 6000], PASS, id="when it has data to send"),
        pytest.param([0, 0, 0], DEVIATES, id="at once"),
    ],
)
def test_kip_144_11_client_reconnects_after_an_idle_close(waits: list[float], state: State) -> None:
    run = observed("reconnect-idle", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/11", [run]).state is state
