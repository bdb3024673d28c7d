"""Charges from Apache Kafka's request log, which `kafka.request.logger` writes at DEBUG, a line per request.

- Since Kafka 2.8 a line has request and response as JSON (KIP-673), with the sizes of records. The other sizes follow
  from the schemas, so charges are exact to the byte.
- Before 2.8 it has the text of Java objects, with the record sizes of a Produce request only at TRACE. Lines without
  sizes are quarantined.

The line follows the response: the charge is earlier by the time in the response queue and of sending, and up to Kafka
1.1 by the throttle time. Timestamps without a zone are UTC. The connection's local address identifies the broker.

Follows Kafka's RequestChannel.updateRequestMetrics, RequestConvertToJson and, for the charges, KafkaApis.
"""

import re
from hashlib import blake2b
from typing import Annotated, NamedTuple

import msgspec

from .charges import USED, Gathered, Kind, lane_of
from .from_journal import NOT_CHARGED
from .request_log_line import NotUnderstoodError, split_line
from .request_sizes import fetch_response_size, produce_request_size

FROM_FOLLOWERS = "fetches of followers"
_NS_PER_MS = 1_000_000


class _Completed(NamedTuple):
    kind: Kind
    version: int
    client_id: str
    connection: str
    principal: str
    value: int
    after_ms: float  # time in the response queue, and of sending
    throttle_ms: int
    was_delayed: bool  # whether the throttle time delayed the response


def take_line(line: str, gathered: Gathered) -> str | None:
    """Add one line; return the reason if it is invalid."""
    try:
        written_ns, body = split_line(line)
        completed = _of_json(body) if body.startswith("{") else _of_text(body)
    except NotUnderstoodError as error:
        return str(error)
    except (ValueError, OverflowError, RecursionError) as error:  # invalid or too large numbers
        return f"malformed completed request: {error}"
    if isinstance(completed, str):
        gathered.counts[completed] += 1
        return None
    at_ns, value = written_ns - round(completed.after_ms * _NS_PER_MS), completed.value
    if completed.was_delayed:
        at_ns -= completed.throttle_ms * _NS_PER_MS
    elif completed.throttle_ms and completed.kind == "Fetch":
        value = 0  # the connection was muted, after an empty response
    connection = int.from_bytes(blake2b(completed.connection.encode(), digest_size=6).digest())
    broker = completed.connection.partition("-")[0]
    columns = gathered.columns(completed.kind, broker, completed.principal, completed.client_id)
    columns.append(at_ns, value, lane_of(connection, completed.version), completed.throttle_ms)
    gathered.counts[USED] += 1
    return None


# -- JSON, since Kafka 2.8 ---------------------------------------------------------------------------------------------


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


def _of_json(body: str) -> _Completed | str:
    try:
        line = _line.decode(body[: body.rindex("}") + 1])
        header = line.requestHeader
        if header.requestApiKeyName not in ("PRODUCE", "FETCH"):
            return NOT_CHARGED
        is_fetch = header.requestApiKeyName == "FETCH"
        if is_fetch and _is_of_follower(_fetch.decode(line.request)):
            return FROM_FOLLOWERS
        value = _fetched_bytes(line) if is_fetch else _produced_bytes(line)
    except (msgspec.MsgspecError, ValueError) as error:
        raise NotUnderstoodError(f"malformed completed request: {error}") from None
    return _Completed(
        "Fetch" if is_fetch else "Produce",
        header.requestApiVersion,
        header.clientId or "",
        line.connection,
        line.principal,
        value,
        line.responseQueueTimeMs + line.sendTimeMs,
        line.throttleTimeMs,
        was_delayed=False,
    )


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


# -- text, up to Kafka 2.7 ---------------------------------------------------------------------------------------------

_TEXT = re.compile(
    r"RequestHeader\(apiKey=(\w+), apiVersion=(\d{1,3}), clientId=(.*?), correlationId=-?\d+\) -- (.*)"
    r",response:(.*) from connection (\S+);totalTime:([\d.]{1,20}),requestQueueTime:.*?,throttleTime:([\d.]{1,20})"
    r",responseQueueTime:([\d.]{1,20}),sendTime:([\d.]{1,20}),securityProtocol:\w+,principal:(.*?),listener:",
    re.DOTALL,
)
_REPORTED_MS = re.compile(r"throttle_time_ms=(\d{1,10})")
_PRODUCED = re.compile(r"partitionSizes=\[(.*)\]\}$", re.DOTALL)
_PARTITION_SIZE = re.compile(r"(.+?)-\d+=(\d{1,10})(?:,|$)", re.DOTALL)
_FETCHED_TOPIC = re.compile(r"\{topic=(.*?),partition_responses=")
_FETCHED_SIZE = re.compile(
    r"record_set=(?:(null)|\w+\(size=(\d{1,10})\b|FileRecords\(file= .*?, start=(\d{1,10}), end=(\d{1,10})\)|(\[))"
)
_FOLLOWER = re.compile(r"replica_?[iI]d=(-?\d+)")


def _of_text(body: str) -> _Completed | str:
    found = _TEXT.match(body)
    if found is None:
        raise NotUnderstoodError("malformed completed request")
    api, version, client_id, request, response, connection, *times, principal = found.groups()
    if api not in ("PRODUCE", "FETCH"):
        return NOT_CHARGED
    follower = _FOLLOWER.search(request)
    if api == "FETCH" and follower is not None and int(follower[1]) >= 0:
        return FROM_FOLLOWERS
    total_ms, throttle_ms, queue_ms, send_ms = map(float, times)
    client_id = "" if client_id == "null" else client_id
    reported = _REPORTED_MS.search(response)
    throttled_ms = max(int(throttle_ms), 0 if reported is None else int(reported[1]))
    return _Completed(
        "Fetch" if api == "FETCH" else "Produce",
        int(version),
        client_id,
        connection,
        principal,
        _fetched_in(int(version), response) if api == "FETCH" else _produced_in(int(version), client_id, request),
        queue_ms + send_ms,
        throttled_ms,
        was_delayed=0 < throttled_ms <= total_ms,
    )


def _produced_in(version: int, client_id: str, request: str) -> int:
    sizes = _PRODUCED.search(request)
    if sizes is None:
        raise NotUnderstoodError("Produce request without partition sizes; Kafka up to 2.7 logs them only at TRACE")
    topics: dict[str, list[int | None]] = {}
    for topic, nbytes in _PARTITION_SIZE.findall(sizes[1]):
        topics.setdefault(topic, []).append(int(nbytes))
    return produce_request_size(version, client_id, None, list(topics.items()))


def _fetched_in(version: int, response: str) -> int:
    topics = []
    split = _FETCHED_TOPIC.split(response)[1:]
    for topic, text in zip(split[::2], split[1::2], strict=True):
        partitions: list[tuple[int | None, int]] = []
        for null, size, start, end, records in _FETCHED_SIZE.findall(text):
            if records:
                raise NotUnderstoodError("fetch without record sizes; Kafka up to 2.3 logs none for converted records")
            partitions.append((None if null else int(size or int(end) - int(start)), 0))
        topics.append((topic, partitions))
    return fetch_response_size(version, topics)
