"""What was seen of one client in one run of a probe: all that a judge may look at."""

from enum import StrEnum

import msgspec

from sluice.journal_events import AnyEvent


class Role(StrEnum):
    """What a client is used as."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class SubjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is looked at.

    name: as it is called in reports, such as aiokafka
    version: of the library; "" where nobody can tell
    role: what it is used as in this run
    settings: its intended configuration by Kafka's names, all that a judge goes by, such as retry.backoff.ms; a name
        that is missing is not known, and what depends on it is not judged
    kips: those that the subject's own documentation says it implements in this version, such as KIP-580
    before: KIPs that are younger than this version of it, or that it says it does not implement
    otherwise: statements, such as KIP-144/9, in whose place its documentation says in so many words what else it does
    lacks: settings that it does not have, by Kafka's names; what is about setting them cannot be seen of it
    """

    name: str
    version: str = ""
    role: Role
    settings: dict[str, float | str | bool] = {}
    kips: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    otherwise: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()


class Callback(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver tells of its client while it happens.

    at_ns: nanoseconds since the epoch
    event: what happened
    record: number of the record that it is about, from 0 on in the order of sending; -1: none
    partition: of the record; -1: not known
    offset: where the record was written or read; -1: not known
    error: as the client names it; "" where there is none
    text: the client's own words
    """

    at_ns: int
    event: str  # one of EVENTS
    record: int = -1
    partition: int = -1
    offset: int = -1
    error: str = ""
    text: str = ""


# started: the client is made. ready: it works. sent: a record was handed to it. delivered, failed: what came of that.
# received: a record was read. call-failed: a call other than sending raised. warning: a line of the client's log.
# closed: it is closed. rejected: its configuration was refused before anything was connected.
EVENTS = (
    "started",
    "ready",
    "sent",
    "delivered",
    "failed",
    "received",
    "call-failed",
    "warning",
    "closed",
    "rejected",
)


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one probe with one subject.

    probe: its name
    subject: who was looked at
    repetition: number of the run, from 0 on
    seed: of broker and faults
    events: the journal from before the subject began until after it ended, ordered by seq
    callbacks: what its driver told, ordered by time; none of a subject that is only watched
    fault_from_ns: when the fault came into force; null: there was none
    fault_until_ns: when it ended; null: it was in force to the end
    began_ns: when the run began
    ended_ns: when looking ended
    lag_ms: how late the broker's own timers were at worst (p99); a verdict that needs less is refused
    virtual: whether it was in virtual time, in which nothing is late
    problem: why the run is none, such as that the subject did not start; "" where it is one
    """

    probe: str
    subject: SubjectInfo
    repetition: int = 0
    seed: int = 0
    events: list[AnyEvent] = []
    callbacks: list[Callback] = []
    fault_from_ns: int | None = None
    fault_until_ns: int | None = None
    began_ns: int = 0
    ended_ns: int = 0
    lag_ms: float = 0.0
    virtual: bool = False
    problem: str = ""
