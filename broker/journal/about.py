"""The subject of a request: its partitions, group and transactional id, and some of its fields.

Requests about the journal's own topic are not recorded: reading them would add events without end.

The producer id, epoch and sequence come from the header of a batch of magic 2 (KIP-98), as do compression, timestamps
and the number of records. With `sluice.journal.record.hashes`, another reader of Produce requests hashes the records,
which identifies batches without a producer id.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from struct import Struct
from struct import error as StructError  # noqa: N812  (it is an exception)
from typing import TYPE_CHECKING, cast

from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.trace import AnySubject, BatchStart, NamedPartition, RequestSubject, Sent
from sluice.protocol import entities
from sluice.protocol.apis import ApiKey
from sluice.protocol.entities import Topics, name_of
from sluice.protocol.message import Message
from sluice.protocol.records.batch import MAGIC_AT

from .record_hashes import record_hashes
from .sent import SENT, bounded, fetch_sent

if TYPE_CHECKING:
    from sluice.protocol.apis.fetch import FetchRequest
    from sluice.protocol.apis.offset_commit import OffsetCommitRequest
    from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest

MOST_PARTITIONS = 16
# Magic, attributes, first and highest timestamp, producer id and epoch, base sequence, number of records.
_read_header = Struct(">b4xh4xqqqhii").unpack_from

_COMMITS = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT})

Reader = Callable[[Message], RequestSubject | None]
EMPTY_SUBJECT: AnySubject = ((), 0, "", "", ())


def reader_of(api_key: int, topics_by_id: Topics, *, hashes_records: bool = False) -> Reader:
    if api_key == ApiKey.PRODUCE:
        return cast("Reader", hashed_produce_subject if hashes_records else produce_subject)
    if api_key == ApiKey.FETCH:
        return cast("Reader", partial(_fetch_subject, topics_by_id=topics_by_id))
    fields = SENT.get(api_key)
    return partial(
        _any_subject,
        read=entities.reader_of(api_key),
        read_fields=None if fields is None else fields.read,
        is_commit=api_key in _COMMITS,
        topics_by_id=topics_by_id,
    )


def produce_subject(request: "ProduceRequest") -> RequestSubject:
    """Return the subject; nearly all requests have one batch for one partition, which is kept undecoded."""
    try:
        (topic,) = request.topic_data
        (item,) = topic.partition_data
    except ValueError:  # not exactly one
        return _many_batches_subject(request)
    records = item.records
    try:
        header = _read_header(records, MAGIC_AT)  # type: ignore[arg-type]  # the decoder returns bytes
        size = len(records)  # type: ignore[arg-type]  # as above
    except (TypeError, StructError):  # no complete batch
        header, size = None, len(cast("bytes", records or b""))
    return (
        topic.name or topic.topic_id,
        item.index,
        header,
        size,
        request.transactional_id,
        request.acks,
        request.timeout_ms,
    )


def _fetch_subject(request: "FetchRequest", topics_by_id: Topics) -> RequestSubject | None:
    # The handler adds the partitions of a fetch session.
    named: list[NamedPartition] = []
    for topic in request.topics:
        name = topic.topic or name_of(topic.topic_id, topics_by_id)
        if name == JOURNAL_TOPIC:
            return None
        named += [(name, each.partition, each.fetch_offset, None) for each in topic.partitions]
    return (*_bounded(named), "", "", fetch_sent(request))


def session_subject(partitions: Iterable[tuple[str, int, int]], request: "FetchRequest") -> AnySubject | None:
    """Return the subject of a Fetch in a session of (topic, partition, offset); None for the journal's own topic."""
    named: list[NamedPartition] = []
    for name, index, offset in partitions:
        if name == JOURNAL_TOPIC:
            return None
        named.append((name, index, offset, None))
    return (*_bounded(named), "", "", fetch_sent(request))


def _any_subject(
    request: Message,
    read: entities.Read,
    read_fields: Callable[[Message], Sent] | None,
    is_commit: bool,
    topics_by_id: Topics,
) -> AnySubject | None:
    partitions, groups, transactional_ids = read(request, topics_by_id)
    named: tuple[NamedPartition, ...] = ()
    if partitions:
        if all(name == JOURNAL_TOPIC for name, _ in partitions):
            return None
        offsets = _committed(request, topics_by_id) if is_commit else {}
        named = tuple([(*place, offsets.get(place, -1), None) for place in partitions[:MOST_PARTITIONS]])
    sent = () if read_fields is None else bounded(read_fields(request))
    return named, max(0, len(partitions) - MOST_PARTITIONS), _only(groups), _only(transactional_ids), sent


def _committed(request: Message, topics_by_id: Topics) -> dict[tuple[str, int], int]:
    """Return the offsets of a commit."""
    return {
        (topic.name or name_of(topic.topic_id, topics_by_id), each.partition_index): each.committed_offset
        for topic in cast("OffsetCommitRequest", request).topics
        for each in topic.partitions
    }


def _only(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else ""


def _many_batches_subject(request: "ProduceRequest") -> AnySubject:
    return _produce_subject(request, repeat(()))


def hashed_produce_subject(request: "ProduceRequest") -> AnySubject:
    return _produce_subject(request, record_hashes(request))


def _produce_subject(request: "ProduceRequest", hashes: Iterable[tuple[str, ...]]) -> AnySubject:
    items = ((topic.name or topic.topic_id, item) for topic in request.topic_data for item in topic.partition_data)
    named: list[NamedPartition] = [
        (name, item.index, -1, (*_batch_of(item), of_batch))
        for (name, item), of_batch in zip(items, hashes, strict=False)
    ]
    return (*_bounded(named), "", request.transactional_id or "", (request.acks, request.timeout_ms))


def _batch_of(item: "PartitionProduceData") -> tuple[BatchStart | None, int]:
    records = cast("bytes", item.records or b"")
    try:
        return _read_header(records, MAGIC_AT), len(records)
    except StructError:
        return None, len(records)


def _bounded(named: Sequence[NamedPartition]) -> tuple[tuple[NamedPartition, ...], int]:
    if len(named) <= MOST_PARTITIONS:
        return tuple(named), 0
    return tuple(named[:MOST_PARTITIONS]), len(named) - MOST_PARTITIONS
