"""The partitions of the upstream's fetch sessions (KIP-227), for fault rules and the journal.

A request names only the partitions that change. Their session is known from the requests and responses that passed.
"""

from collections.abc import Collection, Iterator

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.replica.fetch_session import INITIAL_EPOCH, NO_SESSION
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.entities import name_of

# As many as Kafka's `max.incremental.fetch.session.cache.slots`; the least recently opened one is forgotten.
_MOST_SESSIONS = 1000
PartitionKey = tuple[str | bytes, int]  # topic name or id, partition


class ForwardedSessions:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._sessions: dict[int, dict[PartitionKey, None]] = {}

    def partitions_of(self, session_id: int) -> list[tuple[str, int]]:
        by_id = self._metadata.topics_by_id
        return [
            (topic if isinstance(topic, str) else name_of(topic, by_id), index)
            for topic, index in self._sessions.get(session_id, ())
        ]

    def fetched(self, request: FetchRequest, response: FetchResponse) -> Collection[PartitionKey]:
        """Return the partitions of a request with its session."""
        return self._sessions.get(response.session_id) or dict.fromkeys(_listed(request))

    def answered(self, request: FetchRequest, response: FetchResponse) -> None:
        """Keep what the session of a response now has."""
        session_id = response.session_id
        if response.error_code or session_id == NO_SESSION:
            self._sessions.pop(request.session_id, None)
            return
        partitions = self._sessions.get(session_id)
        if partitions is None or request.session_epoch == INITIAL_EPOCH:
            if len(self._sessions) >= _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            partitions = self._sessions[session_id] = {}
        partitions.update(dict.fromkeys(_listed(request)))
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                partitions.pop((forgotten.topic or forgotten.topic_id, index), None)


def _listed(request: FetchRequest) -> Iterator[PartitionKey]:
    for topic in request.topics:
        for item in topic.partitions:
            yield topic.topic or topic.topic_id, item.partition
