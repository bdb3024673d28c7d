"""Consumers and admins with known behaviour, and producers as they start: our own client under the audit's probes, and
the same client changed to wait differently or to ignore throttle times.

What a policy changes is put into the client's classes for the length of a run. Each knows what the judge has to say.
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
from tests.support.synthetic_clients import (
    AtOnceAfterSuccess,
    Deaf,
    Drawn,
    Wait,
    constant,
    exponential,
    fully_jittered,
    linear,
)

Change = Callable[[pytest.MonkeyPatch, Random], None]
PASS, DEVIATES = State.PASS, State.DEVIATES
# As the probes configure it.
BASE_MS, MAX_MS = 100, 800


def as_it_is(patch: pytest.MonkeyPatch, random: Random) -> None:
    """Kafka's behaviour."""


@dataclass(frozen=True)
class ProbeClient:
    """One client.

    probe: what it goes through
    expected: what the judge says of statements; it tells nothing else
    change: what is done to it
    """

    name: str
    probe: str
    expected: Mapping[str, State]
    change: Change = as_it_is

    def __str__(self) -> str:
        return f"{self.probe}: {self.name}"


def observe_probe_client(client: ProbeClient, seed: int) -> Observation:
    """One run."""
    with pytest.MonkeyPatch.context() as patch:
        client.change(patch, Random(seed))
        return run_virtual(VIRTUAL["sluice-virtual"], PROBES[client.probe], seed, seed).observation


def growing(wait: Wait) -> Change:
    """Waits so wherever Kafka's clients wait longer each time, for metadata too."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        def retry_backoff(config: ClientConfig, uniform: Uniform) -> Drawn:
            return Drawn(wait, random)

        patch.setattr(ClientConfig, "retry_backoff", retry_backoff)

    return change


def static(wait: Wait) -> Change:
    """Waits so wherever they wait the same each time. It counts its failures, where Kafka has none to count."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        class Counted:
            def __init__(self, ms: int) -> None:
                self._failures = 0

            def backoff(self, attempts: int) -> int:
                self._failures += 1
                return int(wait((self._failures - 1) % 5, random))  # a probe's incident has five

        patch.setattr("sluice.client.retry_sites.StaticBackoff", Counted)

    return change


def with_states(kind: type[ClusterConnectionStates]) -> Change:
    """Keeps what it knows of connections in another way."""

    def change(patch: pytest.MonkeyPatch, random: Random) -> None:
        patch.setattr(network_client, "ClusterConnectionStates", kind)

    return change


_SHORTER = {
    "constant": constant(BASE_MS),
    "linear": linear(BASE_MS, MAX_MS),
    "all of it jitter": fully_jittered(BASE_MS),
    "no wait": constant(20),
}
_OTHER = {
    "multiplier 3": exponential(BASE_MS, MAX_MS, multiplier=3),
    "base too small": exponential(BASE_MS / 2, MAX_MS),
    "base too large": exponential(BASE_MS * 4, MAX_MS),
}


def _growing(probe: str, statement: str, *, is_held_up: bool = False) -> list[ProbeClient]:
    """What can be wrong about waits that are to double. `is_held_up`: they may be for something else as well, so that
    only those can be told that never grow, or not by much.
    """
    wrong = _SHORTER if is_held_up else {**_SHORTER, **_OTHER}
    return [
        ProbeClient("as it is", probe, {statement: PASS}),
        *(ProbeClient(name, probe, {statement: DEVIATES}, growing(wait)) for name, wait in wrong.items()),
    ]


def _static(probe: str, statement: str, *, may_grow: bool) -> list[ProbeClient]:
    """And about waits that are to be the same."""
    grows = PASS if may_grow else DEVIATES
    return [
        ProbeClient("as it is", probe, {statement: PASS}),
        ProbeClient("waits that double", probe, {statement: grows}, static(exponential(BASE_MS, MAX_MS))),
        ProbeClient("linear", probe, {statement: DEVIATES}, static(linear(BASE_MS, MAX_MS))),
        ProbeClient("too long", probe, {statement: DEVIATES}, static(constant(4 * BASE_MS))),
        ProbeClient("no wait", probe, {statement: DEVIATES}, static(constant(20))),
    ]


def _throttled(probe: str) -> list[ProbeClient]:
    return [
        ProbeClient("as it is", probe, {"KIP-13/20": PASS}),
        ProbeClient("deaf", probe, {"KIP-13/20": DEVIATES}, with_states(Deaf)),
    ]


PROBE_CLIENTS = [
    *_growing("commit-error", "KIP-580/10"),
    *_growing("coordinator-lookup-error", "KIP-580/10", is_held_up=True),
    *_growing("heartbeat-error", "KIP-580/11"),
    *_growing("admin-error", "KIP-580/15"),
    *_growing("metadata-leader-not-available", "KIP-580/8"),
    *_growing("metadata-disconnect", "KIP-580/9", is_held_up=True),
    *_static("join-error", "KIP-580/12", may_grow=False),
    *_static("list-offsets-error", "KIP-580/13", may_grow=True),
    *_static("init-producer-id-error", "KIP-580/14", may_grow=True),
    *_throttled("throttle-fetch"),
    *_throttled("throttle-other"),
    *_throttled("throttle-long"),
    ProbeClient("as it is", "fetch-error", {}),
    ProbeClient("as it is", "reconnect-idle", {"KIP-144/11": PASS}),
    ProbeClient("at once", "reconnect-idle", {"KIP-144/11": DEVIATES}, with_states(AtOnceAfterSuccess)),
]
