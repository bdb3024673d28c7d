"""Clients with known behaviour: our own producer, and variants that wait, retry or give up differently.

A policy patches the producer before it connects. Each policy has the expected verdicts of the judge.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from sluice.audit.judge.model.verdict import FindingKind, State
from sluice.client.backoff import Backoff
from sluice.client.network.connection_states import ClusterConnectionStates, ConnectionState
from sluice.client.producer import Producer

Patch = Callable[[Producer, Random], None]
Wait = Callable[[int, Random], float]  # ms by the number of failures before the last one
Settings = Mapping[str, float | str | bool]

PASS, DEVIATES = State.PASS, State.DEVIATES
RETRY_BASE_MS, RECONNECT_BASE_MS, MAX_MS = 100, 50, 1000


def unchanged(producer: Producer, random: Random) -> None:
    """Kafka's behaviour."""


@dataclass(frozen=True)
class Policy:
    """One client.

    stage: the stage that it runs
    expected: the judge's verdict on each statement
    finds: the other findings
    patch: the change of the producer
    config: its real configuration, where that differs from `settings`
    settings: its declared configuration, where that differs from the stage's
    hidden: statements that are inconclusive for a command: an application could call as often
    """

    name: str
    stage: str
    expected: Mapping[str, State]
    finds: frozenset[FindingKind] = frozenset()
    patch: Patch = unchanged
    config: Settings = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    before: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.stage}: {self.name}"


class Drawn(Backoff):
    """A backoff defined by a function."""

    def __init__(self, wait: Wait, random: Random) -> None:
        self._wait = wait
        self._random = random

    def backoff(self, attempts: int) -> int:
        return int(self._wait(attempts, self._random))


def retries(wait: Wait) -> Patch:
    """Wait like this before retries of batches and metadata."""

    def patch(producer: Producer, random: Random) -> None:
        backoff = Drawn(wait, random)
        producer._accumulator._retry_backoff = backoff
        producer._metadata._refresh_backoff = producer._metadata._equivalent_backoff = backoff

    return patch


def reconnects(wait: Wait) -> Patch:
    """Wait like this before connections."""

    def patch(producer: Producer, random: Random) -> None:
        producer._network.client.states._reconnect_backoff = Drawn(wait, random)

    return patch


# -- waits -----------------------------------------------------------------------------------------------------------


def exponential(
    base_ms: float, max_ms: float = MAX_MS, *, multiplier: float = 2, jitter: float = 0.2, capped_first: bool = False
) -> Wait:
    def wait(failures: int, random: Random) -> float:
        waited_ms = min(base_ms * multiplier ** min(failures, 40), max_ms) * random.uniform(1 - jitter, 1 + jitter)
        return waited_ms if capped_first else min(waited_ms, max_ms)

    return wait


def linear(base_ms: float, max_ms: float = MAX_MS) -> Wait:
    return lambda failures, random: min(base_ms * (failures + 1), max_ms) * random.uniform(0.95, 1.05)


def constant(ms: float) -> Wait:
    return lambda failures, random: ms


def fully_jittered(base_ms: float) -> Wait:
    return lambda failures, random: random.uniform(0, min(base_ms * 2**failures, MAX_MS))


def wrapping(base_ms: float, after: int) -> Wait:
    """Return exponential waits whose counter overflows."""
    return lambda failures, random: exponential(base_ms)(failures % after, random)


# -- connections -----------------------------------------------------------------------------------------------------


def with_states(kind: type[ClusterConnectionStates]) -> Patch:
    """Replace the class of the connection states."""

    def patch(producer: Producer, random: Random) -> None:
        client = producer._network.client
        client.states = kind(client.states._reconnect_backoff, client.states._setup_timeout)

    return patch


class ResetAtTcpConnect(ClusterConnectionStates):
    def checking_api_versions(self, node_id: int) -> None:
        super().checking_api_versions(node_id)
        connection = self._connections[node_id]
        connection.failed_attempts, connection.reconnect_backoff_ms = 0, self._reconnect_backoff.backoff(0)


class NeverReset(ClusterConnectionStates):
    def ready(self, node_id: int) -> None:
        connection = self._connections[node_id]
        before = connection.failed_attempts, connection.reconnect_backoff_ms
        super().ready(node_id)
        connection.failed_attempts, connection.reconnect_backoff_ms = before


class AtOnceAfterSuccess(ClusterConnectionStates):
    def disconnected(self, node_id: int, now_ms: float) -> None:
        was_ready = self._connections[node_id].state is ConnectionState.READY
        super().disconnected(node_id, now_ms)
        if was_ready:
            self._connections[node_id].reconnect_backoff_ms = 0
            self._connections[node_id].failed_attempts = 0


class SharedByAll(ClusterConnectionStates):
    def disconnected(self, node_id: int, now_ms: float) -> None:
        most = max(connection.failed_attempts for connection in self._connections.values())
        self._connections[node_id].failed_attempts = most
        super().disconnected(node_id, now_ms)


class GivesUp(ClusterConnectionStates):
    def disconnected(self, node_id: int, now_ms: float) -> None:
        super().disconnected(node_id, now_ms)
        if self._connections[node_id].failed_attempts > 5:
            self._connections[node_id].reconnect_backoff_ms = 10**9


class IgnoresThrottle(ClusterConnectionStates):
    def throttle(self, node_id: int, until_ms: float) -> None:
        """Ignore the throttle time."""


# -- batches ---------------------------------------------------------------------------------------------------------


def one_counter(producer: Producer, random: Random, *, reset: bool) -> None:
    """Count the failures of all batches together. `reset`: until one succeeds."""
    accumulator, failures = producer._accumulator, [0]
    reenqueue, completed = accumulator.reenqueue, accumulator.completed

    def counted(batch: object, now_ms: float) -> None:
        failures[0] += 1
        reenqueue(batch, now_ms)  # type: ignore[arg-type]

    def ended(batch: object) -> None:
        failures[0] = 0 if reset else failures[0]
        completed(batch)  # type: ignore[arg-type]

    _wait_after(producer, lambda batch: failures[0])
    for name, function in (("reenqueue", counted), ("completed", ended)):
        setattr(accumulator, name, function)


def _wait_after(producer: Producer, failures: Callable[[Any], int]) -> None:
    """Wait before each retry of a batch for the backoff after this number of failures."""
    accumulator = producer._accumulator

    def time_left_ms(batch: Any, now_ms: float) -> float | None:
        if batch.attempts == 0:
            return None
        left_ms: float = accumulator._retry_backoff.backoff(failures(batch) - 1) - batch.waited_ms(now_ms)
        return left_ms if left_ms > 0 else None

    setattr(accumulator, "_time_left_ms", time_left_ms)  # noqa: B010  (a method is replaced)


def waits_for_new_leader_too(producer: Producer, random: Random) -> None:
    _wait_after(producer, lambda batch: batch.attempts)


def retries_anything(producer: Producer, random: Random) -> None:
    def can_retry(batch: object, answer: object, now_ms: float) -> bool:
        return batch.attempts < 4  # type: ignore[attr-defined, no-any-return]

    setattr(producer._sender, "_can_retry", can_retry)  # noqa: B010  (a method is replaced)


def closes_what_expires(producer: Producer, random: Random) -> None:
    fail_expired, client = producer._sender._fail_expired, producer._network.client

    def failed(batch: object, now_ms: float) -> None:
        fail_expired(batch, now_ms)  # type: ignore[arg-type]
        for node_id in list(client.metadata.cluster.nodes):
            client.disconnect(node_id)

    setattr(producer._sender, "_fail_expired", failed)  # noqa: B010  (a method is replaced)


def closes_after_late_answers(producer: Producer, random: Random) -> None:
    ended, client = producer._sender._ended, producer._network.client

    def closing(batch: object, *rest: object) -> None:
        was_over = batch.is_done  # type: ignore[attr-defined]
        ended(batch, *rest)  # type: ignore[arg-type]
        if was_over:
            for node_id in list(client.metadata.cluster.nodes):
                client.disconnect(node_id)

    setattr(producer._sender, "_ended", closing)  # noqa: B010  (a method is replaced)


# -- policies -------------------------------------------------------------------------------------------------------

STORM, STALL, WRAPPED = (frozenset((kind,)) for kind in (FindingKind.STORM, FindingKind.STALL, FindingKind.WRAPPED))


def _of(stage: str, name: str, verdicts: str, patch: Patch = unchanged, **fields: Any) -> Policy:
    """Return a policy; `verdicts` are numbers of statements, each with + if it passes, or - if it deviates."""
    expected = {f"KIP-{each[:-1]}": PASS if each[-1] == "+" else DEVIATES for each in verdicts.split()}
    return Policy(name, stage, expected, patch=patch, **fields)


_RIGHT_RECONNECT = "144/1+ 144/2+ 144/4+"
RECONNECTING = [
    _of("closed", "unchanged", f"{_RIGHT_RECONNECT} 144/9+"),
    _of("closed", "constant", "144/1- 144/2- 144/4- 144/9-", reconnects(constant(RECONNECT_BASE_MS))),
    _of("closed", "linear", "144/1- 144/4+", reconnects(linear(RECONNECT_BASE_MS))),
    _of("closed", "no jitter", f"{_RIGHT_RECONNECT} 144/9-", reconnects(exponential(RECONNECT_BASE_MS, jitter=0))),
    _of("closed", "multiplier 3", "144/1-", reconnects(exponential(RECONNECT_BASE_MS, multiplier=3))),
    _of("closed", "base too small", "144/1-", reconnects(exponential(RECONNECT_BASE_MS / 2))),
    _of("closed", "base too large", "144/1-", reconnects(exponential(RECONNECT_BASE_MS * 4))),
    _of("closed", "maximum too large", "144/1- 144/2- 144/9+", reconnects(exponential(RECONNECT_BASE_MS, 3 * MAX_MS))),
    _of("closed", "maximum too small", "144/1- 144/2-", reconnects(exponential(RECONNECT_BASE_MS, MAX_MS / 3))),
    _of(
        "closed",
        "jitter after the maximum, as in KIP-144's text",
        f"{_RIGHT_RECONNECT} 144/9+",
        reconnects(exponential(RECONNECT_BASE_MS, capped_first=True)),
    ),
    _of("closed", "half jitter", "144/1- 144/9-", reconnects(exponential(RECONNECT_BASE_MS, jitter=0.5))),
    _of("closed", "full jitter", "144/1-", reconnects(fully_jittered(RECONNECT_BASE_MS))),
    _of("closed", "no wait", "144/1- 144/2-", reconnects(constant(20)), finds=STORM),
    _of("closed", "reset by TCP connect", "144/1- 144/4-", with_states(ResetAtTcpConnect)),
    _of("closed", "a counter that overflows", "144/1-", reconnects(wrapping(50, 24)), finds=WRAPPED),
    _of("closed", "gives up", "", with_states(GivesUp), finds=STALL),
    _of("after-versions", "unchanged", "144/3+ 144/5+"),
    _of("after-versions", "reset by TCP connect", "144/3+", with_states(ResetAtTcpConnect)),
    _of("after-versions", "never reset", "144/3-", with_states(NeverReset)),
    _of("after-versions", "no wait after a success", "144/3- 144/5-", with_states(AtOnceAfterSuccess), finds=STORM),
    _of("lost", "unchanged", "144/5+"),
    _of("lost", "no wait after a success", "144/5-", with_states(AtOnceAfterSuccess)),
    _of("silent", "unchanged", "144/1+ 144/10+"),
    _of("silent", "constant", "144/1-", reconnects(constant(RECONNECT_BASE_MS))),
    _of("two-brokers", "unchanged", "144/6+"),
    _of("two-brokers", "shared by all brokers", "144/6-", with_states(SharedByAll)),
    _of("base-alone", "unchanged", "144/7+"),
    _of("base-alone", "grows anyway", "144/7-", reconnects(exponential(200))),
    _of("base-above-max", "unchanged", "144/8+"),
    _of("base-above-max", "waits the base", "144/8-", reconnects(constant(500))),
]

_RIGHT_PRODUCE = "580/1+ 580/2+ 580/17+ 91/14+"
PRODUCING = [
    _of("errors", "unchanged", f"{_RIGHT_PRODUCE} 580/16+"),
    _of("errors", "constant", "580/1- 580/2- 580/16- 580/17-", retries(constant(RETRY_BASE_MS))),
    _of(
        "errors",
        "constant, and older than the KIP",
        "580/18+ 580/1-",
        retries(constant(RETRY_BASE_MS)),
        before=frozenset(("KIP-580",)),
    ),
    _of("errors", "linear", "580/1-", retries(linear(RETRY_BASE_MS))),
    _of("errors", "no jitter", f"{_RIGHT_PRODUCE} 580/16-", retries(exponential(RETRY_BASE_MS, jitter=0))),
    _of("errors", "multiplier 3", "580/1-", retries(exponential(RETRY_BASE_MS, multiplier=3))),
    _of("errors", "base too small", "580/1- 580/16+", retries(exponential(RETRY_BASE_MS / 2))),
    _of("errors", "base too large", "580/1-", retries(exponential(RETRY_BASE_MS * 3))),
    _of("errors", "jitter after the maximum", "580/2-", retries(exponential(RETRY_BASE_MS, capped_first=True))),
    _of("errors", "no wait", "580/1- 580/17-", retries(constant(20)), finds=STORM),
    _of("then-success", "unchanged", "580/6+"),
    _of("then-success", "never reset", "580/6-", partial(one_counter, reset=False)),
    _of("two-partitions", "unchanged", "580/5+"),
    _of("two-partitions", "counted per connection", "580/5-", partial(one_counter, reset=True)),
    _of("new-leader", "unchanged", "580/7+"),
    _of("new-leader", "waits anyway", "580/7-", waits_for_new_leader_too),
    _of("equal", "unchanged", "580/4+"),
    _of("equal", "grows anyway", "580/4-", retries(exponential(200, 2000))),
    _of("above", "unchanged", "580/3+"),
    _of("above", "waits the base", "580/3-", retries(constant(500))),
    _of("unknown-topic", "unchanged", "580/8+"),
    _of("unknown-topic", "constant", "580/8-", retries(constant(RETRY_BASE_MS))),
    _of("unknown-topic", "no wait", "580/8-", retries(constant(20)), finds=STORM, hidden=frozenset({"KIP-580/8"})),
    _of("unknown-topic", "at once", "580/8-", retries(constant(1)), finds=STORM),
    _of("throttled", "unchanged", "13/20+"),
    _of("throttled", "ignores the throttle time", "13/20-", with_states(IgnoresThrottle)),
]

_TIMEOUT = "delivery.timeout.ms"
DELIVERING = [
    _of("mute", "unchanged", "91/1+ 91/2+ 91/4+ 91/5+ 91/8+"),
    _of("mute", "gives up late", "91/1- 91/2-", config={_TIMEOUT: 9000}),
    _of("mute", "gives up early", "91/2-", config={_TIMEOUT: 3000}),
    _of("mute", "retries too soon", "91/4-", config={"request.timeout.ms": 1000}),
    _of("mute", "closes the connection of an expired batch", "91/5-", closes_what_expires),
    _of("errors", "gives up after three attempts", "91/14-", config={"retries": 2}),
    _of("retries", "unchanged", "91/12+"),
    _of("retries", "one more retry", "91/12-", config={"retries": 4}),
    _of("retries", "one retry fewer", "91/12-", config={"retries": 2}),
    _of("not-retriable", "unchanged", "91/15+"),
    _of("not-retriable", "retries anything", "91/15-", retries_anything),
    _of("in-flight", "unchanged", "91/7+"),
    _of("in-flight", "two in flight", "91/7-", config={"max.in.flight.requests.per.connection": 2}),
    _of("config", "unchanged", "91/9+"),
    _of("config", "accepts any configuration", "91/9-", config={_TIMEOUT: 20_000}),
    _of("outage", "unchanged", "91/13+"),
    _of("outage", "gives up early", "91/13-", config={_TIMEOUT: 3000}),
    _of("long-throttle", "unchanged", "91/16+"),
    _of("long-throttle", "stops the clock", "91/16-", config={_TIMEOUT: 60_000}),
    _of("late-answer", "unchanged", "91/6+"),
    _of("late-answer", "closes the connection", "91/6-", closes_after_late_answers),
]

POLICIES = [*RECONNECTING, *PRODUCING, *DELIVERING]

# With defaults for unset settings: the client rebootstraps, and retries delay its connections.
_DEFAULTS: Settings = {
    "metadata.recovery.strategy": "rebootstrap",
    "retry.backoff.ms": RETRY_BASE_MS,
    "retry.backoff.max.ms": MAX_MS,
}
_RECONNECTS = ("closed", "after-versions", "lost", "silent", "two-brokers", "base-alone", "base-above-max")
DEFAULT_PROFILE = [
    *(_of(stage, "by default", "", settings=_DEFAULTS) for stage in _RECONNECTS),
    *(
        _of(stage, "by default", "", settings={"metadata.recovery.strategy": "rebootstrap"})
        for stage in sorted({policy.stage for policy in (*PRODUCING, *DELIVERING)})
    ),
]
