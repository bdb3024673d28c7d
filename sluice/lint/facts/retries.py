"""Failed requests and their retries (KIP-580), and requests for which a retry makes no sense.

A retry is recognized by its identity: of a batch, or of another request its API with its topics, group or transactional
id. As in the audit (`sluice.audit.judge.observer`), waits follow responses with an error, because after the loss of a
connection the client first has to connect.
"""

from collections.abc import Hashable
from typing import TypeVar

import msgspec

from sluice.audit.judge.findings import STORM, STORM_MS
from sluice.journal_events import Request
from sluice.lint.clients import host_of
from sluice.protocol.errors import ErrorCode

from .deliveries import Deliveries, Identity
from .domain import EVERY_REQUEST, Domain, Handlers
from .measures.bursts import Burst
from .measures.examples import Example, Examples
from .measures.waits import Row, Rows
from .topics import Topics

_MOST_OPEN, _MOST_SUBJECTS, _MOST_SOURCES, _MOST_TOPICS = 1024, 64, 64, 1024
# A topic that is created automatically is known to the first or second retry, which franz-go sends after 5 s.
_APPEARS_WITHIN_NS = 6_000_000_000
_NS_PER_US = 1000
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
        ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INVALID_RECORD,
    )
)  # fmt: skip
# The APIs that use topics, other than administration, which may look whether a topic exists.
_USES_TOPICS = frozenset(("Metadata", "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"))


class Refusals:
    """Requests for one subject that are refused each time.

    count: their number
    first_ns, last_ns: times of the first and the last one
    """

    __slots__ = ("_sources", "count", "examples", "first_ns", "last_ns")

    def __init__(self) -> None:
        self.count = self.first_ns = self.last_ns = 0
        self.examples = Examples()
        self._sources: dict[Hashable, int] = {}

    def add(self, event: Request, source: Hashable) -> None:
        self.count += 1
        self.first_ns = self.first_ns or event.at_ns
        self.last_ns = event.at_ns
        self.examples.note(event)
        known = self._sources.get(source)
        if known is not None or len(self._sources) < _MOST_SOURCES:
            self._sources[source] = (known or 0) + 1

    @property
    def most(self) -> int:
        """The most from one source: clients of a fleet may have one each."""
        return max(self._sources.values(), default=0)

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9


class _Open(msgspec.Struct):
    """A failed request that has not succeeded since.

    ended_ns: when the client received the error
    row: the waits before its retries
    """

    broker: int
    ended_ns: int
    row: Row


class Retries(Domain):
    """Failed requests of a client.

    waits: by API, the waits before retries
    failures: by API, failed requests; of Produce, retries that failed
    unknown, unauthorized: by subject, requests for unknown topics, and those that are not authorized
    logins: failed logins
    refused: by API, error code and subject, requests with an error because of which they will never succeed
    """

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self.waits = {api: Rows() for api in GROWING}
        self.failures: dict[str, Burst] = {}
        self.unknown: dict[str, Refusals] = {}
        self.unauthorized: dict[str, Refusals] = {}
        self.refused: dict[tuple[str, int, str], Refusals] = {}
        self.logins = Refusals()
        self._created: set[str] = set()
        self._unknown_ns: dict[str, int] = {}  # by topic: when it was unknown for the first time
        self._appeared: dict[str, Example] = {}
        self._open: dict[Identity, _Open] = {}
        self._last_ns = 0

    def handlers(self) -> Handlers:
        return {EVERY_REQUEST: self._request, "CreateTopics": self._create, "Metadata": self._metadata}

    def contribute(self, topics: Topics) -> None:
        for topic in self._created:
            topics[topic].is_created = True
        for topic, example in self._appeared.items():
            topics[topic].appeared = [example]

    def _create(self, event: Request) -> None:
        if len(self._created) < _MOST_TOPICS:
            self._created.update(one.topic for one in event.partitions)

    def _metadata(self, event: Request) -> None:
        """Note topics that were unknown to a request that allows auto creation, and are known shortly after that."""
        if event.error_codes:
            self._note_unknown(event)
        elif self._unknown_ns:
            for one in event.partitions:
                unknown_ns = self._unknown_ns.pop(one.topic, None)
                if unknown_ns is not None and event.received_ns - unknown_ns < _APPEARS_WITHIN_NS:
                    self._appeared.setdefault(one.topic, Example(event.seq, event.at_ns, event.attempt_key))

    def _note_unknown(self, event: Request) -> None:
        may_create = event.sent.get("allow_auto_topic_creation") and not _UNKNOWN.isdisjoint(event.error_codes)
        has_room = len(self._unknown_ns) + len(self._appeared) < _MOST_TOPICS
        if may_create and has_room and len(event.partitions) == 1:
            self._unknown_ns.setdefault(event.partitions[0].topic, event.at_ns)

    def _request(self, event: Request) -> None:
        if event.error_codes:
            self._failed(event)
        elif self._open and event.answered_ns is not None and event.api in self.waits:
            identity = self._identity(event)
            before = None if identity is None else self._open.pop(identity, None)
            if before is not None:
                self._row_after(before, event)
        self._last_ns = event.at_ns

    def _failed(self, event: Request) -> None:
        self._note_refusal(event)
        api = event.api
        identity = self._identity(event)
        before = None if identity is None else self._open.pop(identity, None)
        if api != "Produce" or before is not None:
            if api not in self.failures:
                self.failures[api] = Burst(STORM, STORM_MS / 1e3)
            self.failures[api].add(event, event.connection)
        if identity is None:
            return
        ended_ns = event.written_ns or event.at_ns
        row = None if before is None else self._row_after(before, event)
        if len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[identity] = _Open(event.broker, ended_ns, row or Row(self._last_ns, ended_ns))

    def _identity(self, event: Request) -> Identity | None:
        """Return what a retry has in common with the request; None if it cannot be recognized."""
        api = event.api
        if api == "Produce":
            return self._deliveries.retried_identity(event)
        if api == "Metadata":
            return api, event.connection, event.attempt_key
        if api == "FindCoordinator":
            return api, event.connection, event.group_id, event.transactional_id, str(event.sent.get("keys", ""))
        return None

    def _row_after(self, before: _Open, event: Request) -> Row | None:
        """Add the wait before this attempt; none if a connection or a new leader may have changed it."""
        waited_ns = event.received_ns - before.ended_ns
        if waited_ns < 0 or before.broker != event.broker:
            return None
        return self.waits[event.api].add(before.row, waited_ns // _NS_PER_US, event)

    # -- refusals ------------------------------------------------------------------------------------------------------

    def _note_refusal(self, event: Request) -> None:
        codes = event.error_codes
        host = host_of(event.peer)
        if event.api == "SaslAuthenticate":
            self.logins.add(event, host)
        if event.api in _USES_TOPICS and not _UNKNOWN.isdisjoint(codes):
            _note(self.unknown, _topics(event), event, event.connection)
        subject = f"group {event.group_id}" if event.group_id else _topics(event)
        if not _NOT_AUTHORIZED.isdisjoint(codes):
            _note(self.unauthorized, f"{event.api} for {subject}", event, host)
        for code in _NEVER.intersection(codes):
            _note(self.refused, (event.api, code, subject), event, host)


_Subject = TypeVar("_Subject", str, tuple[str, int, str])


def _note(found: dict[_Subject, Refusals], subject: _Subject, event: Request, source: Hashable) -> None:
    refusals = found.get(subject)
    if refusals is None:
        if len(found) >= _MOST_SUBJECTS:
            return
        refusals = found[subject] = Refusals()
    refusals.add(event, source)


def _topics(event: Request) -> str:
    names = list(dict.fromkeys(one.topic for one in event.partitions))
    others = len(names) - 1
    return "the cluster" if not names else f"topic {names[0]}" if not others else f"topic {names[0]} or {others} others"
