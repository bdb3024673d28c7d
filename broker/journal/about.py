"""What a request is about, taken from it at little cost while it is handled: nothing here refers to record bytes.

What is asked about the journal's own topic is not in the journal: reading that would never come to an end.

Producer id, epoch and sequence stand in the header of a batch of magic 2 (KIP-98), where they are read from.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812  (it is an exception)
from typing import TYPE_CHECKING, cast

from sluice.broker.topic import JOURNAL_TOPIC
from sluice.protocol.apis import FETCH, PRODUCE
from sluice.protocol.message import Message

if TYPE_CHECKING:
    from sluice.broker.topic import Topic
    from sluice.protocol.apis.fetch import FetchRequest
    from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest

MOST_PARTITIONS = 16
_MAGIC_AT, _MAGIC = 16, 2
_read_header = Struct(">b26xqhi").unpack_from
NO_PRODUCER = (-1, -1, -1)
_WHOLE_TOPIC = -1

# Topic, by name or id, partition, and the producer's id, epoch and base sequence.
Named = tuple[str | bytes, int, int, int, int]
# What is named, how much more is, group id, transactional id. None: it is not for the journal.
AboutAny = tuple[tuple[Named, ...], int, str, str]
# The same of a produce request with one partition, as it is at hand: the topic's name or id, the partition, what its
# batch begins with, transactional id.
BatchHeader = tuple[int, int, int, int]  # magic, and the producer's id, epoch and base sequence
AboutBatch = tuple[str | bytes, int, BatchHeader | None, str | None]
About = AboutAny | AboutBatch
Topics = Mapping[bytes, "Topic"]
Reader = Callable[[Message], About | None]
NOTHING: AboutAny = ((), 0, "", "")

# Where requests have what they name, by the names of Kafka's fields.
_HOLDERS = ("groups", "transactions", "markers")
_TOPICS = ("topics", "v3_and_below_topics", "topic_partitions", "topic_names", "subscribed_topic_names")
_TOPIC_NAMES = ("name", "topic", "topic_name")
_PARTITIONS = ("partitions", "partition_indexes")
_INDEXES = ("partition_index", "partition")
_GROUP_IDS = ("group_id", "groups", "groups_names", "group_ids")
_TRANSACTIONAL_IDS = ("transactional_id", "v3_and_below_transactional_id", "transactions", "transactional_ids")
_FIND_COORDINATOR = 10
_TRANSACTION_KEY = 1


def reader_of(api_key: int, topics_by_id: Topics) -> Reader:
    """What takes this from the requests of an API."""
    if api_key == PRODUCE:
        return cast("Reader", of_produce)
    if api_key == FETCH:
        return cast("Reader", partial(_of_fetch, topics_by_id=topics_by_id))
    if api_key == _FIND_COORDINATOR:
        return _of_find_coordinator
    return partial(_of_any, topics_by_id=topics_by_id)


def of_produce(request: "ProduceRequest") -> About:
    """Nearly every request has one batch for one partition, of which only the least is taken here."""
    try:
        (topic,) = request.topic_data
        (item,) = topic.partition_data
    except ValueError:  # there are more
        return _of_many_batches(request)
    try:
        header = _read_header(item.records, _MAGIC_AT)  # type: ignore[arg-type]  # the decoder gives bytes
    except (TypeError, StructError):  # there are none, or what there is is no batch
        header = None
    return topic.name or topic.topic_id, item.index, header, request.transactional_id


def producer_in(header: BatchHeader | None) -> tuple[int, int, int]:
    """Its id, epoch and base sequence."""
    return header[1:] if header is not None and header[0] == _MAGIC else NO_PRODUCER


def _of_fetch(request: "FetchRequest", topics_by_id: Topics) -> About | None:
    """What the request itself names; of one in a session, the handler says what that has."""
    return of_partitions(
        (topic.topic or name_of(topic.topic_id, topics_by_id), item.partition)
        for topic in request.topics
        for item in topic.partitions
    )


def of_partitions(partitions: Iterable[tuple[str, int]]) -> AboutAny | None:
    """These partitions and nothing else."""
    named = [(name, index, *NO_PRODUCER) for name, index in partitions]
    if any(name == JOURNAL_TOPIC for name, *_ in named):
        return None
    return (*_bounded(named), "", "")


def _of_any(request: Message, topics_by_id: Topics) -> AboutAny | None:
    """Of a request that does not come often."""
    named = [
        one
        for holder in (request, *_messages(request, _HOLDERS))
        for topic in _listed(holder, _TOPICS)
        for one in _named(topic, topics_by_id)
    ]
    if named and all(name == JOURNAL_TOPIC for name, *_ in named):
        return None
    group_id, transactional_id = _id(request, _GROUP_IDS), _id(request, _TRANSACTIONAL_IDS)
    return (*_bounded(named), group_id, transactional_id)


def _of_find_coordinator(request: Message) -> AboutAny:
    key = _id(request, ("key", "coordinator_keys"))
    is_of_transactions = getattr(request, "key_type", 0) == _TRANSACTION_KEY
    return ((), 0, "", key) if is_of_transactions else ((), 0, key, "")


def _of_many_batches(request: "ProduceRequest") -> AboutAny:
    named = [
        (topic.name or topic.topic_id, item.index, *_producer_of(item))
        for topic in request.topic_data
        for item in topic.partition_data
    ]
    return (*_bounded(named), "", request.transactional_id or "")


def _producer_of(item: "PartitionProduceData") -> tuple[int, int, int]:
    try:
        return producer_in(_read_header(item.records, _MAGIC_AT))  # type: ignore[arg-type]  # as above
    except (TypeError, StructError):
        return NO_PRODUCER


def _bounded(named: Sequence[Named]) -> tuple[tuple[Named, ...], int]:
    return tuple(named[:MOST_PARTITIONS]), max(0, len(named) - MOST_PARTITIONS)


def name_of(topic_id: bytes, topics_by_id: Topics) -> str:
    """The topic's name; its id in hexadecimal, where nobody knows it."""
    topic = topics_by_id.get(topic_id)
    return topic_id.hex() if topic is None else topic.name


def _listed(holder: object, fields: tuple[str, ...]) -> list[object]:
    """What is in the lists that a message has under these names."""
    return [item for field in fields for item in getattr(holder, field, None) or ()]


def _messages(holder: object, fields: tuple[str, ...]) -> list[Message]:
    return [item for item in _listed(holder, fields) if isinstance(item, Message)]


def _named(topic: object, topics_by_id: Topics) -> list[Named]:
    if isinstance(topic, str):
        return [(topic, _WHOLE_TOPIC, *NO_PRODUCER)]
    topic_id: bytes = getattr(topic, "topic_id", b"")
    given: list[str] = [found for field in _TOPIC_NAMES if (found := getattr(topic, field, None))]
    name = given[0] if given else name_of(topic_id, topics_by_id)
    indexes = [_index(item) for item in _listed(topic, _PARTITIONS)]
    return [(name, index, *NO_PRODUCER) for index in indexes or (_WHOLE_TOPIC,)]


def _index(item: object) -> int:
    if isinstance(item, int):
        return item
    found: int = next(getattr(item, field) for field in _INDEXES if hasattr(item, field))
    return found


def _id(request: object, fields: tuple[str, ...]) -> str:
    """The id that a request has under one of these names or, where it has a list, the only one in that."""
    for field in fields:
        found = getattr(request, field, None)
        if isinstance(found, list):
            found = found[0] if len(found) == 1 else None
        if isinstance(found, Message):
            return _id(found, fields)
        if isinstance(found, str) and found:
            return found
    return ""
