"""Fetch sessions (KIP-227): the partitions that a client fetches, and their last reported state.

Follows Kafka's FetchManager, FetchSession and FetchSessionCacheShard.

    request, by its epoch   effect on the session             contents of the response
    0, "full"               replaces it by a new one          all requested partitions, and the new id
    -1, "sessionless"       closes it                         all requested partitions, and id 0
    another, "incremental"  adds, changes and removes the     the session's partitions with changes, and the same id
                            partitions that it names

Requests before v7 are sessionless. The epoch counts the requests of a session, from 1 to the largest int32 and again
from 1, which detects a repeated or lost request (INVALID_FETCH_SESSION_EPOCH). A partition that had records moves to
the end, so as not to starve the others. A session without partitions is closed.

A response above the quota has no data (KIP-219). It neither opens nor updates a session, but its epoch counts.

A new session in a full cache (`max.incremental.fetch.session.cache.slots`) evicts one of these. Otherwise it does not
open, and the client continues with full requests:

1. a session unused for two minutes
2. the smallest session that was still used two minutes after it was opened, if it is smaller than the new one; for a
   follower, any consumer's session, because those count as smaller than followers'

Different on purpose: all sessions together have at most `sluice.fetch.session.partitions.max` partitions. A session
that would exceed this does not open, unless unused ones make room; one that grows above it is closed.
"""

from collections.abc import Iterable, Sequence
from random import Random  # noqa: TID251  (only the type of an injected value)

from msgspec import Struct

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from sluice.protocol.errors import ErrorCode

NO_SESSION = 0
INITIAL_EPOCH = 0  # requests a new session
FINAL_EPOCH = -1  # requests no session, and closes the current one
# Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS.
_EVICTION_MS = 120_000
_INT_MAX = 2**31 - 1
_NEVER_REPORTED = -1

TopicKey = str | bytes  # a topic's name, or its id since Fetch v13
PartitionKey = tuple[TopicKey, int]


class RequestedPartition(Struct, eq=False):
    topic: TopicKey
    request: FetchPartition
    partition: Partition | None = None
    error_code: int = 0  # if there is no partition
    name: str | None = None  # of a topic requested by id, once found
    high_watermark: int = _NEVER_REPORTED
    log_start_offset: int = _NEVER_REPORTED

    def locate(self, metadata: MetadataCache) -> None:
        """Look the partition up.

        As in Kafka, an id is looked up only until it is found. After that, the topic's name counts, so a session
        detects when another topic gets that name.
        """
        key, index, name = self.topic, self.request.partition, self.name
        if self.partition is not None:
            self.partition = None
        if isinstance(key, str):
            topic = metadata.topics.get(key)
        elif name is not None:
            topic = metadata.topics.get(name)
        else:
            topic = metadata.topics_by_id.get(key)
            if topic is None:
                self.error_code = ErrorCode.UNKNOWN_TOPIC_ID
                return
            self.name = name = topic.name
        if topic is None or not 0 <= index < len(topic.partitions):
            self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif name is not None and topic.topic_id != key:
            self.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
        else:
            if self.error_code:
                self.error_code = 0
            self.partition = topic.partitions[index]

    @property
    def is_known(self) -> bool:
        return self.partition is not None or self.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    @property
    def topic_name(self) -> str:
        if isinstance(self.topic, str):
            return self.topic
        return self.topic.hex() if self.name is None else self.name

    def is_changed_by(self, data: PartitionData) -> bool:
        """Return whether `data`, without records, differs from the last reported state."""
        return (
            data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.error_code != ErrorCode.NONE
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
        )


class PartitionRead(Struct, gc=False):
    """What a response says of a partition."""

    item: RequestedPartition
    size: int  # of its records
    high_watermark: int
    log_start_offset: int


class FetchSession:
    __slots__ = ("counted", "created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged", "uses_topic_ids")

    def __init__(
        self, session_id: int, reads: Iterable[PartitionRead], now_ms: int, privileged: bool, by_id: bool
    ) -> None:
        self.id = session_id
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: dict[PartitionKey, RequestedPartition] = {}
        self.privileged = privileged  # a follower's session
        self.uses_topic_ids = by_id
        self.created_ms = self.last_used_ms = now_ms
        for read in reads:
            item = read.item
            item.high_watermark, item.log_start_offset = read.high_watermark, read.log_start_offset
            self.partitions[item.topic, item.request.partition] = item
        self.counted = len(self.partitions)  # in the cache's number of partitions

    def advance(self) -> int:
        """Count a request; return the epoch that the next one has to have."""
        self.epoch = epoch = self.epoch + 1 if self.epoch < _INT_MAX else INITIAL_EPOCH + 1
        return epoch

    def record_sent(self, item: RequestedPartition, size: int, high_watermark: int, log_start_offset: int) -> None:
        item.high_watermark, item.log_start_offset = high_watermark, log_start_offset
        if size and len(self.partitions) > 1:
            key = item.topic, item.request.partition
            if self.partitions.pop(key, None) is not None:  # another connection may have changed the session
                self.partitions[key] = item

    def update(self, request: FetchRequest) -> None:
        for requested in request.topics:
            topic = requested.topic_id if self.uses_topic_ids else requested.topic
            for item in requested.partitions:
                known = self.partitions.get((topic, item.partition))
                if known is None:
                    self.partitions[topic, item.partition] = RequestedPartition(topic, item)
                else:
                    known.request = item
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self.partitions.pop((topic, index), None)

    @property
    def was_used_long(self) -> bool:
        return self.last_used_ms - self.created_ms > _EVICTION_MS


class FetchSessionCache:
    def __init__(self, slots: int, max_partitions: int, random: Random) -> None:
        self._slots = slots
        self._max_partitions = max_partitions
        self.partitions = 0
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self.find = self._sessions.get
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions_of(self, session_id: int) -> list[tuple[str, int]]:
        session = self._sessions.get(session_id)
        return [] if session is None else [(item.topic_name, key[1]) for key, item in session.partitions.items()]

    def open(self, ctx: RequestContext, reads: Sequence[PartitionRead], *, privileged: bool, by_id: bool) -> int:
        if not self._make_room(len(reads), ctx.now_ms):
            return NO_SESSION
        session_id = self._new_id()
        session = FetchSession(session_id, ctx.sliced(reads), ctx.now_ms, privileged, by_id)
        if len(self._sessions) >= self._slots and not self._evict(len(reads), ctx.now_ms, privileged):
            return NO_SESSION
        self._sessions[session_id] = session
        self.partitions += session.counted
        return session_id

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= session.counted

    def resume(self, ctx: RequestContext, request: FetchRequest, by_id: bool) -> FetchSession | ErrorCode:
        """Apply an incremental request; return its session, which is closed if it has no partitions."""
        session = self.find(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.advance()
        if request.topics or request.forgotten_topics_data:
            session.update(request)
        sessions = self._sessions
        if sessions.pop(session.id, None) is None:  # closed by another connection, between two slices
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        added = len(session.partitions) - session.counted
        if added:
            if added > 0 and self.partitions + added > self._max_partitions:
                self.partitions -= session.counted
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.partitions += added
            session.counted += added
        if session.partitions:
            session.last_used_ms = ctx.now_ms
            sessions[session.id] = session  # the last one
        return session

    def used(self, session: FetchSession, now_ms: int) -> None:
        session.last_used_ms = now_ms
        sessions, session_id = self._sessions, session.id
        del sessions[session_id]  # to insert it last
        sessions[session_id] = session

    def _make_room(self, partitions: int, now_ms: int) -> bool:
        """Remove unused sessions; return whether a new one of this size fits."""
        while self.partitions + partitions > self._max_partitions:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms <= _EVICTION_MS:
                return False
            self._remove(oldest)
        return True

    def _evict(self, partitions: int, now_ms: int, privileged: bool) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > _EVICTION_MS:
            return self._remove(oldest)
        evictable = [
            session
            for session in self._sessions.values()
            if session.was_used_long or (privileged and not session.privileged)
        ]
        if not evictable:
            return False
        least = min(evictable, key=lambda session: (session.privileged, len(session.partitions), session.id))
        if (privileged, partitions) <= (least.privileged, len(least.partitions)):
            return False
        return self._remove(least)

    def _remove(self, session: FetchSession) -> bool:
        self.close(session.id)
        self.evictions += 1
        return True

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randrange(1, _INT_MAX)
            if session_id not in self._sessions:
                return session_id


def requested_partitions(
    ctx: RequestContext, topics: Sequence[FetchTopic], by_id: bool
) -> Sequence[RequestedPartition]:
    """Return the partitions in order; the last of duplicates counts."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        topic = topics[0]
        return (RequestedPartition(topic.topic_id if by_id else topic.topic, topic.partitions[0]),)
    requested: dict[PartitionKey, RequestedPartition] = ctx.mapping()
    for topic in topics:
        key: TopicKey = topic.topic_id if by_id else topic.topic
        for item in topic.partitions:
            requested[key, item.partition] = RequestedPartition(key, item)
    return ctx.array(requested.values())
