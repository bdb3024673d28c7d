"""The topics of the upstream, by the name that a proxy knows or not."""

from collections.abc import Collection

from msgspec import Struct

from sluice.protocol.entities import NamedTopic, Topics
from sluice.protocol.types import ZERO_UUID


class KnownTopic(Struct, frozen=True):
    name: str


class UnknownIds:
    """Finds topic ids without a name, in place of the topics by id: it notes them."""

    def __init__(self, known: Topics, without_name: Collection[bytes]) -> None:
        """`without_name`: ids to leave out."""
        self.unknown: dict[bytes, None] = {}  # ordered
        self._known = known
        self._without_name = without_name

    def get(self, topic_id: bytes) -> NamedTopic | None:
        topic = self._known.get(topic_id)
        if topic is None and topic_id != ZERO_UUID and topic_id not in self._without_name:
            self.unknown[topic_id] = None
        return topic
