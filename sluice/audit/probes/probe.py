"""The definition of a probe: a cluster with one fault, and a client's workload. Pure data."""

from enum import StrEnum

import msgspec

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.timeline import timeline

# The topic of ready subjects, and {topic} of commands.
TOPIC = "audit"
GROUP = "audit"
# An address in a cluster's config whose port is replaced by a free one.
FREE_ADDRESS = "127.0.0.1:1"
# Longer than any probe, because the end of a poll interrupts waits and counts of retries.
POLL_MS = 30_000
RECORDS = 20


class Begin(StrEnum):
    """The start of the cluster's timeline."""

    WORKING = "working"  # after the client's first success: a record written or read, or a call
    AT_ONCE = "at once"  # before the client starts, so that its start fails


class Produce(msgspec.Struct, frozen=True, kw_only=True, tag="produce"):
    """Sends records to each partition independently, the next one after the outcome of the last.

    pending: records of a partition in flight at once
    pause_ms: from the outcome of a record to the next
    lifetime_ms: after which the client is replaced by a new one; 0: never
    """

    partitions: int = 1
    pending: int = 1
    pause_ms: int = 20
    lifetime_ms: int = 0


class Consume(msgspec.Struct, frozen=True, kw_only=True, tag="consume"):
    """Reads partition 0, or its assignment in a group, from the beginning.

    commit_every_ms: interval of synchronous commits; 0: never
    """

    in_group: bool = False
    commit_every_ms: int = 0
    lifetime_ms: int = 0


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """Describes a group repeatedly.

    pause_ms: from the end of a call to the next
    """

    pause_ms: int = 50


Workload = Produce | Consume | Call
Setting = int | float | str | bool

_ROLES: dict[type[Workload], Role] = {Produce: Role.PRODUCER, Consume: Role.CONSUMER, Call: Role.ADMIN}


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One fault with a workload.

    name: lower-case letters, digits and hyphens
    cluster: brokers, topics and faults; its duration is that of the observation
    settings: client settings by Kafka's names; others keep the client's defaults
    least: runs before the first verdict
    most: limit of runs, even if verdicts are inconclusive
    virtual_only: too long for real time
    needs_settings: shows nothing of a client without `settings`, so commands are not probed
    """

    name: str
    what: str
    workload: Workload = Produce()
    cluster: Scenario
    begins: Begin = Begin.WORKING
    settings: dict[str, Setting] = {}
    least: int = 2
    most: int = 5
    virtual_only: bool = False
    needs_settings: bool = False

    @property
    def role(self) -> Role:
        return _ROLES[type(self.workload)]

    @property
    def statements(self) -> tuple[str, ...]:
        """Ids of the statements that it makes observable; without any, it serves findings only."""
        return tuple(statement.id for statement in STATEMENTS.values() if self.name in statement.probes)

    @property
    def duration_ms(self) -> float:
        """Duration of the observation, from the start of the timeline."""
        return timeline(self.cluster).duration_ms

    def fault_ms(self) -> tuple[float, float | None] | None:
        """Return the start of the first fault and the end of the last (None: not in the probe); None without faults."""
        steps = [moment for moment in timeline(self.cluster).moments if moment.path.startswith("steps[")]
        if not steps:
            return None
        ends = [moment.at_ms for moment in steps if moment.is_end]
        last_ms = max(ends, default=self.duration_ms)
        return min(moment.at_ms for moment in steps), last_ms if last_ms < self.duration_ms else None
