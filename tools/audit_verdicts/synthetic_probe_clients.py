"""Consumers, admins and starting producers with known behaviour, under the audit's probes.

They are our own client, and variants that wait differently or ignore throttle times. A policy patches the client's
classes during a run. Each policy has the expected verdicts of the judge.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

import pytest

from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import State
from sluice.audit.probes import PROBES
from sluice.audit.runs.virtual_run import run_virtual
from sluice.audit.subjects import VIRTUAL
from sluice.client.backoff import Uniform
from sluice.client.config import ClientConfig
from sluice.client.network import network_client
from sluice.client.network.connection_states import ClusterConnectionStates
from sluice.client.network.metadata_updater import MetadataUpdater
from tools.audit_verdicts.synthetic_clients import (
    AtOnceAfterSuccess,
    Drawn,
    IgnoresThrottle,
    Wait,
    constant,
    exponential,
    fully_jittered,
    linear,
)

Change = Callable[[pytest.MonkeyPatch, Random], None]
PASS, DEVIATES = State.PASS, State.DEVIATES
# As configured by the probes.
BASE_MS, MAX_MS = 100, 800


def unchanged(patch: pytest.MonkeyPatch, random: Random) -> None:
    """Kafka's behaviour."""


@dataclass(frozen=True)
class ProbeClient:
    """One client.

    probe: the probe that it runs
    expected: the judge's verdict on each statement; there are no other findings
    change: the change of the client
    """

    name: str
    probe: str
    expected: Mapping[str, State]
    change: Change = unchanged

    def __str__(self) -> str:
        return f"{self.probe}: {self.name}"


def observe_probe_client(client: ProbeClient, seed: int) -> Observation:
    """Run a client under its probe."""
    with pytest.MonkeyPatch.context() as patch:
        client.change(patch, Random(seed))
        return run_virtual(VIRTUAL["sluice-virtual"], PROBES[client.probe], seed, seed).observation


def growing(wait: Wait) -> Change:
    """Wait like this wherever Kafka's clients back off exponentially, including metadata."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        def retry_backoff(config: ClientConfig, uniform: Uniform) -> Drawn:
            return Drawn(wait, random)

        patch.setattr(ClientConfig, "retry_backoff", retry_backoff)

    return change


def static(wait: Wait) -> Change:
    """Wait like this wherever Kafka's clients use a constant backoff. Counts failures, which Kafka does not here."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        class Counted:
            def __init__(self, ms: int) -> None:
                self._failures = 0

            def backoff(self, attempts: int) -> int:
                self._failures += 1
                return int(wait((self._failures - 1) % 5, random))  # a probe's incident has five

        patch.setattr("sluice.client.retry_sites.StaticBackoff", Counted)

    return change


def reconnecting(wait: Wait) -> Change:
    """Wait like this before connections."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        patch.setattr(ClientConfig, "reconnect_backoff", lambda config, uniform: Drawn(wait, random))

    return change


def never_returns(patch: pytest.MonkeyPatch, random: Random) -> None:
    patch.setattr(MetadataUpdater, "_rebootstrap", lambda updater, now_ms: None)


def with_states(kind: type[ClusterConnectionStates]) -> Change:
    """Replace the class of the connection states."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        patch.setattr(network_client, "ClusterConnectionStates", kind)

    return change


_SHORTER = {
    "constant": constant(BASE_MS),
    "linear": linear(BASE_MS, MAX_MS),
    "full jitter": fully_jittered(BASE_MS),
    "no wait": constant(20),
}
_OTHER = {
    "multiplier 3": exponential(BASE_MS, MAX_MS, multiplier=3),
    "base too small": exponential(BASE_MS / 2, MAX_MS),
    "base too large": exponential(BASE_MS * 4, MAX_MS),
}


def _growing(probe: str, statement: str, *, is_held_up: bool = False) -> list[ProbeClient]:
    """Return variants of an exponential backoff.

    With `is_held_up`, other causes may also delay a retry, so the judge detects only waits that hardly grow.
    """
    wrong = _SHORTER if is_held_up else {**_SHORTER, **_OTHER}
    return [
        ProbeClient("unchanged", probe, {statement: PASS}),
        *(ProbeClient(name, probe, {statement: DEVIATES}, growing(wait)) for name, wait in wrong.items()),
    ]


def _static(probe: str, statement: str) -> list[ProbeClient]:
    """Return variants of a backoff that is constant in Kafka, and grows in the KIP."""
    return [
        ProbeClient("unchanged", probe, {statement: PASS}),
        ProbeClient("exponential waits", probe, {statement: PASS}, static(exponential(BASE_MS, MAX_MS))),
        ProbeClient("linear", probe, {statement: DEVIATES}, static(linear(BASE_MS, MAX_MS))),
        ProbeClient("too long", probe, {statement: DEVIATES}, static(constant(4 * BASE_MS))),
        ProbeClient("no wait", probe, {statement: DEVIATES}, static(constant(20))),
    ]


def _throttled(probe: str) -> list[ProbeClient]:
    return [
        ProbeClient("unchanged", probe, {"KIP-13/20": PASS}),
        ProbeClient("ignores the throttle time", probe, {"KIP-13/20": DEVIATES}, with_states(IgnoresThrottle)),
    ]


PROBE_CLIENTS = [
    *_growing("commit-error", "KIP-580/10"),
    *_growing("coordinator-lookup-error", "KIP-580/10", is_held_up=True),
    *_growing("heartbeat-error", "KIP-580/11"),
    *_growing("admin-error", "KIP-580/15"),
    *_growing("metadata-leader-not-available", "KIP-580/8"),
    *_growing("metadata-disconnect", "KIP-580/9", is_held_up=True),
    *_static("join-error", "KIP-580/12"),
    *_static("list-offsets-error", "KIP-580/13"),
    *_static("init-producer-id-error", "KIP-580/14"),
    *_throttled("throttle-fetch"),
    *_throttled("throttle-other"),
    *_throttled("throttle-long"),
    ProbeClient("unchanged", "reconnect-sasl-rejected", {"KIP-144/12": PASS}),
    ProbeClient("no wait", "reconnect-sasl-rejected", {"KIP-144/12": DEVIATES}, reconnecting(constant(20))),
    ProbeClient("unchanged", "reconnect-all-lost", {"KIP-144/13": PASS}),
    ProbeClient(
        "never returns to the bootstrap address", "reconnect-all-lost", {"KIP-144/13": DEVIATES}, never_returns
    ),
    ProbeClient("unchanged", "fetch-error", {}),
    ProbeClient("unchanged", "reconnect-idle", {"KIP-144/11": PASS}),
    ProbeClient("no wait", "reconnect-idle", {"KIP-144/11": DEVIATES}, with_states(AtOnceAfterSuccess)),
]
