"""Charges from the request log of Apache Kafka since 2.8, which `kafka.request.logger` writes at DEBUG.

A line has request and response as JSON (KIP-673), with the sizes of records. The other sizes follow from the schemas
(tests compare them with the codec's), so charges are exact to the byte. The line follows the response: the charge is
earlier by the time in the response queue and of sending. The connection's local address identifies the broker.

Follows Kafka's RequestChannel.updateRequestMetrics, RequestConvertToJson and, for the charges, KafkaApis.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated

import msgspec

from .charges import USED, Gathered, Kind, lane_of
from .from_journal import NOT_CHARGED
from .request_log_line import NotUnderstoodError, split_json

FROM_FOLLOWERS = "fetches of followers"
_NS_PER_MS = 1_000_000


class _Header(msgspec.Struct, gc=False):
    requestApiVersion: Annotated[int, msgspec.Meta(ge=0, le=255)]  # noqa: N815  (the log's field names)
    requestApiKeyName: str  # noqa: N815
    clientId: str | None = None  # noqa: N815


_Millis = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Line(msgspec.Struct, gc=False):
    requestHeader: _Header  # noqa: N815
    request: msgspec.Raw
    response: msgspec.Raw
    connection: str
    principal: str
    throttleTimeMs: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]  # noqa: N815
    responseQueueTimeMs: _Millis  # noqa: N815
    sendTimeMs: _Millis  # noqa: N815
    isForwarded: bool = False  # noqa: N815


_Size = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class _ProducePartition(msgspec.Struct, gc=False):
    recordsSizeInBytes: _Size | None = None  # noqa: N815


class _ProduceTopic(msgspec.Struct, gc=False):
    partitionData: list[_ProducePartition]  # noqa: N815
    name: str = ""


class _Produce(msgspec.Struct, gc=False):
    topicData: list[_ProduceTopic]  # noqa: N815
    transactionalId: str | None = None  # noqa: N815


class _ReplicaState(msgspec.Struct, frozen=True, gc=False):
    replicaId: int = -1  # noqa: N815


class _Fetch(msgspec.Struct, gc=False):
    replicaId: int = -1  # noqa: N815
    replicaState: _ReplicaState = _ReplicaState()  # noqa: N815


class _FetchPartition(msgspec.Struct, gc=False):
    recordsSizeInBytes: _Size | None = None  # noqa: N815
    recordSetSizeInBytes: _Size | None = None  # noqa: N815  (2.8)
    abortedTransactions: list[msgspec.Raw] | None = None  # noqa: N815


class _FetchTopic(msgspec.Struct, gc=False):
    partitions: list[_FetchPartition] = []
    partitionResponses: list[_FetchPartition] = []  # noqa: N815  (2.8)
    topic: str = ""


class _Fetched(msgspec.Struct, gc=False):
    responses: list[_FetchTopic]


_line, _produce = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Produce)
_fetch, _fetched = msgspec.json.Decoder(_Fetch), msgspec.json.Decoder(_Fetched)


def take_line(line: str, gathered: Gathered) -> str | None:
    """Add one line; return the reason if it is invalid."""
    try:
        written_ns, body = split_json(line)
        found = _line.decode(body)
        header = found.requestHeader
        is_fetch = header.requestApiKeyName == "FETCH"
        if not is_fetch and header.requestApiKeyName != "PRODUCE":
            gathered.counts[NOT_CHARGED] += 1
            return None
        if is_fetch and _is_of_follower(_fetch.decode(found.request)):
            gathered.counts[FROM_FOLLOWERS] += 1
            return None
        value = _fetched_bytes(found) if is_fetch else _produced_bytes(found)
    except NotUnderstoodError as error:
        return str(error)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return f"malformed completed request: {error}"
    if is_fetch and found.throttleTimeMs:
        value = 0  # the connection was muted, after an empty response
    at_ns = written_ns - round((found.responseQueueTimeMs + found.sendTimeMs) * _NS_PER_MS)
    connection = int.from_bytes(blake2b(found.connection.encode(), digest_size=6).digest())
    kind: Kind = "Fetch" if is_fetch else "Produce"
    columns = gathered.columns(kind, found.connection.partition("-")[0], found.principal, header.clientId or "")
    columns.append(at_ns, value, lane_of(connection, header.requestApiVersion), found.throttleTimeMs)
    gathered.counts[USED] += 1
    return None


def _is_of_follower(fetch: _Fetch) -> bool:
    return fetch.replicaId >= 0 or fetch.replicaState.replicaId >= 0


def _produced_bytes(line: _Line) -> int:
    request = _produce.decode(line.request)
    topics = [(topic.name, [each.recordsSizeInBytes for each in topic.partitionData]) for topic in request.topicData]
    header = line.requestHeader
    return produce_request_size(header.requestApiVersion, header.clientId, request.transactionalId, topics)


def _fetched_bytes(line: _Line) -> int:
    topics = []
    for topic in _fetched.decode(line.response).responses:
        partitions = [
            (_either(each.recordsSizeInBytes, each.recordSetSizeInBytes), len(each.abortedTransactions or ()))
            for each in topic.partitions or topic.partitionResponses
        ]
        topics.append((topic.topic, partitions))
    return fetch_response_size(line.requestHeader.requestApiVersion, topics)


def _either(newer: int | None, older: int | None) -> int | None:
    return older if newer is None else newer


_Topics = Sequence[tuple[str, Sequence[int | None]]]  # topic names with the records' bytes of each partition

_FLEXIBLE_PRODUCE, _FLEXIBLE_FETCH = 9, 12
_TOPIC_IDS_PRODUCE = _TOPIC_IDS_FETCH = 13
_TOPIC_ID_BYTES = 16


def produce_request_size(version: int, client_id: str | None, transactional_id: str | None, topics: _Topics) -> int:
    """Return the charged bytes of a Produce request: the request with its header."""
    flexible = version >= _FLEXIBLE_PRODUCE
    size = 10 + _text(client_id) + flexible  # the header: API, version, correlation id, client id's length, tags
    size += 6 + _array(len(topics), flexible) + flexible  # acks, timeout
    if version >= 3:
        size += _string(transactional_id, flexible)
    for name, partitions in topics:
        size += _topic(name, flexible, by_id=version >= _TOPIC_IDS_PRODUCE) + _array(len(partitions), flexible)
        size += sum(4 + _records(nbytes, flexible) + flexible for nbytes in partitions)
    return size


def fetch_response_size(version: int, topics: Sequence[tuple[str, Sequence[tuple[int | None, int | None]]]]) -> int:
    """Return the charged bytes of a Fetch response: without its header, with the 4 bytes of the size prefix.

    `topics`: names, with the records' bytes and the number of aborted transactions of each partition, or None.
    """
    flexible = version >= _FLEXIBLE_FETCH
    size = 4 + _array(len(topics), flexible) + flexible
    size += 4 * (version >= 1) + 6 * (version >= 7)  # throttle time; error code and session
    each = 14 + 8 * (version >= 4) + 8 * (version >= 5) + 4 * (version >= 11) + flexible
    for name, partitions in topics:
        size += _topic(name, flexible, by_id=version >= _TOPIC_IDS_FETCH) + _array(len(partitions), flexible)
        for nbytes, aborted in partitions:
            size += each + _records(nbytes, flexible)
            if version >= 4:
                size += _array(aborted or 0, flexible) + (aborted or 0) * (16 + flexible)
    return size


def _topic(name: str, flexible: bool, *, by_id: bool) -> int:
    return (_TOPIC_ID_BYTES if by_id else _string(name, flexible)) + flexible


def _string(text: str | None, flexible: bool) -> int:
    nbytes = _text(text)
    return nbytes + (_varint(nbytes + 1) if flexible and text is not None else 1 if flexible else 2)


def _text(text: str | None) -> int:
    return 0 if text is None else len(text.encode())


def _records(nbytes: int | None, flexible: bool) -> int:
    if nbytes is None:
        return 1 if flexible else 4
    return nbytes + (_varint(nbytes + 1) if flexible else 4)


def _array(count: int, flexible: bool) -> int:
    return _varint(count + 1) if flexible else 4


def _varint(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))
