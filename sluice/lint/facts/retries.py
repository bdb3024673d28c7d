"""Failed requests and their retries (KIP-580), and requests for which a retry makes no sense.

A retry is recognized by its identity: a batch by producer id and sequence, or by its timestamps, number of records and
size; another request by its API and its topics, group or transactional id. As in the audit
(`sluice.audit.judge.observer`), waits follow responses with an error, because after the loss of a connection the client
first has to connect.
"""

from typing import NamedTuple, TypeVar

from sluice.audit.judge.findings import STORM, STORM_MS
from sluice.journal_events import NO_ID, ConnectionClosed, Request, TopicPartition
from sluice.protocol.errors import ErrorCode

from .domain import EVERY_REQUEST, Domain, Handlers
from .measures.bursts import Burst
from .measures.examples import Examples
from .measures.waits import Row, Rows

_MOST_OPEN, _MOST_SUBJECTS, _MOST_CONNECTIONS = 1024, 64, 1024
_NS_PER_US, _NS_PER_MS = 1000, 1_000_000
# The APIs whose retries the audit expects to have growing waits (kip580.py). A consumer repeats automatic commits and
# fetches anyway, and static waits are right for JoinGroup, SyncGroup, ListOffsets and InitProducerId.
GROWING = ("Produce", "Metadata", "FindCoordinator")
_UNKNOWN = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID))
_NOT_AUTHORIZED = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
)
# Errors because of which the same request will never succeed.
_NEVER = frozenset(
    (
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_RECORD,
    )
)
# The APIs that use topics, other than administration, which may look whether a topic exists.
_USES_TOPICS = frozenset(("Metadata", "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"))
# A broker that delays a response detects only then that the client has left (observer/outcomes.py).
_HELD_NS, _AT_ONCE_NS = 50 * _NS_PER_MS, 20 * _NS_PER_MS
# Five times Kafka's longest default wait before a retry (retry.backoff.max.ms). A producer that sends other batches for
# this long has given one up.
_GIVEN_UP_NS = 5_000_000_000

Identity = tuple[object, ...]


class Refusals:
    """Requests for one subject that are refused each time.

    count: their number
    first_ns, last_ns: times of the first and the last one
    """

    __slots__ = ("count", "examples", "first_ns", "last_ns")

    def __init__(self) -> None:
        self.count = self.first_ns = self.last_ns = 0
        self.examples = Examples()

    def add(self, event: Request) -> None:
        self.count += 1
        self.first_ns = self.first_ns or event.at_ns
        self.last_ns = event.at_ns
        self.examples.note(event)

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9


class Abandoned(NamedTuple):
    """A Produce request whose connection the client closed before the response.

    waited_ms: how long it waited at most
    timeout_ms: how long the broker was to wait for acknowledgments
    """

    waited_ms: int
    timeout_ms: int
    request: Request


class _Open:
    """A failed operation that has not succeeded since.

    ended_ns: when the client could know of the failure
    row: the waits before its retries; null if the next one also has to connect
    is_overtaken: whether later records were appended to the partition of this batch
    """

    __slots__ = ("attempts", "ended_ns", "is_overtaken", "request", "row")

    def __init__(self, request: Request, ended_ns: int, row: Row | None) -> None:
        self.request, self.ended_ns, self.row = request, ended_ns, row
        self.attempts = 1
        self.is_overtaken = False


class Retries(Domain):
    """Failed requests of a client.

    waits: by API, the waits before retries
    failures: by API, failed requests; of Produce, retries that failed
    unknown, unauthorized: by subject, requests for unknown topics, and those that are not authorized
    logins: failed logins
    refused: by API, error code and subject, requests with an error because of which they will never succeed
    reordered: batches that were appended after later records of the same producer in the partition
    abandoned: Produce requests whose response the client did not await, before another connection
    """

    def __init__(self) -> None:
        self.waits = {api: Rows() for api in GROWING}
        self.failures: dict[str, Burst] = {}
        self.unknown: dict[str, Refusals] = {}
        self.unauthorized: dict[str, Refusals] = {}
        self.refused: dict[tuple[str, int, str], Refusals] = {}
        self.logins = Refusals()
        self.reordered = 0
        self.reordered_examples = Examples()
        self.abandoned: list[Abandoned] = []
        self._open: dict[Identity, _Open] = {}
        self._last_ns = 0
        self._produced_ns = 0  # when the last Produce was received
        self._held: dict[int, Request] = {}  # by connection: the last Produce if its response was delayed
        self._connected: dict[int, tuple[int, int]] = {}  # by broker: the newest connection, and when it was new

    def handlers(self) -> Handlers:
        return {
            "ApiVersions": self._connect,
            "Produce": self._produce,
            EVERY_REQUEST: self._request,
            "connection-closed": self._closed,
        }

    def given_up(self) -> list[Request]:
        """Return the batches that failed with a retriable error, or without a response, and were not sent again."""
        return [
            one.request
            for one in self._open.values()
            if one.request.api == "Produce"
            and one.attempts == 1
            and not one.request.transactional_id
            and all(ErrorCode(code).retriable for code in one.request.error_codes)
            and self._produced_ns - one.ended_ns > _GIVEN_UP_NS
        ]

    # -- connections ---------------------------------------------------------------------------------------------------

    def _connect(self, event: Request) -> None:
        known = self._connected.get(event.broker)
        if known is None or known[0] < event.connection:
            self._connected[event.broker] = event.connection, event.received_ns

    def _produce(self, event: Request) -> None:
        self._produced_ns = event.received_ns
        if event.answered_ns is None or event.at_ns - event.received_ns >= _HELD_NS:
            if len(self._held) >= _MOST_CONNECTIONS:
                del self._held[next(iter(self._held))]
            self._held[event.connection] = event
        elif self._held:
            self._held.pop(event.connection, None)

    def _closed(self, event: ConnectionClosed) -> None:
        held = self._held.pop(event.connection, None)
        if held is None or not event.by_client:
            return
        connection, connected_ns = self._connected.get(event.broker, (NO_ID, 0))
        if held.answered_ns is None:
            left_ns = event.at_ns
        elif (
            connection > event.connection
            and connected_ns > held.received_ns
            and event.at_ns - held.at_ns <= _AT_ONCE_NS
        ):
            left_ns = connected_ns
        else:
            return
        if left_ns - held.received_ns < _HELD_NS:
            return
        if len(self.abandoned) < _MOST_SUBJECTS:
            timeout_ms = held.sent.get("timeout_ms", 0)
            waited_ms = (left_ns - held.received_ns) // _NS_PER_MS
            self.abandoned.append(Abandoned(waited_ms, timeout_ms, held))  # type: ignore[arg-type]  # an int32
        identity = _identity(held)
        if identity is not None and identity not in self._open:
            self._keep(identity, _Open(held, left_ns, None))

    def _replaced_ns(self, held: Request, closed: ConnectionClosed) -> int:
        """Return when the client connected again while it seemed to await the response; 0 if it did not."""
        connection, connected_ns = self._connected.get(closed.broker, (NO_ID, 0))
        is_replaced = connection > closed.connection and held.received_ns < connected_ns
        return connected_ns if is_replaced and closed.at_ns - held.at_ns <= _AT_ONCE_NS else 0

    # -- outcomes ------------------------------------------------------------------------------------------------------

    def _request(self, event: Request) -> None:
        if event.error_codes:
            self._failed(event)
        elif self._open and event.answered_ns is not None:
            self._succeeded(event)
        self._last_ns = event.at_ns

    def _failed(self, event: Request) -> None:
        self._note_refusal(event)
        api = event.api
        identity = _identity(event)
        before = None if identity is None else self._open.get(identity)
        if api != "Produce" or before is not None:
            if api not in self.failures:
                self.failures[api] = Burst(STORM, STORM_MS / 1e3)
            self.failures[api].add(event)
        if identity is None:
            return
        ended_ns = event.written_ns or event.at_ns
        if before is None:
            self._keep(identity, _Open(event, ended_ns, Row(self._last_ns, ended_ns)))
            return
        row = self._row_after(before, event)
        before.row = Row(self._last_ns, ended_ns) if row is None else row
        before.attempts += 1
        before.ended_ns, before.request = ended_ns, event

    def _row_after(self, before: _Open, event: Request) -> Row | None:
        """Add the wait before this attempt; none if other things may have shortened or lengthened it."""
        waited_ns = event.received_ns - before.ended_ns
        if before.row is None or waited_ns < 0 or before.request.broker != event.broker:
            return None
        return self.waits[event.api].add(before.row, waited_ns // _NS_PER_US, event)

    def _succeeded(self, event: Request) -> None:
        if event.api not in self.waits:
            return
        identity = _identity(event)
        before = None if identity is None else self._open.pop(identity, None)
        if before is not None:
            self._row_after(before, event)
            if before.is_overtaken:
                self.reordered += 1
                self.reordered_examples.note(event)
        elif event.api == "Produce":
            self._compare(event.partitions)

    def _compare(self, produced: list[TopicPartition]) -> None:
        """Note which failed batches of a producer without idempotence are overtaken, or were sent in other batches."""
        for identity, one in list(self._open.items()):
            if one.request.api != "Produce":
                continue
            failed = one.request.partitions[0]
            for now in produced:
                if now.topic != failed.topic or now.batch is None or failed.batch is None or failed.producer_id >= 0:
                    continue
                if now.batch.first_timestamp_ms > failed.batch.max_timestamp_ms:
                    one.is_overtaken = one.is_overtaken or now.partition == failed.partition
                elif now.batch.max_timestamp_ms >= failed.batch.first_timestamp_ms:
                    self._open.pop(identity, None)  # clients may regroup records

    def _keep(self, identity: Identity, one: _Open) -> None:
        if len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[identity] = one

    # -- refusals ------------------------------------------------------------------------------------------------------

    def _note_refusal(self, event: Request) -> None:
        codes = event.error_codes
        if event.api == "SaslAuthenticate":
            self.logins.add(event)
        if event.api in _USES_TOPICS and not _UNKNOWN.isdisjoint(codes):
            _note(self.unknown, _topics(event), event)
        if not _NOT_AUTHORIZED.isdisjoint(codes):
            subject = f"group {event.group_id}" if event.group_id else _topics(event)
            _note(self.unauthorized, f"{event.api} for {subject}", event)
        for code in _NEVER.intersection(codes):
            subject = f"group {event.group_id}" if event.group_id else _topics(event)
            _note(self.refused, (event.api, code, subject), event)


_Subject = TypeVar("_Subject", str, tuple[str, int, str])


def _note(found: dict[_Subject, Refusals], subject: _Subject, event: Request) -> None:
    refusals = found.get(subject)
    if refusals is None:
        if len(found) >= _MOST_SUBJECTS:
            return
        refusals = found[subject] = Refusals()
    refusals.add(event)


def _topics(event: Request) -> str:
    names = list(dict.fromkeys(one.topic for one in event.partitions))
    others = len(names) - 1
    return "the cluster" if not names else f"topic {names[0]}" if not others else f"topic {names[0]} or {others} others"


def _identity(event: Request) -> Identity | None:
    """Return what a retry has in common with the request; None if it cannot be recognized."""
    api = event.api
    if api == "Metadata":
        return api, event.attempt_key
    if api == "FindCoordinator":
        return api, event.group_id, event.transactional_id, str(event.sent.get("keys", ""))
    if api != "Produce" or len(event.partitions) != 1 or event.partitions_left_off:
        return None
    (one,) = event.partitions
    if one.producer_id >= 0:
        return one.topic, one.partition, one.producer_id, one.producer_epoch, one.base_sequence
    batch = one.batch
    if batch is None or not batch.compression:
        return None
    span = batch.first_timestamp_ms, batch.max_timestamp_ms
    return one.topic, one.partition, *span, batch.records, batch.bytes, tuple(one.record_hashes)
