"""The subject of a request: its partitions, group and transactional id.

Requests about the journal's own topic are not recorded: reading them would add events without end.

The producer id, epoch and sequence come from the header of a batch of magic 2 (KIP-98). With
`sluice.journal.record.hashes`, another reader of Produce requests hashes the records, which identifies batches without
a producer id.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812  (it is an exception)
from typing import cast

from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.trace import AnySubject, BatchStart, NamedPartition, RequestSubject
from sluice.protocol import entities
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest
from sluice.protocol.entities import Topics
from sluice.protocol.message import Message

from .record_hashes import record_hashes

MOST_PARTITIONS = 16
_MAGIC_AT, _MAGIC = 16, 2
_read_header = Struct(">b26xqhi").unpack_from
NO_PRODUCER = (-1, -1, -1)

Reader = Callable[[Message], RequestSubject | None]
EMPTY_SUBJECT: AnySubject = ((), 0, "", "")


def reader_of(api_key: int, topics_by_id: Topics, *, hashes_records: bool = False) -> Reader:
    if api_key == ApiKey.PRODUCE:
        return cast("Reader", hashed_produce_subject if hashes_records else produce_subject)
    if api_key == ApiKey.FETCH:
        return partial(_fetch_subject, read=entities.reader_of(ApiKey.FETCH), topics_by_id=topics_by_id)
    return partial(_any_subject, read=entities.reader_of(api_key), topics_by_id=topics_by_id)


def produce_subject(request: ProduceRequest) -> RequestSubject:
    """Return the subject; nearly all requests have one batch for one partition, which is kept undecoded."""
    try:
        (topic,) = request.topic_data
        (item,) = topic.partition_data
    except ValueError:  # not exactly one
        return _many_batches_subject(request)
    try:
        header = _read_header(item.records, _MAGIC_AT)  # type: ignore[arg-type]  # the decoder returns bytes
    except (TypeError, StructError):  # no complete batch
        header = None
    return topic.name or topic.topic_id, item.index, header, request.transactional_id


def producer_of_header(header: BatchStart | None) -> tuple[int, int, int]:
    return header[1:] if header is not None and header[0] == _MAGIC else NO_PRODUCER


def _fetch_subject(request: Message, read: entities.Read, topics_by_id: Topics) -> RequestSubject | None:
    # The handler adds the partitions of a fetch session.
    return partitions_subject(read(request, topics_by_id)[0])


def partitions_subject(partitions: Iterable[tuple[str, int]]) -> AnySubject | None:
    """Return None for the journal's own topic."""
    named: list[NamedPartition] = []
    for name, index in partitions:
        if name == JOURNAL_TOPIC:
            return None
        named.append((name, index, -1, -1, -1))
    return (*_bounded(named), "", "")


def _any_subject(request: Message, read: entities.Read, topics_by_id: Topics) -> AnySubject | None:
    partitions, groups, transactional_ids = read(request, topics_by_id)
    if partitions and all(name == JOURNAL_TOPIC for name, _ in partitions):
        return None
    named = tuple((name, index, *NO_PRODUCER) for name, index in partitions[:MOST_PARTITIONS])
    return named, max(0, len(partitions) - MOST_PARTITIONS), _only(groups), _only(transactional_ids)


def _only(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else ""


def _many_batches_subject(request: ProduceRequest) -> AnySubject:
    named = [
        (topic.name or topic.topic_id, item.index, *_producer_of(item))
        for topic in request.topic_data
        for item in topic.partition_data
    ]
    return (*_bounded(named), "", request.transactional_id or "")


def hashed_produce_subject(request: ProduceRequest) -> AnySubject:
    named, left_off, group_id, transactional_id = _many_batches_subject(request)
    hashed = [(*one[:5], hashes) for one, hashes in zip(named, record_hashes(request), strict=False)]
    return tuple(hashed), left_off, group_id, transactional_id


def _producer_of(item: PartitionProduceData) -> tuple[int, int, int]:
    try:
        return producer_of_header(_read_header(item.records, _MAGIC_AT))  # type: ignore[arg-type]  # as above
    except (TypeError, StructError):
        return NO_PRODUCER


def _bounded(named: Sequence[NamedPartition]) -> tuple[tuple[NamedPartition, ...], int]:
    return tuple(named[:MOST_PARTITIONS]), max(0, len(named) - MOST_PARTITIONS)
