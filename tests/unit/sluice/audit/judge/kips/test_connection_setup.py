"""KIP-144/12 to 14: rejected logins, lost brokers, and connections that are not set up."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import BOOTSTRAP_LISTENER
from sluice.audit.judge.model.verdict import State
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, starts

PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE


REJECTED_LOGINS = {
    "two steps each time, as in Kafka": ([100, 400, 1000, 1000, 1000], PASS),
    "one step each time, as in the KIP": ([50, 100, 200, 400, 800, 1000], PASS),
    "two steps with a jitter of 25 %, as in librdkafka": ([75, 300, 750, 760, 750, 750], PASS),
    "none": ([50] * 6, DEVIATES),
    "twice": ([100, 400], INCONCLUSIVE),
}


@pytest.mark.parametrize(("waits", "state"), REJECTED_LOGINS.values(), ids=REJECTED_LOGINS)
def test_kip_144_12_backoff_after_rejected_logins_advances(waits: Sequence[float], state: State) -> None:
    journal = Journal()
    for at_ms in starts(waits, 102):
        number = journal.connection(at_ms, at_ms + 102)
        journal.request("SaslHandshake", at_ms + 0.5, at_ms + 1, connection=number, version=1)
        journal.request("SaslAuthenticate", at_ms + 1.5, at_ms + 2, connection=number, version=2, errors=[58])
    assert judge("KIP-144/12", [observed("reconnect-sasl-rejected", journal.events)]).state is state


WITHOUT_BROKERS = {
    "returns": ("rebootstrap", 6, [500], PASS),
    "never returns": ("rebootstrap", 6, [], DEVIATES),
    "returns before and after the outage only": ("rebootstrap", 6, [-10, 9000], DEVIATES),
    "hardly tries": ("rebootstrap", 2, [], INCONCLUSIVE),
    "is configured not to": ("none", 6, [], NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("strategy", "failures", "returns", "state"), WITHOUT_BROKERS.values(), ids=WITHOUT_BROKERS)
def test_kip_144_13_client_without_brokers(
    strategy: str, failures: int, returns: Sequence[float], state: State
) -> None:
    journal = Journal()
    for number in range(failures):
        journal.connection(100 + 100 * number, 101 + 100 * number)
    for at_ms in returns:
        journal.connection(at_ms, at_ms + 50, answers=True, listener=BOOTSTRAP_LISTENER)
    settings = {**SETTINGS, "metadata.recovery.strategy": strategy}
    run = observed("reconnect-all-lost", journal.events, settings=settings, fault_ms=(0, 8000))
    assert judge("KIP-144/13", [run]).state is state


SETUP_TIMEOUTS = {
    "grow to the maximum": ([1000, 2000, 2000, 2100], PASS),
    "are jittered": ([850, 2300, 1700], PASS),
    "do not grow": ([1000] * 5, DEVIATES),
    "are those of another timeout": ([5000, 5000, 5000], NOT_OBSERVABLE),
    "are none, as the connection is kept": ([], NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("times", "state"), SETUP_TIMEOUTS.values(), ids=SETUP_TIMEOUTS)
def test_kip_144_14_setup_timeouts(times: Sequence[float], state: State) -> None:
    settings = {
        **SETTINGS,
        "reconnect.backoff.max.ms": 50,
        "socket.connection.setup.timeout.ms": 1000,
        "socket.connection.setup.timeout.max.ms": 2000,
    }
    runs = []
    for repetition in range(2):
        journal, at_ms = Journal(), 0.0
        for each in times:
            journal.connection(at_ms, at_ms + each, by_client=True)
            at_ms += each + 50
        journal.connection(at_ms)
        if times:
            journal.connection(at_ms + 10)  # after the fault
        fault_ms = (0.0, at_ms + 5)
        run = observed(
            "reconnect-tls-stalled", journal.events, settings=settings, repetition=repetition, fault_ms=fault_ms
        )
        runs.append(run)
    assert judge("KIP-144/14", runs).state is state


def test_kip_144_14_requires_a_connection() -> None:
    settings = {**SETTINGS, "socket.connection.setup.timeout.ms": 1, "socket.connection.setup.timeout.max.ms": 1}
    assert judge("KIP-144/14", [observed("reconnect-tls-stalled", [], settings=settings)]).state is INCONCLUSIVE
