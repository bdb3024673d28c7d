"""The topics in a producer's metadata (Kafka's ProducerMetadata).

A topic that is unused for `metadata.max.idle.ms` is removed at the next update (KIP-526). A new topic is kept until a
response contains it.
"""

from sluice.client.backoff import Backoff
from sluice.client.metadata.metadata import Metadata, MetadataRequestAndVersion
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


class ProducerMetadata(Metadata):
    def __init__(
        self, refresh_backoff: Backoff, max_age_ms: int, max_idle_ms: int, *, equivalent_backoff: Backoff | None
    ) -> None:
        super().__init__(refresh_backoff, max_age_ms, equivalent_backoff=equivalent_backoff)
        self._max_idle_ms = max_idle_ms
        self._expire_ms: dict[str, float] = {}
        self._new_topics: dict[str, None] = {}

    def add(self, topic: str, now_ms: float) -> None:
        is_new = topic not in self._expire_ms
        self._expire_ms[topic] = now_ms + self._max_idle_ms
        if is_new:
            self._new_topics[topic] = None
            self.request_update_for_new_topics()

    def request_update_for_topic(self, topic: str) -> int:
        return self.request_update_for_new_topics() if topic in self._new_topics else self.request_update()

    @property
    def topics(self) -> list[str]:
        return list(self._expire_ms)

    def request_for_all(self) -> MetadataRequest:
        return _request(self._expire_ms)

    def request_for_new_topics(self) -> MetadataRequest | None:
        return _request(self._new_topics)

    def retains_topic(self, topic: str, is_internal: bool, now_ms: float) -> bool:
        expire_ms = self._expire_ms.get(topic)
        if expire_ms is None:
            return False
        if topic in self._new_topics or expire_ms > now_ms:
            return True
        del self._expire_ms[topic]
        return False

    def update(self, sent: MetadataRequestAndVersion, response: MetadataResponse, version: int, now_ms: float) -> None:
        super().update(sent, response, version, now_ms)
        for topic in response.topics:
            self._new_topics.pop(topic.name or "", None)


def _request(topics: dict[str, float] | dict[str, None]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=True
    )
