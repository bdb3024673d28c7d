"""What a request names: topics and partitions, groups, transactional ids; read by the names that Kafka's fields have.

For those who look at requests of any API (journal, fault rules). Handlers know their own fields.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sluice.protocol.message import Message

if TYPE_CHECKING:
    from sluice.broker.metadata.topic import Topic

WHOLE_TOPIC = -1  # in place of a partition's index
FIND_COORDINATOR = 10

# Where requests have what they name. Those behind the first have topics in turn.
HOLDERS = ("groups", "transactions", "markers", "dirs")
TOPICS = ("topics", "topic_data", "v3_and_below_topics", "topic_partitions", "topic_names", "subscribed_topic_names")
PARTITIONS = ("partitions", "partition_data", "partition_indexes")
GROUP_IDS = ("group_id", "groups", "groups_names", "group_ids")
TRANSACTIONAL_IDS = ("transactional_id", "v3_and_below_transactional_id", "transactions", "transactional_ids")
_TOPIC_NAMES = ("name", "topic", "topic_name")
_INDEXES = ("partition_index", "partition", "index")
_KEYS = ("key", "coordinator_keys")
_TRANSACTION_KEY = 1

Topics = Mapping[bytes, "Topic"]


def partitions_in(request: Message, topics_by_id: Topics) -> Iterator[tuple[str, int]]:
    """Each partition that is named, by its topic's name and its index; WHOLE_TOPIC where only the topic is."""
    for holder in (request, *_messages(request, HOLDERS)):
        for topic in _listed(holder, TOPICS):
            yield from _partitions_of(topic, topics_by_id)


def groups_in(api_key: int, request: Message) -> list[str]:
    """The groups that are named."""
    if api_key == FIND_COORDINATOR:
        return [] if _is_of_transactions(request) else _ids(request, _KEYS)
    return _ids(request, GROUP_IDS)


def transactional_ids_in(api_key: int, request: Message) -> list[str]:
    """The transactional ids that are named."""
    if api_key == FIND_COORDINATOR:
        return _ids(request, _KEYS) if _is_of_transactions(request) else []
    return _ids(request, TRANSACTIONAL_IDS)


def name_of(topic_id: bytes, topics_by_id: Topics) -> str:
    """The topic's name; its id in hexadecimal, where nobody knows it."""
    topic = topics_by_id.get(topic_id)
    return topic_id.hex() if topic is None else topic.name


def _is_of_transactions(request: Message) -> bool:
    return bool(getattr(request, "key_type", 0) == _TRANSACTION_KEY)


def _listed(holder: object, fields: tuple[str, ...]) -> list[object]:
    """What is in the lists that a message has under these names."""
    return [item for field in fields for item in getattr(holder, field, None) or ()]


def _messages(holder: object, fields: tuple[str, ...]) -> list[Message]:
    return [item for item in _listed(holder, fields) if isinstance(item, Message)]


def _partitions_of(topic: object, topics_by_id: Topics) -> list[tuple[str, int]]:
    if isinstance(topic, str):
        return [(topic, WHOLE_TOPIC)]
    topic_id: bytes = getattr(topic, "topic_id", b"")
    given: list[str] = [found for field in _TOPIC_NAMES if (found := getattr(topic, field, None))]
    name = given[0] if given else name_of(topic_id, topics_by_id)
    return [(name, _index(item)) for item in _listed(topic, PARTITIONS)] or [(name, WHOLE_TOPIC)]


def _index(item: object) -> int:
    if isinstance(item, int):
        return item
    found: int = next(getattr(item, field) for field in _INDEXES if hasattr(item, field))
    return found


def _ids(request: Message, fields: tuple[str, ...]) -> list[str]:
    """The ids that a request has under the first of these names under which it has any."""
    for field in fields:
        value = getattr(request, field, None)
        ids = [_id(item, fields) for item in (value if isinstance(value, list) else [value])]
        found = [each for each in ids if each]
        if found:
            return found
    return []


def _id(item: object, fields: tuple[str, ...]) -> str:
    if isinstance(item, Message):
        return next(iter(_ids(item, fields)), "")
    return item if isinstance(item, str) else ""
