"""Request data for the journal: small values without references to record bytes."""

from msgspec import Struct

NOT_YET = 0.0
# Monotonic ms of one read: arrival of its requests, start of the first, sending of responses (or NOT_YET).
ReadTimes = list[float]

# Topic (name or id), partition, the producer's id, epoch and base sequence, and hashes of the records, if enabled.
NamedPartition = tuple[str | bytes, int, int, int, int] | tuple[str | bytes, int, int, int, int, tuple[str, ...]]
# The named partitions, the number of further ones, group id, transactional id.
AnySubject = tuple[tuple[NamedPartition, ...], int, str, str]
# For a Produce request with one partition: topic, partition, start of its batch header, transactional id.
BatchStart = tuple[int, int, int, int]  # magic, and the producer's id, epoch and base sequence
BatchSubject = tuple[str | bytes, int, BatchStart | None, str | None]
RequestSubject = AnySubject | BatchSubject


class ClientIdentity(Struct, frozen=True):
    """The client, until one of these values changes."""

    broker: int
    connection: int
    listener: str
    peer: str
    client_id: str
    client_software: tuple[str, str]
    user: str


class RequestAnnotations:
    """Rare properties of a request: a wait (with arrival and start), a throttle time, a fault, errors."""

    __slots__ = ("begun_ms", "error_codes", "received_ms", "rule_id", "throttle_ms")

    def __init__(self) -> None:
        self.received_ms = self.begun_ms = NOT_YET
        self.error_codes: tuple[int, ...] = ()
        self.throttle_ms = 0
        self.rule_id = ""


class RequestTrace:
    """What the journal records of the request in flight; nothing without a subject."""

    __slots__ = ("annotations", "subject")

    def __init__(self) -> None:
        self.subject: RequestSubject | None = None
        self.annotations: RequestAnnotations | None = None
