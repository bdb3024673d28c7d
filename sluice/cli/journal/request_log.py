"""Journal events from Apache Kafka's request log, which `kafka.request.logger` writes at DEBUG.

Since Kafka 2.8 a line has request and response as JSON (KIP-673). The log lacks the ends of connections, and the
headers of batches. Requests of brokers are left out. The id of a broker is the number of its address in the log.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from sluice.broker.journal.returned import RETURNED, RecordedResponse
from sluice.broker.journal.sent import SENT, SentFields
from sluice.journal_events import FetchedRecords, Request, TopicPartition, Value
from sluice.protocol.apis import API_KEYS
from sluice.spark.charges.request_log_line import NotUnderstoodError, split_json

_NS_PER_MS = 1_000_000
_MOST_PARTITIONS = 16  # as in the journal
_ERROR_CODE = re.compile(rb'"errorCode":(-?[1-9]\d*)')
# The arrays of topics and of their partitions, and the names in them, which differ by API and version.
_TOPICS, _PARTITIONS = ("topicData", "topics"), ("partitionData", "partitions", "partitionIndexes")
_TOPIC_NAMES, _INDEXES = ("name", "topic", "topicId"), ("index", "partitionIndex", "partition")
_OFFSETS = ("fetchOffset", "committedOffset")
_ALIASES = {"generation_id": "generationIdOrMemberEpoch", "keys": "coordinatorKeys"}

_Json = dict[str, Any]
_Table = Mapping[int, SentFields] | Mapping[int, RecordedResponse]


class _Header(msgspec.Struct):
    requestApiKey: int  # noqa: N815  (the log's field names)
    requestApiVersion: int  # noqa: N815
    correlationId: int  # noqa: N815
    clientId: str | None = None  # noqa: N815


class _Client(msgspec.Struct, frozen=True):
    softwareName: str = ""  # noqa: N815
    softwareVersion: str = ""  # noqa: N815


class _Line(msgspec.Struct):
    requestHeader: _Header  # noqa: N815
    request: _Json
    response: msgspec.Raw
    connection: str
    principal: str
    listener: str
    totalTimeMs: float  # noqa: N815
    responseQueueTimeMs: float  # noqa: N815
    sendTimeMs: float  # noqa: N815
    throttleTimeMs: int = 0  # noqa: N815
    isForwarded: bool = False  # noqa: N815
    clientInformation: _Client = _Client()  # noqa: N815


_decoder = msgspec.json.Decoder(_Line)


class RequestLog:
    """The events of a request log, in the order of its lines."""

    def __init__(self) -> None:
        self._seq = 0
        self._brokers: dict[str, int] = {}

    def event(self, line: str) -> Request | None:
        """Return the event of a line; None for a request of a broker. Raises NotUnderstoodError."""
        written_ns, body = split_json(line)
        try:
            found = _decoder.decode(body)
            response: _Json = msgspec.json.decode(found.response)
        except (msgspec.MsgspecError, ValueError) as error:
            raise NotUnderstoodError(f"malformed completed request: {error}") from None
        if found.isForwarded or found.requestHeader.requestApiKey not in API_KEYS or _is_follower(found.request):
            return None
        self._seq += 1
        return self._event(found, response, written_ns)

    def _event(self, found: _Line, response: _Json, written_ns: int) -> Request:
        header, request, client = found.requestHeader, found.request, found.clientInformation
        local, _, rest = found.connection.partition("-")
        answered_ns = written_ns - round((found.responseQueueTimeMs + found.sendTimeMs) * _NS_PER_MS)
        received_ns = written_ns - round(found.totalTimeMs * _NS_PER_MS)
        named = _partitions(request, response)
        return Request(
            seq=self._seq,
            at_ns=answered_ns,
            broker=self._brokers.setdefault(local, len(self._brokers)),
            connection=int.from_bytes(blake2b(found.connection.encode(), digest_size=6).digest()),
            listener=found.listener,
            peer=rest.partition("-")[0],
            client_id=header.clientId or "",
            software_name=_known(client.softwareName),
            software_version=_known(client.softwareVersion),
            principal=found.principal,
            api=API_KEYS[header.requestApiKey].name,
            api_key=header.requestApiKey,
            version=header.requestApiVersion,
            correlation_id=header.correlationId,
            received_ns=received_ns,
            started_ns=received_ns,
            answered_ns=answered_ns,
            written_ns=written_ns,
            request_bytes=0,
            response_bytes=0,
            partitions=named[:_MOST_PARTITIONS],
            partitions_left_off=max(0, len(named) - _MOST_PARTITIONS),
            group_id=request.get("groupId") or "",
            transactional_id=request.get("transactionalId") or "",
            attempt_key=",".join(f"{each.topic}-{each.partition}" for each in named[:_MOST_PARTITIONS]),
            error_codes=sorted({int(code) for code in _ERROR_CODE.findall(found.response)}),
            throttle_time_ms=max(found.throttleTimeMs, response.get("throttleTimeMs") or 0),
            rule_id="",
            sent=_sent(header.requestApiKey, request),
            returned=_fields(RETURNED, header.requestApiKey, response),
        )


def _is_follower(request: _Json) -> bool:
    replica_id: int = max(request.get("replicaId", -1), request.get("replicaState", {}).get("replicaId", -1))
    return replica_id >= 0


def _known(text: str) -> str:
    return "" if text == "unknown" else text


def _partitions(request: _Json, response: _Json) -> list[TopicPartition]:
    fetched = {
        (_first(topic, _TOPIC_NAMES), part["partitionIndex"]): FetchedRecords(
            bytes=part.get("recordsSizeInBytes") or 0,
            high_watermark=part.get("highWatermark", -1),
            last_stable_offset=part.get("lastStableOffset", -1),
        )
        for topic in response.get("responses", ())
        for part in topic.get("partitions", ())
        if "highWatermark" in part
    }
    found = []
    for topic in _first(request, _TOPICS) or ():
        name = topic if isinstance(topic, str) else _first(topic, _TOPIC_NAMES)
        for part in (isinstance(topic, dict) and _first(topic, _PARTITIONS)) or ():
            index = part if isinstance(part, int) else _first(part, _INDEXES)
            offset = -1 if isinstance(part, int) else _first(part, _OFFSETS)
            one = TopicPartition(
                topic=name, partition=index, offset=-1 if offset is None else offset, fetched=fetched.get((name, index))
            )
            found.append(one)
        if not found or found[-1].topic != name:
            found.append(TopicPartition(topic=name, partition=-1))
    return found


def _first(value: _Json, names: tuple[str, ...]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _sent(api_key: int, request: _Json) -> dict[str, Value]:
    found = _fields(SENT, api_key, request)
    topics = request.get("topics")
    if "protocols" in request:
        found["protocols"] = [each["name"] for each in request["protocols"]]
    if API_KEYS[api_key].name == "Metadata":
        found["all_topics"] = topics is None
    if API_KEYS[api_key].name == "Fetch" and topics and topics[0]["partitions"]:
        found["partition_max_bytes"] = topics[0]["partitions"][0]["partitionMaxBytes"]
    return found


def _fields(table: _Table, api_key: int, message: _Json) -> dict[str, Value]:
    """Return the fields of a message that the journal records."""
    found: dict[str, Value] = {}
    for name in table[api_key].names if api_key in table else ():
        value = message.get(_camel(name), message.get(_ALIASES.get(name, "")))
        if name == "replica_id":
            continue  # -1, because brokers are left out
        if isinstance(value, int | str) or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            found[name] = value
    return found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
