"""The topics in a consumer's metadata (Kafka's ConsumerMetadata); with a pattern, all topics."""

from collections.abc import Iterable

from sluice.client.backoff import Backoff
from sluice.client.metadata.metadata import Metadata
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic

from .subscription_state import SubscriptionState


class ConsumerMetadata(Metadata):
    def __init__(
        self,
        refresh_backoff: Backoff,
        max_age_ms: int,
        subscriptions: SubscriptionState,
        *,
        equivalent_backoff: Backoff | None,
        creates_topics: bool,
        includes_internal: bool,
    ) -> None:
        super().__init__(refresh_backoff, max_age_ms, equivalent_backoff=equivalent_backoff)
        self._subscriptions = subscriptions
        self._creates_topics = creates_topics
        self._includes_internal = includes_internal
        self._transient: dict[str, int] = {}  # number of calls that look a topic up
        subscriptions.on_change = self._other_topics

    def _other_topics(self) -> None:
        self.request_update_for_new_topics()

    def add_transient(self, topics: Iterable[str]) -> None:
        is_new = False
        for topic in topics:
            self._transient[topic] = self._transient.get(topic, 0) + 1
            is_new = is_new or topic not in self.cluster.topics
        if is_new:
            self.request_update_for_new_topics()

    def remove_transient(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._transient[topic] -= 1
            if not self._transient[topic]:
                del self._transient[topic]

    def request_for_all(self) -> MetadataRequest:
        if self._subscriptions.pattern is not None:
            return MetadataRequest(topics=None, allow_auto_topic_creation=self._creates_topics)
        topics = sorted({*self._subscriptions.metadata_topics, *self._transient})
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=self._creates_topics,
        )

    def retains_topic(self, topic: str, is_internal: bool, now_ms: float) -> bool:
        if topic in self._transient or topic in self._subscriptions.metadata_topics:
            return True
        pattern = self._subscriptions.pattern
        if pattern is None or (is_internal and not self._includes_internal):
            return False
        return pattern.fullmatch(topic) is not None
