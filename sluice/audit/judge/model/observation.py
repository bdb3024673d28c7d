"""The observation of one client in one run of a probe: the only input of the judge."""

from enum import StrEnum

import msgspec

from sluice.journal_events import AnyEvent

# The listener of the bootstrap addresses, in a probe where these are not addresses of the metadata.
BOOTSTRAP_LISTENER = "BOOTSTRAP"


class Role(StrEnum):
    """The use of a client in a run."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class SubjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A client under audit.

    name: its name in reports, such as aiokafka
    version: library version; "" if not known
    role: how this run uses the client
    settings: intended configuration by Kafka's names, such as retry.backoff.ms; a missing setting is not known, and
        statements that depend on it are not judged
    kips: KIPs that the documentation of this version claims to implement, such as KIP-580
    before: KIPs newer than this version, or not implemented according to its documentation
    otherwise: statements, such as KIP-144/9, for which its documentation explicitly describes a different behaviour
    is_command: whether it is a command without a driver: nothing but its requests is known
    lacks: settings that the client does not have, by Kafka's names; statements about them are not observable
    """

    name: str
    version: str = ""
    role: Role
    settings: dict[str, float | str | bool] = {}
    kips: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    otherwise: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    is_command: bool = False


class Callback(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a driver reports about its client.

    at_ns: nanoseconds since the epoch
    event: `started`: a client is created. `ready`: it can be used. `sent`: a record was passed to it. `delivered`,
        `failed`: outcome of the record. `received`: a record was read. `call-failed`: a call other than send raised.
        `gave-up`: a call ended with all its requests, for clients that send none outside of calls. `warning`: a line
        of the client's log. `closed`: the client was closed. `rejected`: its configuration was rejected before it
        connected
    record: number of the record, from 0 in the order of sending; -1: none
    partition: partition of the record; -1: not known
    offset: offset at which the record was written or read; -1: not known
    error: the client's name for it; "" if none
    """

    at_ns: int
    event: str
    record: int = -1
    partition: int = -1
    offset: int = -1
    error: str = ""
    text: str = ""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one probe with one subject.

    events: the journal from before the start of the subject until after its end, ordered by seq
    callbacks: events of its driver, ordered by time; empty for a subject without a driver
    fault_from_ns: null: no fault
    fault_until_ns: null: it lasted to the end
    lag_ms: lag of the broker's timers (p99); verdicts that need a smaller lag are inconclusive
    virtual: whether the run used virtual time, which has no lag
    problem: why the run is unusable, such as that the subject did not start; "" if it is usable
    is_client_failure: whether the client caused the problem: it crashed after it had worked, or working brokers
        rejected all its requests
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
    is_client_failure: bool = False
