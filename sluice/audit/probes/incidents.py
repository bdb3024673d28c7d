"""Building blocks of probes.

An incident is a failure with all its retries. A schedule has one incident that reaches the maximum backoff, and short
ones that show many first waits.
"""

from collections.abc import Sequence

from msgspec import UNSET

from sluice.broker.faults.actions import AnyAction
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule
from sluice.broker.scenarios.model import CreateTopic, Property, Scenario, Step

from .probe import TOPIC, Setting

# No initial rebalance delay, and session timeouts as short as a probe needs.
_CONFIG: dict[str, Property] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "sluice.election.delay.ms": 300,
    "sluice.journal.events": 65536,
    "sluice.journal.record.hashes": "true",
}
AFTER_API_VERSIONS = [
    *("Metadata", "Produce", "Fetch", "ListOffsets", "FindCoordinator", "InitProducerId", "JoinGroup", "SyncGroup"),
    *("Heartbeat", "OffsetFetch", "OffsetCommit", "DescribeGroups", "GetTelemetrySubscriptions"),
]

# Six failures reach the maximum of a backoff from 100 to 800 ms; five more incidents show first waits.
RAMP = ", ".join(("6 fail, 1 pass", *["1 fail, 1 pass"] * 5, "repeat"))
# For failures that take longer.
SHORT_RAMP = "4 fail, 1 pass, 1 fail, 1 pass, 1 fail, 1 pass, repeat"
# For operations of two requests, and for requests that are rare.
FIVE_OF_SEVEN = "5 fail, 2 pass, repeat"
FIVE_OF_SIX = "5 fail, 1 pass, repeat"
NOW_AND_THEN = "1 fail, 4 pass, repeat"

# Shorter than the defaults, so that the maximum is reached in 1.5 s.
RETRY: dict[str, Setting] = {"retry.backoff.ms": 100, "retry.backoff.max.ms": 800}
RECONNECT: dict[str, Setting] = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 800}
COMMON: dict[str, Setting] = {
    **RETRY,
    **RECONNECT,
    "request.timeout.ms": 5000,
    "metadata.recovery.strategy": "none",  # a return to bootstrap adds a connection without a backoff
}
PRODUCER: dict[str, Setting] = {  # idempotent, so that the observer recognizes retried batches
    **COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "delivery.timeout.ms": 60_000,
    "max.block.ms": 10_000,
}
# A client reconnects to send a request: that request's backoff must be shorter than the measured one.
RECONNECTING: dict[str, Setting] = {**PRODUCER, "retry.backoff.ms": 50, "retry.backoff.max.ms": 50}
# Other requests on the connection wait behind a fetch, so fetches are short.
CONSUMER: dict[str, Setting] = {
    **COMMON,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 20,
}
MEMBER: dict[str, Setting] = {**CONSUMER, "heartbeat.interval.ms": 300, "session.timeout.ms": 10_000}
ADMIN: dict[str, Setting] = COMMON


def cluster(
    seconds: float, *steps: Step, brokers: int = 1, partitions: Sequence[Sequence[int]] = ((1,),), **config: Property
) -> Scenario:
    """Return a cluster with the topic; `partitions` are its replicas; in names of `config`, _ means a dot."""
    return Scenario(
        name="probe",
        brokers=brokers,
        config={**_CONFIG, **{key.replace("_", "."): value for key, value in config.items()}},
        topics=(CreateTopic(name=TOPIC, assignments=tuple(map(tuple, partitions))),),
        duration=f"{seconds}s",
        steps=steps,
    )


def broken(from_s: float, for_s: float, rule: Rule, *meanwhile: Rule) -> Step:
    return Step(at=f"{from_s}s", fault=rule, during=f"{for_s}s", meanwhile=meanwhile)


def down(node_id: int, from_s: float, for_s: float) -> Step:
    return Step(at=f"{from_s}s", kill=node_id, during=f"{for_s}s" if for_s else UNSET)


def error(code: str, api: str, schedule: str | None = None, partition: int | None = None) -> Rule:
    return Rule(action=Error(code), api=api, schedule=schedule, partition=partition)


def closing(api: str | list[str], schedule: str | None = None, *, broker: int | None = None) -> Rule:
    return Rule(action=Close(), api=api, schedule=schedule, broker=broker)


def rule(action: AnyAction, api: str | list[str] | None = None, schedule: str | None = None) -> Rule:
    return Rule(action=action, api=api, schedule=schedule)
