"""Fetch sessions (KIP-227): the partitions that a client fetches, and what the last response reported for each.

Follows Kafka's FetchManager, FetchSession and FetchSessionCacheShard. Theory of operation:

    request, by its epoch   what becomes of the session           the answer holds
    0, "full"               that of its id ends; a new one opens  every partition asked for, and the new id
    -1, "sessionless"       that of its id ends                   every partition asked for, and id 0
    another, "incremental"  what the request names is added or    of the session's partitions those with something
                            changed, what it forgets leaves       new, and the same id

Requests of before v7 are sessionless. The epoch counts the requests of a session, from 1 to the largest int32 and on
from 1: a request that was sent twice, or got lost, is noticed (INVALID_FETCH_SESSION_EPOCH). "Something new" is another
high watermark or log start than was last reported, records, an error or a diverging epoch. A partition that had
records moves to the end, so that one that always has some does not starve those after it. A session that has forgotten
everything ends.

What was read is not always sent: the response to a fetch above its quota has no data (KIP-219). It opens no session and
updates none, but its epoch counts. So reading leaves a session as it is, and `record_sent` updates it when the response
is sent.

A cache holds so many sessions (`max.incremental.fetch.session.cache.slots`). For one more, another has to go: one that
was not used for two minutes; else the least valuable of those that were in use two minutes after they were opened, if
it holds fewer partitions than the new one would; consumers' go before followers', and for a follower any consumer's.
Where none can go, no session opens: the client gets id 0 and goes on in full. Kafka has eight such caches, each with an
eighth of the slots, so that threads meet less; here is one.
"""

from collections.abc import Iterable, Sequence
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Partition
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from sluice.protocol.errors import ErrorCode

NO_SESSION = 0  # FetchMetadata.INVALID_SESSION_ID
INITIAL_EPOCH = 0  # asks for a new session
FINAL_EPOCH = -1  # asks for none
# How long a session keeps its place, whoever else wants it (Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
_EVICTION_MS = 120_000
_INT_MAX = 2**31 - 1
_NEVER_REPORTED = -1

TopicKey = str | bytes  # a topic's name, or from Fetch v13 on its id
PartitionKey = tuple[TopicKey, int]


class RequestedPartition:
    """One partition of a fetch: where it is or why it cannot be read, and in a session what was last reported of it."""

    __slots__ = ("error_code", "high_watermark", "log_start_offset", "name", "partition", "request", "topic")

    def __init__(self, topic: TopicKey, request: FetchPartition, metadata: MetadataCache) -> None:
        self.topic = topic
        self.request = request
        self.name: str | None = None  # of a topic that is known by its id, once that was found
        self.high_watermark = _NEVER_REPORTED
        self.log_start_offset = _NEVER_REPORTED
        self.locate(metadata)

    def locate(self, metadata: MetadataCache) -> None:
        """Finds the partition, at first or anew.

        An id is looked up until it is found. Then, as in Kafka, its topic's name counts, so that a session notices
        when another topic has that name.
        """
        key = self.topic
        self.partition: Partition | None = None
        if isinstance(key, str):
            topic = metadata.topics.get(key)
        elif self.name is not None:
            topic = metadata.topics.get(self.name)
        else:
            topic = metadata.topics_by_id.get(key)
            if topic is None:
                self.error_code = ErrorCode.UNKNOWN_TOPIC_ID
                return
            self.name = topic.name
        index = self.request.partition
        if topic is None or not 0 <= index < len(topic.partitions):
            self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif self.name is not None and topic.topic_id != key:
            self.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
        else:
            self.error_code = ErrorCode.NONE
            self.partition = topic.partitions[index]

    @property
    def is_known(self) -> bool:
        """Whether there is such a partition: one that is not is no reason to answer a long poll."""
        return self.partition is not None or self.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    @property
    def topic_name(self) -> str:
        """Its topic's name; of an id that nobody knows, that."""
        if isinstance(self.topic, str):
            return self.topic
        return self.topic.hex() if self.name is None else self.name

    def is_changed_by(self, data: PartitionData) -> bool:
        """Return whether `data`, which has no records, differs from what was last reported."""
        return (
            data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.error_code != ErrorCode.NONE
            or data.diverging_epoch is not None
        )


class ResponsePartition:
    """What a response reports for one partition of a session."""

    __slots__ = ("had_records", "high_watermark", "item", "log_start_offset")

    def __init__(self, item: RequestedPartition, high_watermark: int, log_start_offset: int, had_records: bool) -> None:
        self.item = item
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.had_records = had_records


class FetchSession:
    """One client's session: its partitions in the order in which they are read."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged", "uses_topic_ids")

    def __init__(
        self, session_id: int, partitions: Sequence[ResponsePartition], now_ms: int, privileged: bool, by_id: bool
    ) -> None:
        self.id = session_id
        self.epoch = INITIAL_EPOCH + 1  # of the next request
        self.partitions: dict[PartitionKey, RequestedPartition] = {}
        self.privileged = privileged  # a follower's
        self.uses_topic_ids = by_id
        self.created_ms = self.last_used_ms = now_ms
        for one in partitions:
            item = one.item
            item.high_watermark, item.log_start_offset = one.high_watermark, one.log_start_offset
            self.partitions[item.topic, item.request.partition] = item

    def record_sent(self, partitions: Iterable[ResponsePartition]) -> None:
        """Record what the response that is sent now reports."""
        for one in partitions:
            item = one.item
            item.high_watermark, item.log_start_offset = one.high_watermark, one.log_start_offset
            if one.had_records:
                key = item.topic, item.request.partition
                del self.partitions[key]
                self.partitions[key] = item

    def update(self, request: FetchRequest, metadata: MetadataCache) -> None:
        """Adds and changes what the request names, and lets go of what it forgets."""
        for asked in request.topics:
            topic = asked.topic_id if self.uses_topic_ids else asked.topic
            for wanted in asked.partitions:
                known = self.partitions.get((topic, wanted.partition))
                if known is None:
                    self.partitions[topic, wanted.partition] = RequestedPartition(topic, wanted, metadata)
                else:
                    known.request = wanted
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self.partitions.pop((topic, index), None)

    @property
    def was_used_for_long(self) -> bool:
        """Whether it was in use two minutes after it was opened: only then may others take its place."""
        return self.last_used_ms - self.created_ms > _EVICTION_MS


class FetchSessionCache:
    """The sessions of all clients, by id; the one that was not used for longest comes first."""

    __slots__ = ("_random", "_sessions", "_slots", "evictions")

    def __init__(self, slots: int, random: Random) -> None:
        """Session ids are drawn from `random`, the broker's."""
        self._slots = slots
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions hold."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def partitions_of(self, session_id: int) -> list[tuple[str, int]]:
        """What a session has, by topic and index; nothing for one that is not known."""
        session = self._sessions.get(session_id)
        return [] if session is None else [(item.topic_name, key[1]) for key, item in session.partitions.items()]

    def open(self, partitions: Sequence[ResponsePartition], now_ms: int, *, privileged: bool, by_id: bool) -> int:
        """Open a session for what a response reports; return its id, or NO_SESSION if the cache has no slot for it."""
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), now_ms, privileged):
            return NO_SESSION
        session_id = self._new_id()
        self._sessions[session_id] = FetchSession(session_id, partitions, now_ms, privileged, by_id)
        return session_id

    def close(self, session_id: int) -> None:
        """Ends a session, if there is one of that id."""
        self._sessions.pop(session_id, None)

    def resume(
        self, request: FetchRequest, by_id: bool, now_ms: int, metadata: MetadataCache
    ) -> FetchSession | ErrorCode:
        """The session that an incremental request belongs to, with what it changes; or why there is none.

        Its epoch is that of the next request then. A session without partitions has ended.
        """
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request, metadata)
        del self._sessions[session.id]
        if session.partitions:
            session.last_used_ms = now_ms
            session.epoch = 1 if session.epoch == _INT_MAX else session.epoch + 1
            self._sessions[session.id] = session
        return session

    def _evict(self, partitions: int, now_ms: int, privileged: bool) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > _EVICTION_MS:
            return self._let_go(oldest)
        evictable = [
            session
            for session in self._sessions.values()
            if session.was_used_for_long or (privileged and not session.privileged)
        ]
        if not evictable:
            return False
        least = min(evictable, key=lambda session: (session.privileged, len(session.partitions), session.id))
        if (privileged, partitions) <= (least.privileged, len(least.partitions)):
            return False
        return self._let_go(least)

    def _let_go(self, session: FetchSession) -> bool:
        del self._sessions[session.id]
        self.evictions += 1
        return True

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randrange(1, _INT_MAX)
            if session_id not in self._sessions:
                return session_id


def requested_partitions(
    topics: Iterable[FetchTopic], metadata: MetadataCache, by_id: bool
) -> dict[PartitionKey, RequestedPartition]:
    """Return the partitions of a request in its order. Of one that is named twice, the last counts."""
    requested: dict[PartitionKey, RequestedPartition] = {}
    for topic in topics:
        key: TopicKey = topic.topic_id if by_id else topic.topic
        for item in topic.partitions:
            requested[key, item.partition] = RequestedPartition(key, item, metadata)
    return requested
