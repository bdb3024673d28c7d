"""Checks of the claims of the catalogue's scenarios, by the clients' results and the journal.

For every scenario, each step must be possible, each rule must hit, every partition must accept records afterwards, and
no acknowledged record may be lost unless the scenario says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport
from sluice.journal_events import AnyEvent, BrokerState, ConnectionClosed, GroupState, LeaderChange, Request, Throttle
from sluice.protocol.errors import ErrorCode
from tools.scenarios.workload import CONSUMER, PARTITIONS, PRODUCER, Observed

E = TypeVar("E")


@dataclass
class Seen:
    """One run of a scenario with clients."""

    scenario: Scenario
    report: RunReport
    observed: Observed
    ended: float  # end of the scenario, monotonic
    journal: list[AnyEvent]

    def events(self, kind: type[E]) -> list[E]:
        return [one for one in self.journal if isinstance(one, kind)]

    def hits(self, rule_id: str) -> int:
        return sum(rule.hits for rule in self.report.rules if rule.id == rule_id)

    def requests(self, api: str, client_id: str, *, error: ErrorCode | None = None, broker: int | None = None) -> int:
        """Count these requests in the journal."""
        return sum(
            one.api == api
            and one.client_id == client_id
            and (error is None or error in one.error_codes)
            and (broker is None or one.broker == broker)
            for one in self.events(Request)
        )

    def leaders(self, topic: str, partition: int) -> list[int]:
        """Return the elected leaders of a partition, in order; -1 is none."""
        changes = self.events(LeaderChange)
        return [one.broker for one in changes if (one.topic, one.partition) == (topic, partition)]

    def lost_records(self) -> int:
        """Return the records lost by elections, according to the journal."""
        return sum(one.lost_records for one in self.events(LeaderChange))


Check = Callable[[Seen], Iterator[str]]


@dataclass
class Claim:
    """The checks of one scenario besides the common ones, and the producer settings for it."""

    check: Check
    producer: Mapping[str, object] = field(default_factory=dict)
    fails: bool = False  # records may fail permanently


def problems(seen: Seen, claim: Claim) -> Iterator[str]:
    """Yield every claim that a run did not meet."""
    observed = seen.observed
    for step in seen.report.problems:
        yield f"{step.step}: {step.what}: {step.problem}"
    for rule in seen.report.rules:
        if not rule.hits or rule.problem:
            yield f"rule {rule.id} hit {rule.hits} times: {rule.problem}"
    for partition in range(PARTITIONS):
        if not any(n % PARTITIONS == partition and when > seen.ended for n, when in observed.acknowledged.items()):
            yield f"no record was written to orders-{partition} after the end"
    if observed.lost and not seen.scenario.loses_records:
        yield f"{len(observed.lost)} acknowledged records are lost"
    if observed.missed - observed.lost:
        yield f"{len(observed.missed - observed.lost)} records were not read by the group"
    if observed.failed and not claim.fails:
        yield f"{len(observed.failed)} records failed: {', '.join({*observed.failed.values()})}"
    if claim.producer.get("enable.idempotence", True) and (observed.doubled or observed.out_of_order):
        # A producer that requests another producer id or epoch meanwhile loses the detection of its duplicates.
        requests = seen.requests("InitProducerId", PRODUCER)
        order = "not in order" if observed.out_of_order else "in order"
        yield f"{observed.doubled} records are in the log twice, {order}, with {requests} InitProducerId requests"
    yield from claim.check(seen)


def _at_least(what: str, count: float, least: float) -> Iterator[str]:
    if count < least:
        yield f"{what}: expected at least {least:g}, got {count:g}"


def _each(*checks: Check) -> Check:
    return lambda seen: chain.from_iterable(check(seen) for check in checks)


def _count(what: str, least: float, count: Callable[[Seen], float]) -> Check:
    return lambda seen: _at_least(what, count(seen), least)


def _hits(rule: str, least: int, what: str = "hits") -> Check:
    return _count(what, least, lambda seen: seen.hits(rule))


def _rejected(error: ErrorCode, least: int) -> Check:
    """Check that Produce requests failed with an error."""
    what = f"Produce responses with {error.name}"
    return _count(what, least, lambda seen: seen.requests("Produce", PRODUCER, error=error))


def _slowest(partition: int, least_s: float, what: str) -> Check:
    return _count(f"slowest record of {what} [s]", least_s, lambda seen: seen.observed.slowest_s[partition])


def _never(problem: str, holds: Callable[[Seen], bool]) -> Check:
    return lambda seen: iter([problem] if holds(seen) else [])


def _rolling_restart(seen: Seen) -> Iterator[str]:
    stopped = [one.broker for one in seen.events(BrokerState) if one.state == "stopped"]
    if stopped != [1, 2, 3]:
        yield f"brokers stopped: {stopped}"
    for partition in range(PARTITIONS):
        yield from _at_least(f"leaders of orders-{partition}", len(seen.leaders("orders", partition)), 1)


def _leader_ping_pong(seen: Seen) -> Iterator[str]:
    leaders = seen.leaders("orders", 0)
    if leaders != [2, 1, 2, 1, 2]:
        yield f"leaders of orders-0 were {leaders}"


def _coordinator_loss(seen: Seen) -> Iterator[str]:
    yield from _at_least("FindCoordinator", seen.requests("FindCoordinator", CONSUMER), 2)
    leaders = seen.leaders("__consumer_offsets", 0)
    if not leaders or leaders[-1] == 1:
        yield f"the coordinator moved to {leaders}"


def _metadata_storm(seen: Seen) -> Iterator[str]:
    requests = seen.requests("Metadata", PRODUCER)
    yield from _at_least("failed Metadata requests", seen.hits("no-metadata"), 3)
    if requests > 50 * seen.report.duration_ms / 1000:
        yield f"{requests} Metadata requests: the client does not back off"


def _flapping_listener(seen: Seen) -> Iterator[str]:
    closed = [one for one in seen.events(ConnectionClosed) if not one.by_client and one.broker == 1]
    yield from _at_least("connections that broker 1 closed", len(closed), 4)


def _reconnect_storm(seen: Seen) -> Iterator[str]:
    yield from _at_least("connections closed on ApiVersions", seen.hits("not-let-in"), 3)
    most = 3 * 3 * 20 * 3  # brokers, seconds, at 50 ms of backoff, for the connections that a client has to each
    if seen.hits("not-let-in") > most:
        yield f"{seen.hits('not-let-in')} connections: clients do not back off"


def _group_rebalance_loop(seen: Seen) -> Iterator[str]:
    states = [one.after for one in seen.events(GroupState)]
    yield from _at_least("JoinGroup", seen.requests("JoinGroup", CONSUMER), 3)
    yield from _at_least("times the group was stable", states.count("Stable"), 3)


def _throttle_storm(seen: Seen) -> Iterator[str]:
    throttled = [one for one in seen.events(Request) if one.throttle_time_ms == 300]
    yield from _at_least("responses with a throttle time", len(throttled), 10)
    for client_id in (PRODUCER, CONSUMER):
        yield from _at_least(
            f"responses to {client_id} with a throttle time", sum(one.client_id == client_id for one in throttled), 3
        )
    yield from _at_least("slowest record [s]", max(seen.observed.slowest_s.values()), 0.25)


def _poisoned_partition(seen: Seen) -> Iterator[str]:
    yield from _at_least("batches rejected by the consumer", seen.observed.read_errors.count("_BAD_MSG"), 1)
    behind = [partition for partition, _ in seen.observed.read]
    yield from _at_least("records of other partitions", behind.count(0), behind.count(1))


def _garbled_answers(seen: Seen) -> Iterator[str]:
    for rule in ("garbage", "mixed-up"):
        yield from _at_least(f"answers {rule}", seen.hits(rule), 1)
    left = [one for one in seen.events(ConnectionClosed) if one.client_id == CONSUMER]
    yield from _at_least("connections closed by the consumer", sum(one.by_client for one in left), 1)


_AT_LEAST_ONCE = {"enable.idempotence": False}
_ACKS_1 = {"enable.idempotence": False, "acks": 1}
_LOST = _count("records lost", 1, lambda seen: len(seen.observed.lost))


def _others(numbers: Iterable[int]) -> bool:
    """Return whether records of other partitions than orders-0 are among these."""
    return any(number % PARTITIONS for number in numbers)


CLAIMS = {
    "coordinator-loss": Claim(_coordinator_loss),
    "disk-full": Claim(_each(_rejected(ErrorCode.KAFKA_STORAGE_ERROR, 1), _slowest(0, 2.5, "orders-0"))),
    "duplicate-deliveries": Claim(
        _count("records in the log twice", 1, lambda seen: seen.observed.doubled), _AT_LEAST_ONCE
    ),
    "empty-metadata": Claim(_hits("empty", 2, "empty Metadata responses")),
    "expired-delivery": Claim(
        _each(
            _count("expired records", 10, lambda seen: list(seen.observed.failed.values()).count("_MSG_TIMED_OUT")),
            _never("records of other partitions also expired", lambda seen: _others(seen.observed.failed)),
        ),
        {**_AT_LEAST_ONCE, "message.timeout.ms": 2000},
        fails=True,
    ),
    "flapping-listener": Claim(_flapping_listener),
    "garbled-answers": Claim(_garbled_answers),
    "group-rebalance-loop": Claim(_group_rebalance_loop),
    "isolated-leader": Claim(_LOST, _ACKS_1),
    "leader-ping-pong": Claim(_each(_leader_ping_pong, _rejected(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1))),
    "lost-acknowledgements": Claim(_hits("hung-up", 3, "acknowledgements lost")),
    "metadata-storm": Claim(_metadata_storm),
    "poisoned-partition": Claim(_poisoned_partition),
    "produce-black-hole": Claim(
        _each(
            _slowest(0, 1.5, "broker 1"),
            _never("records of other brokers failed", lambda seen: _others(seen.observed.failed)),
        )
    ),
    "quota-squeeze": Claim(
        _count("throttled", 1, lambda seen: sum(one.client_id == PRODUCER for one in seen.events(Throttle)))
    ),
    "reconnect-storm": Claim(_reconnect_storm),
    "rolling-restart": Claim(_rolling_restart),
    "silent-accept": Claim(_each(_hits("silence", 1, "silent connections"), _slowest(0, 1.5, "broker 1"))),
    "slow-broker": Claim(
        _each(
            _slowest(1, 0.2, "broker 2"),
            _hits("slow", 10),
            _never(
                "another broker was also slow",
                lambda seen: any(one.broker != 2 and one.rule_id for one in seen.events(Request)),
            ),
        )
    ),
    "slow-disk": Claim(_each(_hits("slow-disk", 10), _slowest(1, 0.05, "broker 2"))),
    "slow-election": Claim(_slowest(0, 2.5, "orders-0")),
    "stale-leader": Claim(
        _each(
            _rejected(ErrorCode.NOT_LEADER_OR_FOLLOWER, 3),
            _never("the leader did move", lambda seen: bool(seen.leaders("orders", 0))),
        )
    ),
    "throttle-storm": Claim(_throttle_storm),
    "stale-metadata": Claim(_each(_rejected(ErrorCode.NOT_LEADER_OR_FOLLOWER, 2), _slowest(0, 2, "orders-0"))),
    "too-few-replicas": Claim(_rejected(ErrorCode.NOT_ENOUGH_REPLICAS, 1)),
    "torn-responses": Claim(_hits("torn", 3, "torn responses")),
    "unclean-election": Claim(
        _each(
            _LOST,
            _count("lost records in the journal", 1, Seen.lost_records),
            _never(
                "records of other partitions than orders-0 were lost",
                lambda seen: _others(seen.observed.lost) or not seen.observed.lost,
            ),
        ),
        _ACKS_1,
    ),
}
