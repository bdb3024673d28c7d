"""Every probe has its effect on a cluster, and our own client survives it, in virtual time."""

from collections import Counter
from functools import cache

import pytest

from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Probe
from sluice.audit.runs.virtual_run import run_virtual
from sluice.audit.subjects import VIRTUAL
from sluice.journal_events import BrokerState, ConnectionOpened, Fault, LeaderChange, Request

# The in-memory network has no TLS.
SHORT = [probe for probe in PROBES.values() if not probe.virtual_only and probe.name != "reconnect-tls-stalled"]
# Probes that change the cluster without a fault rule.
WITHOUT_RULES: dict[str, type] = {
    "delivery-leader-gone": BrokerState,
    "delivery-long-outage": BrokerState,
    "produce-new-leader": LeaderChange,
}
# The repeated requests of a client under each probe, and their minimum number.
TRIED: dict[str, tuple[str, int]] = {
    "admin-error": ("DescribeGroups", 12),
    "commit-error": ("OffsetCommit", 12),
    "coordinator-lookup-error": ("FindCoordinator", 6),
    "fetch-error": ("Fetch", 10),
    "heartbeat-error": ("Heartbeat", 10),
    "init-producer-id-error": ("InitProducerId", 12),
    "join-error": ("JoinGroup", 10),
    "list-offsets-error": ("ListOffsets", 12),
    "metadata-disconnect": ("Metadata", 10),
    "metadata-leader-not-available": ("Metadata", 10),
    "metadata-unknown-topic": ("Metadata", 20),
    "reconnect-sasl-rejected": ("SaslAuthenticate", 10),
    "throttle-fetch": ("Fetch", 20),
    "throttle-other": ("OffsetCommit", 20),
}


@cache
def lived(name: str) -> Observation:
    seen = run_virtual(VIRTUAL["sluice-virtual"], PROBES[name], repetition=0, seed=7)
    assert seen.lost == []
    return seen.observation


@pytest.mark.parametrize("probe", SHORT, ids=lambda probe: probe.name)
def test_our_client_survives(probe: Probe) -> None:
    """One test per probe, because the run is the cost."""
    seen = lived(probe.name)
    assert seen.problem == ""
    fault_ms = probe.fault_ms()
    if fault_ms is not None:
        met = [event for event in seen.events if isinstance(event, WITHOUT_RULES.get(probe.name, Fault))]
        assert met, "no effect on the cluster"
    attempts = Counter(event.api for event in seen.events if isinstance(event, Request))
    api, least = TRIED.get(probe.name, ("Produce", 0 if probe.name == "delivery-config" else 3))
    assert attempts[api] >= least, f"too few attempts of the client: {attempts}"
    assert (seen.ended_ns - seen.began_ns) / 1e6 >= probe.duration_ms, "the observation is shorter than declared"
    if fault_ms is None or fault_ms[1] is None:
        assert seen.fault_until_ns is None
    else:
        assert seen.fault_from_ns is not None
        assert seen.fault_until_ns is not None
        assert (seen.fault_until_ns - seen.fault_from_ns) / 1e6 == fault_ms[1] - fault_ms[0]


def test_invalid_config_is_rejected_before_connecting() -> None:
    seen = lived("delivery-config")
    assert [callback.event for callback in seen.callbacks] == ["rejected"]
    assert not any(isinstance(event, ConnectionOpened) for event in seen.events)


def test_long_outage_has_more_failures_than_a_six_bit_counter() -> None:
    faults = Counter(event.action for event in lived("long-outage").events if isinstance(event, Fault))
    assert faults["refuse-connections"] > 64
    assert faults["error"] > 64


def test_same_seed_gives_the_same_run() -> None:
    again = run_virtual(VIRTUAL["sluice-virtual"], PROBES["produce-timed-out"], repetition=0, seed=7).observation
    assert again == lived("produce-timed-out")


def test_each_statement_is_observable_under_its_probes() -> None:
    named = {name for statement in STATEMENTS.values() for name in statement.probes}
    assert named <= PROBES.keys()
    without = [name for name, statement in STATEMENTS.items() if not (statement.unobservable or statement.probes)]
    assert without == []


@pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: probe.name)
def test_probe_definition_is_consistent(probe: Probe) -> None:
    assert probe.cluster.name == probe.name
    assert probe.what.endswith(".")
    assert 1 <= probe.least <= probe.most
    assert all(probe.role in STATEMENTS[name].roles for name in probe.statements)


def test_full_round_takes_under_three_minutes_with_six_parallel_probes() -> None:
    assert sum(probe.duration_ms * probe.least for probe in SHORT) / 6 < 180_000
