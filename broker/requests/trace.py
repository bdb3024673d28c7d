"""What the journal keeps of a request: small values, which refer to no record bytes."""

from typing import NamedTuple

NOT_YET = 0.0
# When the requests of one read came, when the first was begun and, NOT_YET, when their responses left: monotonic ms.
ReadTimes = list[float]

# Topic, by name or id, partition, and the producer's id, epoch and base sequence.
NamedPartition = tuple[str | bytes, int, int, int, int]
# The named partitions, how many more there are, group id, transactional id.
AnySubject = tuple[tuple[NamedPartition, ...], int, str, str]
# The same for a Produce request with one partition, as it is at hand: the topic's name or id, the partition, the start
# of its batch header, transactional id.
BatchStart = tuple[int, int, int, int]  # magic, and the producer's id, epoch and base sequence
BatchSubject = tuple[str | bytes, int, BatchStart | None, str | None]
# What a request is about.
RequestSubject = AnySubject | BatchSubject


class ClientIdentity(NamedTuple):
    """The client of a connection, from some moment on."""

    broker: int
    connection: int
    listener: str
    peer: str
    client_id: str
    client_software: tuple[str, str]
    user: str


class RequestAnnotations:
    """What few requests have: a wait (then when they came and were begun), a throttle time, a fault, errors."""

    __slots__ = ("begun_ms", "error_codes", "received_ms", "rule_id", "throttle_ms")

    def __init__(self) -> None:
        self.received_ms = self.begun_ms = NOT_YET
        self.error_codes: tuple[int, ...] = ()
        self.throttle_ms = 0
        self.rule_id = ""
