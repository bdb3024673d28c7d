"""What probes are made of: a cluster, faults for a while, and schedules by which a fault comes and goes.

An incident is a fault with all of its retries. A schedule makes many of them in one run: one that lasts until waits are
as long as they get, and short ones, which show many first waits in little time.
"""

from collections.abc import Sequence

from msgspec import UNSET

from sluice.broker.faults.actions import AnyAction
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule
from sluice.broker.scenarios.model import CreateTopic, Property, Scenario, Step

from .probe import TOPIC, Setting

# Of each cluster. Groups do not wait for members that do not come; sessions are as short as a probe wants.
_CONFIG: dict[str, Property] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "sluice.election.delay.ms": 300,
    "sluice.journal.events": 65536,
}
# All that a client may ask for once it knows the versions.
AFTER_API_VERSIONS = [
    "Metadata",
    "Produce",
    "Fetch",
    "ListOffsets",
    "FindCoordinator",
    "InitProducerId",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "OffsetFetch",
    "OffsetCommit",
    "DescribeGroups",
    "GetTelemetrySubscriptions",
]

# Six failures reach the longest wait of those that double from 100 to 800 ms; five more incidents show first waits.
RAMP = ", ".join(("6 fail, 1 pass", *["1 fail, 1 pass"] * 5, "repeat"))
# Where each failure takes longer.
SHORT_RAMP = "4 fail, 1 pass, 1 fail, 1 pass, 1 fail, 1 pass, repeat"
# Where one success needs two answers, and where a request only comes once in a while.
FIVE_OF_SEVEN = "5 fail, 2 pass, repeat"
FIVE_OF_SIX = "5 fail, 1 pass, repeat"
NOW_AND_THEN = "1 fail, 4 pass, repeat"

# Waits that are shorter than by default, of which the longest is reached in 1.5 s, and that are far enough apart.
RETRY: dict[str, Setting] = {"retry.backoff.ms": 100, "retry.backoff.max.ms": 800}
RECONNECT: dict[str, Setting] = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 800}
# Of all clients. Idempotent, so that a batch is known again; one that has to give up does it in time.
COMMON: dict[str, Setting] = {
    **RETRY,
    **RECONNECT,
    "request.timeout.ms": 5000,
    "metadata.recovery.strategy": "none",  # going back to bootstrap makes one more connection, without a wait
}
PRODUCER: dict[str, Setting] = {
    **COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "delivery.timeout.ms": 60_000,
    "max.block.ms": 10_000,
}
# Who connects has something to send: what holds that up is not to be longer than what is looked at.
RECONNECTING: dict[str, Setting] = {**PRODUCER, "retry.backoff.ms": 50, "retry.backoff.max.ms": 50}
# What is asked for over the connection that also fetches waits for that: so fetches are short.
CONSUMER: dict[str, Setting] = {
    **COMMON,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 20,
}
MEMBER: dict[str, Setting] = {**CONSUMER, "heartbeat.interval.ms": 300, "session.timeout.ms": 10_000}
ADMIN: dict[str, Setting] = COMMON


def cluster(
    seconds: float,
    *steps: Step,
    brokers: int = 1,
    partitions: Sequence[Sequence[int]] = ((1,),),
    **config: Property,
) -> Scenario:
    """A cluster with the topic, of each partition the brokers that have it; `config` with _ for the dots of names."""
    return Scenario(
        name="probe",
        brokers=brokers,
        config={**_CONFIG, **{key.replace("_", "."): value for key, value in config.items()}},
        topics=(CreateTopic(name=TOPIC, assignments=tuple(map(tuple, partitions))),),
        duration=f"{seconds}s",
        steps=steps,
    )


def broken(from_s: float, for_s: float, rule: Rule, *meanwhile: Rule) -> Step:
    """Faults for a while."""
    return Step(at=f"{from_s}s", fault=rule, during=f"{for_s}s", meanwhile=meanwhile)


def down(node_id: int, from_s: float, for_s: float) -> Step:
    """A broker is killed, and starts again."""
    return Step(at=f"{from_s}s", kill=node_id, during=f"{for_s}s" if for_s else UNSET)


def error(code: str, api: str, schedule: str | None = None, partition: int | None = None) -> Rule:
    """Answers with an error code, before anything is done."""
    return Rule(action=Error(code), api=api, schedule=schedule, partition=partition)


def closing(api: str | list[str], schedule: str | None = None, *, broker: int | None = None) -> Rule:
    """Closes the connections of requests instead of answering."""
    return Rule(action=Close(), api=api, schedule=schedule, broker=broker)


def rule(action: AnyAction, api: str | list[str] | None = None, schedule: str | None = None) -> Rule:
    """Any other."""
    return Rule(action=action, api=api, schedule=schedule)
