"""Charges from the request log of Apache Kafka since 2.8, which `kafka.request.logger` writes at DEBUG.

A line has request and response as JSON (KIP-673), with the sizes of records. The other sizes follow from the schemas,
so charges are exact to the byte. The line follows the response: the charge is earlier by the time in the response queue
and of sending. The connection's local address identifies the broker.

Follows Kafka's RequestChannel.updateRequestMetrics, RequestConvertToJson and, for the charges, KafkaApis.
"""

from hashlib import blake2b
from typing import Annotated

import msgspec

from .charges import USED, Gathered, Kind, lane_of
from .from_journal import NOT_CHARGED
from .request_log_line import NotUnderstoodError, split_json
from .request_sizes import fetch_response_size, produce_request_size

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
