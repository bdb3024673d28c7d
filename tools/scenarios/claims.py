"""Checks of the claims of the catalogue's scenarios, by the clients' results and the journal.

For every scenario, each step must be possible, each rule must hit, every partition must accept records afterwards, and
no acknowledged record may be lost unless the scenario says so.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport
from sluice.journal_events import AnyEvent, BrokerState, ConnectionClosed, GroupState, LeaderChange, Request, Throttle
from sluice.protocol.errors import ErrorCode
from tools.scenarios.workload import CONSUMER, PARTITIONS, PRODUCER, Observed


@dataclass
class Seen:
    """One run of a scenario with clients."""

    scenario: Scenario
    report: RunReport
    observed: Observed
    ended: float  # end of the scenario, monotonic
    journal: list[AnyEvent]

    def hits(self, rule_id: str) -> int:
        return sum(rule.hits for rule in self.report.rules if rule.id == rule_id)

    def requests(self, api: str, client_id: str, *, error: ErrorCode | None = None, broker: int | None = None) -> int:
        """Count these requests in the journal."""
        return sum(
            isinstance(one, Request)
            and one.api == api
            and one.client_id == client_id
            and (error is None or error in one.error_codes)
            and (broker is None or one.broker == broker)
            for one in self.journal
        )

    def leaders(self, topic: str, partition: int) -> list[int]:
        """Return the elected leaders of a partition, in order; -1 is none."""
        changes = [one for one in self.journal if isinstance(one, LeaderChange)]
        return [one.broker for one in changes if (one.topic, one.partition) == (topic, partition)]

    def lost_records(self) -> int:
        """Return the records lost by elections, according to the journal."""
        return sum(one.lost_records for one in self.journal if isinstance(one, LeaderChange))


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


def _rolling_restart(seen: Seen) -> Iterator[str]:
    stopped = [one.broker for one in seen.journal if isinstance(one, BrokerState) and one.state == "stopped"]
    if stopped != [1, 2, 3]:
        yield f"brokers stopped: {stopped}"
    for partition in range(PARTITIONS):
        yield from _at_least(f"leaders of orders-{partition}", len(seen.leaders("orders", partition)), 1)


def _leader_ping_pong(seen: Seen) -> Iterator[str]:
    leaders = seen.leaders("orders", 0)
    if leaders != [2, 1, 2, 1, 2]:
        yield f"leaders of orders-0 were {leaders}"
    rejected = seen.requests("Produce", PRODUCER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    yield from _at_least("Produce responses with NOT_LEADER_OR_FOLLOWER", rejected, 1)


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


def _slow_broker(seen: Seen) -> Iterator[str]:
    slowest = seen.observed.slowest_s
    yield from _at_least("slowest record of broker 2 [s]", slowest[1], 0.2)
    yield from _at_least("hits", seen.hits("slow"), 10)
    if any(one.broker != 2 for one in seen.journal if isinstance(one, Request) and one.rule_id):
        yield "another broker was also slow"


def _flapping_listener(seen: Seen) -> Iterator[str]:
    closed = [
        one for one in seen.journal if isinstance(one, ConnectionClosed) and not one.by_client and one.broker == 1
    ]
    yield from _at_least("connections that broker 1 closed", len(closed), 4)


def _produce_black_hole(seen: Seen) -> Iterator[str]:
    yield from _at_least("slowest record of broker 1 [s]", seen.observed.slowest_s[0], 1.5)
    if any(n % PARTITIONS != 0 for n in seen.observed.failed):
        yield "records of other brokers failed"


def _stale_leader(seen: Seen) -> Iterator[str]:
    rejected = seen.requests("Produce", PRODUCER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    yield from _at_least("Produce responses with NOT_LEADER_OR_FOLLOWER", rejected, 3)
    if seen.leaders("orders", 0):
        yield "the leader did move"


def _isolated_leader(seen: Seen) -> Iterator[str]:
    yield from _at_least("records lost", len(seen.observed.lost), 1)


def _unclean_election(seen: Seen) -> Iterator[str]:
    yield from _at_least("records lost", len(seen.observed.lost), 1)
    yield from _at_least("lost records in the journal", seen.lost_records(), 1)
    if {n % PARTITIONS for n in seen.observed.lost} != {0}:
        yield "records of other partitions than orders-0 were lost"


def _slow_election(seen: Seen) -> Iterator[str]:
    yield from _at_least("slowest record of orders-0 [s]", seen.observed.slowest_s[0], 2.5)


def _reconnect_storm(seen: Seen) -> Iterator[str]:
    yield from _at_least("connections closed on ApiVersions", seen.hits("not-let-in"), 3)
    most = 3 * 3 * 20 * 3  # brokers, seconds, at 50 ms of backoff, for the connections that a client has to each
    if seen.hits("not-let-in") > most:
        yield f"{seen.hits('not-let-in')} connections: clients do not back off"


def _expired_delivery(seen: Seen) -> Iterator[str]:
    failed = seen.observed.failed
    yield from _at_least("expired records", sum(name == "_MSG_TIMED_OUT" for name in failed.values()), 10)
    if {n % PARTITIONS for n in failed} - {0}:
        yield "records of other partitions also expired"


def _quota_squeeze(seen: Seen) -> Iterator[str]:
    throttled = [one for one in seen.journal if isinstance(one, Throttle) and one.client_id == PRODUCER]
    yield from _at_least("throttled", len(throttled), 1)


def _group_rebalance_loop(seen: Seen) -> Iterator[str]:
    states = [one.after for one in seen.journal if isinstance(one, GroupState)]
    yield from _at_least("JoinGroup", seen.requests("JoinGroup", CONSUMER), 3)
    yield from _at_least("times the group was stable", states.count("Stable"), 3)


def _lost_acknowledgements(seen: Seen) -> Iterator[str]:
    yield from _at_least("acknowledgements lost", seen.hits("hung-up"), 3)


def _torn_responses(seen: Seen) -> Iterator[str]:
    yield from _at_least("torn responses", seen.hits("torn"), 3)


def _too_few_replicas(seen: Seen) -> Iterator[str]:
    rejected = seen.requests("Produce", PRODUCER, error=ErrorCode.NOT_ENOUGH_REPLICAS)
    yield from _at_least("Produce responses with NOT_ENOUGH_REPLICAS", rejected, 1)


def _throttle_storm(seen: Seen) -> Iterator[str]:
    throttled = [one for one in seen.journal if isinstance(one, Request) and one.throttle_time_ms == 300]
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


def _duplicate_deliveries(seen: Seen) -> Iterator[str]:
    yield from _at_least("records in the log twice", seen.observed.doubled, 1)


def _garbled_answers(seen: Seen) -> Iterator[str]:
    for rule in ("garbage", "mixed-up"):
        yield from _at_least(f"answers {rule}", seen.hits(rule), 1)
    left = [one for one in seen.journal if isinstance(one, ConnectionClosed) and one.client_id == CONSUMER]
    yield from _at_least("connections closed by the consumer", sum(one.by_client for one in left), 1)


def _disk_full(seen: Seen) -> Iterator[str]:
    rejected = seen.requests("Produce", PRODUCER, error=ErrorCode.KAFKA_STORAGE_ERROR)
    yield from _at_least("Produce responses with KAFKA_STORAGE_ERROR", rejected, 1)
    yield from _at_least("slowest record of orders-0 [s]", seen.observed.slowest_s[0], 2.5)


def _slow_disk(seen: Seen) -> Iterator[str]:
    yield from _at_least("hits", seen.hits("slow-disk"), 10)
    yield from _at_least("slowest record of broker 2 [s]", seen.observed.slowest_s[1], 0.05)


def _silent_accept(seen: Seen) -> Iterator[str]:
    yield from _at_least("silent connections", seen.hits("silence"), 1)
    yield from _at_least("slowest record of broker 1 [s]", seen.observed.slowest_s[0], 1.5)


def _stale_metadata(seen: Seen) -> Iterator[str]:
    rejected = seen.requests("Produce", PRODUCER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    yield from _at_least("Produce responses with NOT_LEADER_OR_FOLLOWER", rejected, 2)
    yield from _at_least("slowest record of orders-0 [s]", seen.observed.slowest_s[0], 2)


def _empty_metadata(seen: Seen) -> Iterator[str]:
    yield from _at_least("empty Metadata responses", seen.hits("empty"), 2)


_AT_LEAST_ONCE = {"enable.idempotence": False}
_ACKS_1 = {"enable.idempotence": False, "acks": 1}

CLAIMS = {
    "coordinator-loss": Claim(_coordinator_loss),
    "disk-full": Claim(_disk_full),
    "duplicate-deliveries": Claim(_duplicate_deliveries, _AT_LEAST_ONCE),
    "empty-metadata": Claim(_empty_metadata),
    "expired-delivery": Claim(_expired_delivery, {**_AT_LEAST_ONCE, "message.timeout.ms": 2000}, fails=True),
    "flapping-listener": Claim(_flapping_listener),
    "garbled-answers": Claim(_garbled_answers),
    "group-rebalance-loop": Claim(_group_rebalance_loop),
    "isolated-leader": Claim(_isolated_leader, _ACKS_1),
    "leader-ping-pong": Claim(_leader_ping_pong),
    "lost-acknowledgements": Claim(_lost_acknowledgements),
    "metadata-storm": Claim(_metadata_storm),
    "poisoned-partition": Claim(_poisoned_partition),
    "produce-black-hole": Claim(_produce_black_hole),
    "quota-squeeze": Claim(_quota_squeeze),
    "reconnect-storm": Claim(_reconnect_storm),
    "rolling-restart": Claim(_rolling_restart),
    "silent-accept": Claim(_silent_accept),
    "slow-broker": Claim(_slow_broker),
    "slow-disk": Claim(_slow_disk),
    "slow-election": Claim(_slow_election),
    "stale-leader": Claim(_stale_leader),
    "throttle-storm": Claim(_throttle_storm),
    "stale-metadata": Claim(_stale_metadata),
    "too-few-replicas": Claim(_too_few_replicas),
    "torn-responses": Claim(_torn_responses),
    "unclean-election": Claim(_unclean_election, _ACKS_1),
}
