"""Clients with known behaviour: our own producer, and variants that wait, retry or give up differently.

A policy patches the producer before it connects. Each policy has the expected verdicts of the judge.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

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

    def time_left_ms(batch: object, now_ms: float) -> float | None:
        if batch.attempts == 0:  # type: ignore[attr-defined]
            return None
        left_ms: float = accumulator._retry_backoff.backoff(failures[0] - 1) - batch.waited_ms(now_ms)  # type: ignore[attr-defined]
        return left_ms if left_ms > 0 else None

    for name, function in (("reenqueue", counted), ("completed", ended), ("_time_left_ms", time_left_ms)):
        setattr(accumulator, name, function)


def per_connection(producer: Producer, random: Random) -> None:
    one_counter(producer, random, reset=True)


def never_reset(producer: Producer, random: Random) -> None:
    one_counter(producer, random, reset=False)


def waits_for_new_leader_too(producer: Producer, random: Random) -> None:
    accumulator = producer._accumulator

    def time_left_ms(batch: object, now_ms: float) -> float | None:
        if batch.attempts == 0:  # type: ignore[attr-defined]
            return None
        left_ms: float = accumulator._retry_backoff.backoff(batch.attempts - 1) - batch.waited_ms(now_ms)  # type: ignore[attr-defined]
        return left_ms if left_ms > 0 else None

    setattr(accumulator, "_time_left_ms", time_left_ms)  # noqa: B010  (a method is replaced)


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

_GROWS, _CAPPED, _NO_RESET, _JITTER = "KIP-144/1", "KIP-144/2", "KIP-144/4", "KIP-144/9"
_RIGHT_RECONNECT = {_GROWS: PASS, _CAPPED: PASS, _NO_RESET: PASS, _JITTER: PASS}
_RIGHT_PRODUCE = dict.fromkeys(("KIP-580/1", "KIP-580/2", "KIP-580/16", "KIP-580/17", "KIP-91/14"), PASS)
STORM, STALL, WRAPPED = (frozenset((kind,)) for kind in (FindingKind.STORM, FindingKind.STALL, FindingKind.WRAPPED))

RECONNECTING = [
    Policy("unchanged", "closed", _RIGHT_RECONNECT),
    Policy(
        "constant",
        "closed",
        {_GROWS: DEVIATES, _CAPPED: DEVIATES, _NO_RESET: DEVIATES, _JITTER: DEVIATES},
        patch=reconnects(constant(RECONNECT_BASE_MS)),
    ),
    Policy("linear", "closed", {_GROWS: DEVIATES, _NO_RESET: PASS}, patch=reconnects(linear(RECONNECT_BASE_MS))),
    Policy(
        "no jitter",
        "closed",
        {**_RIGHT_RECONNECT, _JITTER: DEVIATES},
        patch=reconnects(exponential(RECONNECT_BASE_MS, jitter=0)),
    ),
    Policy(
        "multiplier 3", "closed", {_GROWS: DEVIATES}, patch=reconnects(exponential(RECONNECT_BASE_MS, multiplier=3))
    ),
    Policy("base too small", "closed", {_GROWS: DEVIATES}, patch=reconnects(exponential(RECONNECT_BASE_MS / 2))),
    Policy("base too large", "closed", {_GROWS: DEVIATES}, patch=reconnects(exponential(RECONNECT_BASE_MS * 4))),
    Policy(
        "maximum too large",
        "closed",
        {_GROWS: DEVIATES, _CAPPED: DEVIATES, _JITTER: PASS},
        patch=reconnects(exponential(RECONNECT_BASE_MS, 3 * MAX_MS)),
    ),
    Policy(
        "maximum too small",
        "closed",
        {_GROWS: DEVIATES, _CAPPED: DEVIATES},
        patch=reconnects(exponential(RECONNECT_BASE_MS, MAX_MS / 3)),
    ),
    Policy(
        "jitter after the maximum, as in KIP-144's text",
        "closed",
        _RIGHT_RECONNECT,
        patch=reconnects(exponential(RECONNECT_BASE_MS, capped_first=True)),
    ),
    Policy(
        "half jitter",
        "closed",
        {_GROWS: DEVIATES, _JITTER: DEVIATES},
        patch=reconnects(exponential(RECONNECT_BASE_MS, jitter=0.5)),
    ),
    Policy("full jitter", "closed", {_GROWS: DEVIATES}, patch=reconnects(fully_jittered(RECONNECT_BASE_MS))),
    Policy("no wait", "closed", {_GROWS: DEVIATES, _CAPPED: DEVIATES}, STORM, patch=reconnects(constant(20))),
    Policy(
        "reset by TCP connect", "closed", {_GROWS: DEVIATES, _NO_RESET: DEVIATES}, patch=with_states(ResetAtTcpConnect)
    ),
    Policy("a counter that overflows", "closed", {_GROWS: DEVIATES}, WRAPPED, patch=reconnects(wrapping(50, 24))),
    Policy("gives up", "closed", {}, STALL, patch=with_states(GivesUp)),
    Policy("unchanged", "after-versions", {"KIP-144/3": PASS, "KIP-144/5": PASS}),
    Policy("reset by TCP connect", "after-versions", {"KIP-144/3": PASS}, patch=with_states(ResetAtTcpConnect)),
    Policy("never reset", "after-versions", {"KIP-144/3": DEVIATES}, patch=with_states(NeverReset)),
    Policy(
        "no wait after a success",
        "after-versions",
        {"KIP-144/3": DEVIATES, "KIP-144/5": DEVIATES},
        STORM,
        patch=with_states(AtOnceAfterSuccess),
    ),
    Policy("unchanged", "lost", {"KIP-144/5": PASS}),
    Policy("no wait after a success", "lost", {"KIP-144/5": DEVIATES}, patch=with_states(AtOnceAfterSuccess)),
    Policy("unchanged", "silent", {_GROWS: PASS, "KIP-144/10": PASS}),
    Policy("constant", "silent", {_GROWS: DEVIATES}, patch=reconnects(constant(RECONNECT_BASE_MS))),
    Policy("unchanged", "two-brokers", {"KIP-144/6": PASS}),
    Policy("shared by all brokers", "two-brokers", {"KIP-144/6": DEVIATES}, patch=with_states(SharedByAll)),
    Policy("unchanged", "base-alone", {"KIP-144/7": PASS}),
    Policy("grows anyway", "base-alone", {"KIP-144/7": DEVIATES}, patch=reconnects(exponential(200))),
    Policy("unchanged", "base-above-max", {"KIP-144/8": PASS}),
    Policy("waits the base", "base-above-max", {"KIP-144/8": DEVIATES}, patch=reconnects(constant(500))),
]

PRODUCING = [
    Policy("unchanged", "errors", _RIGHT_PRODUCE),
    Policy(
        "constant",
        "errors",
        dict.fromkeys(("KIP-580/1", "KIP-580/2", "KIP-580/16", "KIP-580/17"), DEVIATES),
        patch=retries(constant(RETRY_BASE_MS)),
    ),
    Policy(
        "constant, and older than the KIP",
        "errors",
        {"KIP-580/18": PASS, "KIP-580/1": DEVIATES},
        patch=retries(constant(RETRY_BASE_MS)),
        before=frozenset(("KIP-580",)),
    ),
    Policy("linear", "errors", {"KIP-580/1": DEVIATES}, patch=retries(linear(RETRY_BASE_MS))),
    Policy(
        "no jitter",
        "errors",
        {**_RIGHT_PRODUCE, "KIP-580/16": DEVIATES},
        patch=retries(exponential(RETRY_BASE_MS, jitter=0)),
    ),
    Policy("multiplier 3", "errors", {"KIP-580/1": DEVIATES}, patch=retries(exponential(RETRY_BASE_MS, multiplier=3))),
    Policy(
        "base too small",
        "errors",
        {"KIP-580/1": DEVIATES, "KIP-580/16": PASS},
        patch=retries(exponential(RETRY_BASE_MS / 2)),
    ),
    Policy("base too large", "errors", {"KIP-580/1": DEVIATES}, patch=retries(exponential(RETRY_BASE_MS * 3))),
    Policy(
        "jitter after the maximum",
        "errors",
        {"KIP-580/2": DEVIATES},
        patch=retries(exponential(RETRY_BASE_MS, capped_first=True)),
    ),
    Policy("no wait", "errors", {"KIP-580/1": DEVIATES, "KIP-580/17": DEVIATES}, STORM, patch=retries(constant(20))),
    Policy("unchanged", "then-success", {"KIP-580/6": PASS}),
    Policy("never reset", "then-success", {"KIP-580/6": DEVIATES}, patch=never_reset),
    Policy("unchanged", "two-partitions", {"KIP-580/5": PASS}),
    Policy("counted per connection", "two-partitions", {"KIP-580/5": DEVIATES}, patch=per_connection),
    Policy("unchanged", "new-leader", {"KIP-580/7": PASS}),
    Policy("waits anyway", "new-leader", {"KIP-580/7": DEVIATES}, patch=waits_for_new_leader_too),
    Policy("unchanged", "equal", {"KIP-580/4": PASS}),
    Policy("grows anyway", "equal", {"KIP-580/4": DEVIATES}, patch=retries(exponential(200, 2000))),
    Policy("unchanged", "above", {"KIP-580/3": PASS}),
    Policy("waits the base", "above", {"KIP-580/3": DEVIATES}, patch=retries(constant(500))),
    Policy("unchanged", "unknown-topic", {"KIP-580/8": PASS}),
    Policy("constant", "unknown-topic", {"KIP-580/8": DEVIATES}, patch=retries(constant(RETRY_BASE_MS))),
    Policy(
        "no wait",
        "unknown-topic",
        {"KIP-580/8": DEVIATES},
        STORM,
        patch=retries(constant(20)),
        hidden=frozenset({"KIP-580/8"}),
    ),
    Policy("at once", "unknown-topic", {"KIP-580/8": DEVIATES}, STORM, patch=retries(constant(1))),
    Policy("unchanged", "throttled", {"KIP-13/20": PASS}),
    Policy("ignores the throttle time", "throttled", {"KIP-13/20": DEVIATES}, patch=with_states(IgnoresThrottle)),
]

_IN_TIME = dict.fromkeys(("KIP-91/1", "KIP-91/2", "KIP-91/4", "KIP-91/5", "KIP-91/8"), PASS)
DELIVERING = [
    Policy("unchanged", "mute", _IN_TIME),
    Policy("gives up late", "mute", {"KIP-91/1": DEVIATES, "KIP-91/2": DEVIATES}, config={"delivery.timeout.ms": 9000}),
    Policy("gives up early", "mute", {"KIP-91/2": DEVIATES}, config={"delivery.timeout.ms": 3000}),
    Policy("retries too soon", "mute", {"KIP-91/4": DEVIATES}, config={"request.timeout.ms": 1000}),
    Policy("closes the connection of an expired batch", "mute", {"KIP-91/5": DEVIATES}, patch=closes_what_expires),
    Policy("gives up after three attempts", "errors", {"KIP-91/14": DEVIATES}, config={"retries": 2}),
    Policy("unchanged", "retries", {"KIP-91/12": PASS}),
    Policy("one more retry", "retries", {"KIP-91/12": DEVIATES}, config={"retries": 4}),
    Policy("one retry fewer", "retries", {"KIP-91/12": DEVIATES}, config={"retries": 2}),
    Policy("unchanged", "not-retriable", {"KIP-91/15": PASS}),
    Policy("retries anything", "not-retriable", {"KIP-91/15": DEVIATES}, patch=retries_anything),
    Policy("unchanged", "in-flight", {"KIP-91/7": PASS}),
    Policy("two in flight", "in-flight", {"KIP-91/7": DEVIATES}, config={"max.in.flight.requests.per.connection": 2}),
    Policy("unchanged", "config", {"KIP-91/9": PASS}),
    Policy("accepts any configuration", "config", {"KIP-91/9": DEVIATES}, config={"delivery.timeout.ms": 20_000}),
    Policy("unchanged", "outage", {"KIP-91/13": PASS}),
    Policy("gives up early", "outage", {"KIP-91/13": DEVIATES}, config={"delivery.timeout.ms": 3000}),
    Policy("unchanged", "long-throttle", {"KIP-91/16": PASS}),
    Policy("stops the clock", "long-throttle", {"KIP-91/16": DEVIATES}, config={"delivery.timeout.ms": 60_000}),
    Policy("unchanged", "late-answer", {"KIP-91/6": PASS}),
    Policy("closes the connection", "late-answer", {"KIP-91/6": DEVIATES}, patch=closes_after_late_answers),
]

POLICIES = [*RECONNECTING, *PRODUCING, *DELIVERING]

# With defaults for unset settings: the client rebootstraps, and retries delay its connections.
_DEFAULTS: Settings = {
    "metadata.recovery.strategy": "rebootstrap",
    "retry.backoff.ms": RETRY_BASE_MS,
    "retry.backoff.max.ms": MAX_MS,
}
DEFAULT_PROFILE = [
    *(
        Policy("by default", stage, {}, settings=_DEFAULTS)
        for stage in ("closed", "after-versions", "lost", "silent", "two-brokers", "base-alone", "base-above-max")
    ),
    *(
        Policy("by default", stage, {}, settings={"metadata.recovery.strategy": "rebootstrap"})
        for stage in sorted({policy.stage for policy in (*PRODUCING, *DELIVERING)})
    ),
]
