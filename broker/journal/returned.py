"""Fields of responses that the journal records: offsets, generations, assignments, watermarks.

They are read from the kept response (kept.py) when an event is read. Its records are not there; they are replaced by
their size, so that reading an event takes no longer with more records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec import Struct

from sluice.broker.requests.trace import Returned
from sluice.errors import RemoteProtocolError
from sluice.journal_events import FetchedRecords, Value
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, read_embedded
from sluice.protocol.entities import Topics, name_of

from .sent import first_items

if TYPE_CHECKING:
    from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
    from sluice.protocol.apis.fetch import FetchResponse
    from sluice.protocol.apis.find_coordinator import FindCoordinatorResponse
    from sluice.protocol.apis.init_producer_id import InitProducerIdResponse
    from sluice.protocol.apis.join_group import JoinGroupResponse
    from sluice.protocol.apis.list_offsets import ListOffsetsResponse
    from sluice.protocol.apis.offset_fetch import OffsetFetchResponse
    from sluice.protocol.apis.produce import ProduceResponse
    from sluice.protocol.apis.sync_group import SyncGroupResponse

_MOST_PARTITIONS = 16
_SIZE_BYTES = 4  # the smallest batch has 14

Place = tuple[str, int]  # topic, partition


class ReturnedFields(Struct):
    """The recorded fields of a response."""

    fields: dict[str, Value] = {}
    offsets: Mapping[Place, int] = {}
    fetched: Mapping[Place, FetchedRecords] = {}


class RecordedResponse(NamedTuple):
    """What is recorded of an API's responses: the names of fields, and a function that reads those that exist."""

    names: tuple[str, ...]
    read: Callable[..., ReturnedFields]


def returned_fields(api_key: int, version: int, returned: Returned | None, topics: Topics) -> ReturnedFields:
    """Decode a response. A corrupted one, by a fault, has no fields."""
    if returned is None:
        return ReturnedFields()
    api = API_KEYS[api_key]
    if type(returned) is not bytes:
        returned = _with_sizes(returned, is_flexible=api.response_header_version(version) > 0)
    try:
        response, _ = decode_prefix(api.response, version)(memoryview(returned), 0, len(returned))
        return RETURNED[api_key].read(response, topics)
    except (RemoteProtocolError, ValueError):
        return ReturnedFields()


def _with_sizes(pieces: Sequence[bytes | int], *, is_flexible: bool) -> bytes:
    """Return a response whose records are replaced by their size in `_SIZE_BYTES` bytes."""
    found: list[bytes] = []
    for is_left_out, run in groupby(pieces, lambda piece: type(piece) is int):
        if not is_left_out:
            found += cast("Iterator[bytes]", run)
            continue
        size = sum(cast("Iterator[int]", run))
        # The length precedes the records: an int32, or in flexible versions a varint of the length plus 1.
        length_bytes = -(-(size + 1).bit_length() // 7) if is_flexible else 4
        length = bytes((_SIZE_BYTES + 1,)) if is_flexible else _SIZE_BYTES.to_bytes(4)
        found[-1] = found[-1][:-length_bytes] + length
        found.append(size.to_bytes(_SIZE_BYTES))
    return b"".join(found)


def _produce(response: "ProduceResponse", topics: Topics) -> ReturnedFields:
    return ReturnedFields(
        offsets={
            (topic.name or name_of(topic.topic_id, topics), each.index): each.base_offset
            for topic in response.responses
            for each in islice(topic.partition_responses, _MOST_PARTITIONS)
        }
    )


def _fetch(response: "FetchResponse", topics: Topics) -> ReturnedFields:
    return ReturnedFields(
        fetched={
            (topic.topic or name_of(topic.topic_id, topics), each.partition_index): FetchedRecords(
                bytes=_size(each.records),
                high_watermark=each.high_watermark,
                last_stable_offset=each.last_stable_offset,
            )
            for topic in response.responses
            for each in topic.partitions
        },
        fields={"session_id": response.session_id},
    )


def _size(records: object) -> int:
    found = cast("bytes", records or b"")
    return int.from_bytes(found) if len(found) == _SIZE_BYTES else len(found)


def _list_offsets(response: "ListOffsetsResponse", _: Topics) -> ReturnedFields:
    return ReturnedFields(
        offsets={
            (topic.name, each.partition_index): each.offset if not each.old_style_offsets else each.old_style_offsets[0]
            for topic in response.topics
            for each in topic.partitions
        }
    )


def _find_coordinator(response: "FindCoordinatorResponse", _: Topics) -> ReturnedFields:
    node_id = response.coordinators[0].node_id if response.coordinators else response.node_id
    return ReturnedFields(fields={"node_id": node_id})


def _join_group(response: "JoinGroupResponse", _: Topics) -> ReturnedFields:
    fields: dict[str, Value] = {
        "generation_id": response.generation_id,
        "member_id": response.member_id,
        "leader": response.leader,
    }
    if response.protocol_name is not None:
        fields["protocol_name"] = response.protocol_name
    if response.members:
        fields["members"] = first_items(each.member_id for each in response.members)
    return ReturnedFields(fields=fields)


def _sync_group(response: "SyncGroupResponse", _: Topics) -> ReturnedFields:
    fields: dict[str, Value] = {}
    if response.protocol_name is not None:
        fields["protocol_name"] = response.protocol_name
    assigned = _assigned(response)
    if assigned is not None:
        fields["assignment"] = assigned
    return ReturnedFields(fields=fields)


def _assigned(response: "SyncGroupResponse") -> list[str] | None:
    """Return the assigned partitions; None if the assignment is not one of the consumer protocol."""
    if response.error_code or response.protocol_type not in (None, PROTOCOL_TYPE):
        return None
    data = bytes(response.assignment)
    assignment = read_embedded(Assignment, data) if data else Assignment()
    if assignment is None:
        return None
    return first_items(_places((each.topic, each.partitions) for each in assignment.assigned_partitions))


def _consumer_group_heartbeat(response: "ConsumerGroupHeartbeatResponse", topics: Topics) -> ReturnedFields:
    fields: dict[str, Value] = {
        "member_epoch": response.member_epoch,
        "heartbeat_interval_ms": response.heartbeat_interval_ms,
    }
    if response.member_id is not None:
        fields["member_id"] = response.member_id
    if response.assignment is not None:
        named = ((name_of(each.topic_id, topics), each.partitions) for each in response.assignment.topic_partitions)
        fields["assignment"] = first_items(_places(named))
    return ReturnedFields(fields=fields)


def _places(partitions: Iterable[tuple[str, Sequence[int]]]) -> Iterator[str]:
    return (f"{topic}-{index}" for topic, indexes in partitions for index in indexes)


def _init_producer_id(response: "InitProducerIdResponse", _: Topics) -> ReturnedFields:
    return ReturnedFields(fields={"producer_id": response.producer_id, "producer_epoch": response.producer_epoch})


def _offset_fetch(response: "OffsetFetchResponse", topics: Topics) -> ReturnedFields:
    found = {
        (topic.name, each.partition_index): each.committed_offset
        for topic in response.topics
        for each in topic.partitions
    }
    for group in response.groups[:1]:
        for of_group in group.topics:
            name = of_group.name or name_of(of_group.topic_id, topics)
            found |= {(name, each.partition_index): each.committed_offset for each in of_group.partitions}
    return ReturnedFields(offsets=found)


RETURNED: dict[int, RecordedResponse] = {
    ApiKey.PRODUCE: RecordedResponse((), _produce),
    ApiKey.FETCH: RecordedResponse(("session_id",), _fetch),
    ApiKey.LIST_OFFSETS: RecordedResponse((), _list_offsets),
    ApiKey.FIND_COORDINATOR: RecordedResponse(("node_id",), _find_coordinator),
    ApiKey.JOIN_GROUP: RecordedResponse(
        ("generation_id", "member_id", "leader", "protocol_name", "members"), _join_group
    ),
    ApiKey.SYNC_GROUP: RecordedResponse(("protocol_name", "assignment"), _sync_group),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: RecordedResponse(
        ("member_id", "member_epoch", "heartbeat_interval_ms", "assignment"), _consumer_group_heartbeat
    ),
    ApiKey.INIT_PRODUCER_ID: RecordedResponse(("producer_id", "producer_epoch"), _init_producer_id),
    ApiKey.OFFSET_FETCH: RecordedResponse((), _offset_fetch),
}
