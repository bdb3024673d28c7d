"""KIP-144, by connections that fail in the ways of its probes, and when the next one comes."""

from collections.abc import Mapping, Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, Journal, closed_connections, observed

PASS, DEVIATES, INCONCLUSIVE = State.PASS, State.DEVIATES, State.INCONCLUSIVE
NOT_OBSERVABLE = State.NOT_OBSERVABLE
# Retries do not hold connections up, and nobody goes back to bootstrap addresses.
CONNECTING: Mapping[str, float | str | bool] = {
    **SETTINGS,
    "retry.backoff.max.ms": 10,
    "metadata.recovery.strategy": "none",
}
RIGHT: list[float] = [50, 105, 190, 420, 790, 1000, 930, 1000]


def without(name: str, **given: float) -> dict[str, float | str | bool]:
    """The settings but for one, and others (with _ for dots)."""
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
    """Connections on which ApiVersions was answered, then closed by the broker."""
    journal, at_ms = Journal(), 0.0
    for wait in (*waits, 0):
        journal.connection(at_ms, at_ms + 10, answers=True)
        at_ms += 10 + wait
    return journal


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param(RIGHT, PASS, id="double up to the maximum"),
        pytest.param([wait * 2 for wait in RIGHT], DEVIATES, id="are twice as long"),
        pytest.param([wait / 2 for wait in RIGHT], DEVIATES, id="are half as long"),
        pytest.param([50] * 12, DEVIATES, id="stay the same"),
        pytest.param([50, 100, 150, 200, 250, 300, 350], DEVIATES, id="grow by the same"),
        pytest.param([50, 100, 200, 400, 800, 1150, 1190, 1100], PASS, id="have their jitter after the maximum"),
        pytest.param([50, 100], INCONCLUSIVE, id="are two"),
    ],
)
def test_kip_144_1_waits_that(waits: list[float], state: State) -> None:
    assert closed("KIP-144/1", waits).state is state


def test_kip_144_1_what_is_refused_is_seen_by_nobody() -> None:
    assert closed("KIP-144/1", RIGHT, "reconnect-refused").state is NOT_OBSERVABLE


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([50, 42, 58], PASS, id="waits the base again"),
        pytest.param([50, 100, 200, 400, 800], DEVIATES, id="goes on to double"),
        pytest.param([0, 0, 0], DEVIATES, id="does not wait"),
        pytest.param([50, 50], INCONCLUSIVE, id="was seen twice"),
    ],
)
def test_kip_144_3_after_a_connection_that_worked_a_client(waits: list[float], state: State) -> None:
    run = observed("reconnect-after-versions", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/3", [run]).state is state


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param(RIGHT, PASS, id="it goes on to grow"),
        pytest.param([50] * 8, DEVIATES, id="it begins anew"),
        pytest.param([50, 100], INCONCLUSIVE, id="there were not three failures"),
    ],
)
def test_kip_144_4_after_a_connection_that_was_only_accepted(waits: list[float], state: State) -> None:
    assert closed("KIP-144/4", waits).state is state


def test_kip_144_4_is_not_known_where_waits_are_configured_to_be_the_same() -> None:
    settings = without("", reconnect_backoff_ms=1000)
    assert closed("KIP-144/4", [1000] * 8, settings=settings).state is INCONCLUSIVE


@pytest.mark.parametrize(
    ("first", "state"),
    [
        pytest.param([50, 45, 55], PASS, id="is the base"),
        pytest.param([800, 900, 1000], DEVIATES, id="is that of the broker that fails"),
        pytest.param([50], INCONCLUSIVE, id="was seen once"),
    ],
)
def test_kip_144_6_the_wait_before_a_broker_that_worked(first: list[float], state: State) -> None:
    journal, at_ms = Journal(), 0.0
    for wait in (*RIGHT, 0):
        journal.connection(at_ms, at_ms + 1, broker=1)
        at_ms += 1 + wait
    at_ms = 0.0
    for wait in (*first, 0):
        journal.connection(at_ms, at_ms + 600, broker=2, answers=True)
        at_ms += 600 + wait
    run = observed("reconnect-two-brokers", journal.events, settings=CONNECTING)
    assert judge("KIP-144/6", [run]).state is state


def test_kip_144_6_takes_two_brokers() -> None:
    assert closed("KIP-144/6", RIGHT, "reconnect-two-brokers").state is INCONCLUSIVE


@pytest.mark.parametrize(
    ("waits", "settings", "state"),
    [
        pytest.param([200] * 6, without("reconnect.backoff.max.ms", reconnect_backoff_ms=200), PASS, id="the same"),
        pytest.param(
            [200, 400, 800, 1000, 1000],
            without("reconnect.backoff.max.ms", reconnect_backoff_ms=200),
            DEVIATES,
            id="growing",
        ),
        pytest.param(
            [160, 240, 180, 210, 170, 230],
            without("reconnect.backoff.max.ms", reconnect_backoff_ms=200),
            DEVIATES,
            id="jittered",
        ),
        pytest.param([50] * 6, CONNECTING, NOT_OBSERVABLE, id="with a maximum beside it"),
    ],
)
def test_kip_144_7_waits_where_the_base_is_set_alone(
    waits: list[float], settings: Mapping[str, float | str | bool], state: State
) -> None:
    assert closed("KIP-144/7", waits, "reconnect-constant", settings).state is state


@pytest.mark.parametrize(
    ("waits", "base_ms", "state"),
    [
        pytest.param([200] * 6, 500, PASS, id="the maximum"),
        pytest.param([500] * 6, 500, DEVIATES, id="the base, as before Kafka 3.7"),
        pytest.param([200] * 6, 100, NOT_OBSERVABLE, id="with a base that is below it"),
    ],
)
def test_kip_144_8_waits_where_the_maximum_is_the_smaller(waits: list[float], base_ms: float, state: State) -> None:
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
def test_kip_144_10_connections_that_are_being_made_at_once(at_once: int, role: Role, state: State) -> None:
    """One to a bootstrap address and one to a broker; of a consumer one to its coordinator as well."""
    journal = Journal()
    for number in range(at_once):
        journal.connection(number, 1000)
    run = observed("reconnect-silent", journal.events, role=role, settings=CONNECTING)
    assert judge("KIP-144/10", [run]).state is state


def test_kip_144_10_one_that_was_answered_is_made() -> None:
    journal = Journal()
    for number in range(6):
        journal.connection(number * 10, 1000, answers=True)
    assert judge("KIP-144/10", [observed("reconnect-silent", journal.events)]).state is PASS


@pytest.mark.parametrize(
    ("waits", "state"),
    [
        pytest.param([50, 6000, 6000], PASS, id="when it has something to send"),
        pytest.param([0, 0, 0], DEVIATES, id="at once"),
    ],
)
def test_kip_144_11_after_a_connection_that_was_closed_as_idle_a_client_is_back(
    waits: list[float], state: State
) -> None:
    run = observed("reconnect-idle", worked(waits).events, settings=CONNECTING)
    assert judge("KIP-144/11", [run]).state is state
