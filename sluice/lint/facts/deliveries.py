"""The outcome of batches: which were given up, which were sent again, and whether a retry changed the order.

A batch is recognized by producer id and sequence, or by its timestamps, number of records and size. Some producers
regroup the records of a failed batch, or give them new timestamps: then hashes of their content show that they were
sent again (`sluice.journal.record.hashes`). Without hashes, such a batch is not said to be given up.

A broker that delays a response does not read the connection: only when it responds does it detect that the client has
left, or receive what the client sent meanwhile (`sluice.audit.judge.observer.outcomes`).
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple, TypeVar

import msgspec

from sluice.journal_events import NO_ID, ConnectionClosed, Request, TopicPartition
from sluice.lint.clients import host_of
from sluice.protocol.errors import ErrorCode

from .domain import Domain, Handlers
from .measures.examples import Examples

# Each batch is compared with all failed ones, so these are few; the oldest are forgotten.
_MOST_FAILED = 64
_MOST_ABANDONED, _MOST_CONNECTIONS, _MOST_HOSTS = 64, 1024, 1024
_NS_PER_MS = 1_000_000
_HELD_NS, _AT_ONCE_NS = 50 * _NS_PER_MS, 20 * _NS_PER_MS
# Five times Kafka's longest default wait before a retry (retry.backoff.max.ms). A producer that sends other batches for
# this long has given one up.
_GIVEN_UP_NS = 5_000_000_000
# A client that connects again sends the abandoned batch early on the new connection.
_EARLY_REQUESTS, _EARLY_CONNECTIONS = 32, 8

_ALIKE = 0.2  # of a timeout; timers are late on a busy machine

Identity = tuple[object, ...]


class Abandoned(NamedTuple):
    """A Produce request whose response the client did not await.

    waited_ms: how long it waited at most
    timeout_ms: how long the broker was to wait for acknowledgments
    is_again: whether it was sent again over the same connection; otherwise the client closed it, or ended
    """

    waited_ms: int
    timeout_ms: int
    request: Request
    is_again: bool


class GivenUp(NamedTuple):
    """A batch that was sent once; the client waited this long for the response."""

    waited_ms: int
    request: Request


class _Failed(msgspec.Struct):
    """A batch that failed or was abandoned, and has not succeeded since.

    ended_ns: when the client could know of the failure
    is_overtaken: whether later records were appended to the partition
    """

    request: Request
    ended_ns: int
    attempts: int
    is_overtaken: bool = False


class Deliveries(Domain):
    """The batches of a client that failed.

    reordered: batches that were appended after later records of the same producer in the partition
    abandoned: Produce requests whose response the client did not await
    """

    def __init__(self) -> None:
        self.reordered = 0
        self.reordered_examples = Examples()
        self.abandoned: list[Abandoned] = []
        self._failed: dict[Identity, _Failed] = {}
        self._produced_ns: dict[str, int] = {}  # by host: the last Produce
        self._latest: dict[int, Request] = {}  # by connection: the last Produce
        self._distinct: dict[int, bool] = {}  # by connection: whether a failed batch and the one before it differ
        self._held: dict[int, bool] = {}  # by connection: its response was delayed; whether its content is its own
        self._connected: dict[int, tuple[int, int]] = {}  # by broker: the newest connection, and when it was new
        self._early: dict[int, list[TopicPartition]] = {}  # by connection, of the newest ones: their first batches
        self._recorded: set[int] = set()  # those of them that have had fewer

    def handlers(self) -> Handlers:
        return {"ApiVersions": self._connect, "Produce": self._produce, "connection-closed": self._closed}

    def given_up(self) -> list[GivenUp]:
        """Return the batches that were sent once, and failed with a retriable error or without a response in time.

        Those that are not recognizable may have been sent again.
        """
        return [
            GivenUp((one.ended_ns - one.request.received_ns) // _NS_PER_MS, one.request)
            for one in self._failed.values()
            if one.attempts == 1
            and not one.request.transactional_id
            and all(ErrorCode(code).retriable for code in one.request.error_codes)
            and self._produced_ns.get(host_of(one.request.peer), 0) - one.ended_ns > _GIVEN_UP_NS
        ]

    def retried_identity(self, event: Request) -> Identity | None:
        """Return the identity of a batch that failed, or is sent again, maybe with new timestamps.

        Its content shows this unless other records have the same.
        """
        hashes = _hashes(event)
        if hashes and event.partitions[0].producer_id < 0 and self._distinct.get(event.connection):
            return event.partitions[0].topic, *hashes
        return identity_of(event)

    def _connect(self, event: Request) -> None:
        known = self._connected.get(event.broker)
        if known is None or known[0] < event.connection:
            self._connected[event.broker] = event.connection, event.received_ns
            if len(self._early) >= _EARLY_CONNECTIONS:
                oldest = next(iter(self._early))
                del self._early[oldest]
                self._recorded.discard(oldest)
            self._early[event.connection] = []
            self._recorded.add(event.connection)

    def _produce(self, event: Request) -> None:
        number = event.connection
        latest = self._latest
        before = latest.get(number)
        if before is None:
            if len(latest) >= _MOST_CONNECTIONS:
                oldest = next(iter(latest))
                self._held.pop(oldest, None)
                self._distinct.pop(oldest, None)
                del latest[oldest]
        elif self._held:
            has_own_content = self._held.pop(number, None)
            if has_own_content is not None and _is_again(before, event, has_own_content=has_own_content):
                self._abandon(before, before.at_ns, is_again=True)
        latest[number] = event
        if self._failed:
            self._note_produced(event)
        if event.answered_ns is None or event.at_ns - event.received_ns >= _HELD_NS:
            self._held[number] = before is not None and _hashes(before) != _hashes(event)
        if event.error_codes:
            if before is not None and (not before.error_codes or _hashes(before) != _hashes(event)):
                self._distinct[number] = _hashes(before) != _hashes(event)
            self._fail(event, event.written_ns or event.at_ns)
        elif self._failed and event.answered_ns is not None:
            self._succeed(event)
        if self._recorded:
            self._record(event)

    def _note_produced(self, event: Request) -> None:
        host = host_of(event.peer)
        if host in self._produced_ns or len(self._produced_ns) < _MOST_HOSTS:
            self._produced_ns[host] = event.received_ns

    def _record(self, event: Request) -> None:
        early = self._early.get(event.connection)
        if early is not None and len(early) < _EARLY_REQUESTS:
            early += event.partitions
        else:
            self._recorded.discard(event.connection)

    def _closed(self, event: ConnectionClosed) -> None:
        self._recorded.discard(event.connection)
        self._distinct.pop(event.connection, None)
        held = self._latest.pop(event.connection, None)
        if self._held.pop(event.connection, None) is None or held is None or not event.by_client:
            return
        left_ns = event.at_ns if held.answered_ns is None else self._replaced_ns(held, event)
        if left_ns - held.received_ns >= _HELD_NS:
            self._abandon(held, left_ns, is_again=False)
            if not held.error_codes and not self._is_retried(held):
                self._fail(held, left_ns)

    def _replaced_ns(self, held: Request, closed: ConnectionClosed) -> int:
        """Return when the client connected again while it seemed to await the response; 0 if it did not."""
        connection, connected_ns = self._connected.get(closed.broker, (NO_ID, 0))
        is_replaced = connection > closed.connection and held.received_ns < connected_ns
        return connected_ns if is_replaced and closed.at_ns - held.at_ns <= _AT_ONCE_NS else 0

    def _is_retried(self, held: Request) -> bool:
        """Return whether a newer connection already had the batch, or one with its first record."""
        return any(
            number > held.connection and any(_may_contain(now, one) for now in early)
            for number, early in self._early.items()
            for one in held.partitions
        )

    def _abandon(self, held: Request, left_ns: int, *, is_again: bool) -> None:
        timeout_ms = held.sent.get("timeout_ms", 0)
        if len(self.abandoned) < _MOST_ABANDONED:
            waited_ms = (left_ns - held.received_ns) // _NS_PER_MS
            self.abandoned.append(Abandoned(waited_ms, timeout_ms, held, is_again))  # type: ignore[arg-type]  # an int32

    def _fail(self, event: Request, ended_ns: int) -> None:
        identity = identity_of(event)
        if identity is None:
            return
        one = self._failed.get(identity)
        if one is not None:
            one.attempts += 1
            one.request, one.ended_ns = event, ended_ns
            return
        attempts = 1 + self._compare(event)
        if len(self._failed) >= _MOST_FAILED:
            del self._failed[next(iter(self._failed))]
        self._failed[identity] = _Failed(event, ended_ns, attempts)

    def _succeed(self, event: Request) -> None:
        one = self._failed.pop(identity_of(event) or (), None)
        if one is None:
            self._compare(event)
        elif one.is_overtaken:
            self.reordered += 1
            self.reordered_examples.note(event)

    def _compare(self, event: Request) -> int:
        """Note which failed batches this one overtakes, and forget those that it contains; return their attempts."""
        attempts = 0
        for identity, one in list(self._failed.items()):
            failed = one.request.partitions[0]
            for now in event.partitions:
                if failed.producer_id >= 0 or now.topic != failed.topic or now.batch is None or failed.batch is None:
                    continue
                is_later = now.batch.first_timestamp_ms > failed.batch.max_timestamp_ms
                if _may_contain(now, failed):
                    attempts = max(attempts, one.attempts)
                    self._failed.pop(identity, None)
                elif is_later and _is_next(event, one.request):
                    one.is_overtaken = True
        return attempts


def _may_contain(now: TopicPartition, failed: TopicPartition) -> bool:
    """Return whether a batch may have the first record of another one, which failed."""
    if now.topic != failed.topic or now.batch is None or failed.batch is None:
        return False
    if failed.producer_id >= 0:
        is_same = (now.producer_id, now.producer_epoch) == (failed.producer_id, failed.producer_epoch)
        return is_same and now.partition == failed.partition and now.base_sequence == failed.base_sequence
    if failed.record_hashes and failed.record_hashes[0] in now.record_hashes:
        return True
    is_whole = now.batch.records == len(now.record_hashes)  # hashes are those of the first 64 records
    return not is_whole and (
        now.batch.first_timestamp_ms <= failed.batch.max_timestamp_ms
        and now.batch.max_timestamp_ms >= failed.batch.first_timestamp_ms
    )


_Waited = TypeVar("_Waited", Abandoned, GivenUp)


def of_one_timeout(found: Sequence[_Waited]) -> list[_Waited]:
    """Return those that waited about as long as most. A client that is killed waits for any time."""
    usual_ms = median(each.waited_ms for each in found) if found else 0
    return [each for each in found if abs(each.waited_ms - usual_ms) <= _ALIKE * usual_ms]


def identity_of(event: Request) -> Identity | None:
    """Return what a retry has in common with the first attempt of a batch; None if the request has several batches."""
    if len(event.partitions) != 1 or event.partitions_left_off:
        return None
    (one,) = event.partitions
    if one.producer_id >= 0:
        return one.topic, one.partition, one.producer_id, one.producer_epoch, one.base_sequence
    batch = one.batch
    if batch is None or not batch.compression:
        return None
    span = batch.first_timestamp_ms, batch.max_timestamp_ms
    return one.topic, one.partition, *span, batch.records, batch.bytes, tuple(one.record_hashes)


def is_recognizable(event: Request) -> bool:
    """Return whether a later request certainly shows that the batch is sent again."""
    (one,) = event.partitions
    return one.producer_id >= 0 or bool(one.record_hashes)


def _is_next(event: Request, failed: Request) -> bool:
    """Return whether both requests are of one producer and for the same partition."""
    places = {(one.topic, one.partition) for one in event.partitions}
    is_same = event.connection == failed.connection and not event.error_codes
    return is_same and all((one.topic, one.partition) in places for one in failed.partitions)


def _hashes(event: Request) -> list[str]:
    return [each for one in event.partitions for each in one.record_hashes]


def _is_again(before: Request, event: Request, *, has_own_content: bool) -> bool:
    """Return whether a request that was answered is sent again."""
    identity = identity_of(before)
    if before.error_codes or identity is None or before.answered_ns is None:
        return False
    if before.partitions[0].producer_id >= 0:
        return identity == identity_of(event)
    return has_own_content and bool(_hashes(before)) and _hashes(before) == _hashes(event)
