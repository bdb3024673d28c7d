"""Request data for the journal: small values without references to record bytes."""

from msgspec import Struct

NOT_YET = 0.0
# Monotonic ms of one read: arrival of its requests, start of the first, sending of responses (or NOT_YET).
ReadTimes = list[float]

# Of the header of a batch: magic, attributes, first and highest timestamp, the producer's id, epoch and base sequence,
# number of records.
BatchStart = tuple[int, int, int, int, int, int, int, int]
# A batch: its start, if it is complete, the size of all batches, and hashes of the records, if enabled.
Batch = tuple[BatchStart | None, int, tuple[str, ...]]
# Topic (name or id), partition, offset in the request (or -1), and in Produce a batch.
NamedPartition = tuple[str | bytes, int, int, Batch | None]
# Values of fields of the request, in the order of their names (journal/sent.py).
Sent = tuple[object, ...]
# The named partitions, the number of further ones, group id, transactional id, fields.
AnySubject = tuple[tuple[NamedPartition, ...], int, str, str, Sent]
# For a Produce request with one partition: topic, partition, start of the batch, its size, transactional id, fields.
BatchSubject = tuple[str | bytes, int, BatchStart | None, int, str | None, int, int]
RequestSubject = AnySubject | BatchSubject
# An encoded response without records: all of it, or pieces and the sizes of those that are left out.
Returned = bytes | tuple[bytes | int, ...]


class ClientIdentity(Struct, frozen=True):
    """The client, until one of these values changes."""

    broker: int
    connection: int
    listener: str
    peer: str
    client_id: str
    client_software: tuple[str, str]
    user: str


class RequestAnnotations(Struct, eq=False, gc=False):
    """Rare properties of a request: a wait (with arrival and start), a throttle time, a fault, errors."""

    received_ms: float = NOT_YET
    begun_ms: float = NOT_YET
    error_codes: tuple[int, ...] = ()
    throttle_ms: int = 0
    rule_id: str = ""


class RequestTrace(Struct, eq=False):
    """What the journal records of the request in flight; nothing without a subject."""

    subject: RequestSubject | None = None
    annotations: RequestAnnotations | None = None
