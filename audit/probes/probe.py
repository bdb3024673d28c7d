"""What a probe is: a cluster that fails in one way, and a client that works against it meanwhile. Pure data."""

from enum import StrEnum

import msgspec

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.timeline import timeline

# The topic that ready subjects use; a command uses what it likes.
TOPIC = "audit"
GROUP = "audit"
# A poll that ends in between cuts short what its client waits within it, and counts within it: so it is longer than any
# probe.
POLL_MS = 30_000
# Records that are there before a consumer begins.
RECORDS = 20


class Begin(StrEnum):
    """When the cluster's timeline begins."""

    WORKING = "working"  # once the client works: its first record is written or read, its first call answered
    AT_ONCE = "at once"  # before the client begins: what fails then is its start


class Produce(msgspec.Struct, frozen=True, kw_only=True, tag="produce"):
    """Sends records, to each partition for itself: the next one when it is known what became of the one before.

    partitions: how many
    pending: how many records of a partition may wait for their ends at once
    pause_ms: between the end of a record and the next
    lives_ms: then the client is closed and another one made; 0: one client all along
    """

    partitions: int = 1
    pending: int = 1
    pause_ms: int = 20
    lifetime_ms: int = 0


class Consume(msgspec.Struct, frozen=True, kw_only=True, tag="consume"):
    """Reads partition 0, or what the group gives it, from the beginning on.

    in_group: as a member of a group
    commit_every_ms: commits, and waits for that; 0: never
    lives_ms: as of Produce
    """

    in_group: bool = False
    commit_every_ms: int = 0
    lifetime_ms: int = 0


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """Describes a group over and over.

    pause_ms: between the end of a call and the next
    """

    pause_ms: int = 50


Workload = Produce | Consume | Call
Setting = int | float | str | bool


_ROLES: dict[type[Workload], Role] = {Produce: Role.PRODUCER, Consume: Role.CONSUMER, Call: Role.ADMIN}


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fail, and what it is to show.

    name: of small letters, digits and hyphens
    what: in one line
    workload: what a ready subject does
    cluster: brokers, topics and what happens to them; how long it takes is how long is looked
    begins: when that begins
    settings: the client's, by Kafka's names; where they are not said, its own defaults hold
    least: how many runs there are before anything is judged
    most: how many at most, however unsure the verdict
    virtual_only: it is too long for real time
    """

    name: str
    what: str
    workload: Workload
    cluster: Scenario
    begins: Begin = Begin.WORKING
    settings: dict[str, Setting] = {}
    least: int = 2
    most: int = 5
    virtual_only: bool = False

    @property
    def role(self) -> Role:
        """What the client is used as."""
        return _ROLES[type(self.workload)]

    @property
    def statements(self) -> tuple[str, ...]:
        """Ids of those that can be seen under it; of none, it is for what else is found."""
        return tuple(statement.id for statement in STATEMENTS.values() if self.name in statement.probes)

    @property
    def duration_ms(self) -> float:
        """How long is looked, from when the cluster's timeline begins."""
        return timeline(self.cluster).duration_ms

    def fault_ms(self) -> tuple[float, float | None] | None:
        """When the first fault comes into force and the last one ends, from that beginning on; the end is null where
        the faults outlast it. None: there is no fault.
        """
        steps = [moment for moment in timeline(self.cluster).moments if moment.path.startswith("steps[")]
        if not steps:
            return None
        ends = [moment.at_ms for moment in steps if moment.is_end]
        last_ms = max(ends, default=self.duration_ms)
        return min(moment.at_ms for moment in steps), last_ms if last_ms < self.duration_ms else None
