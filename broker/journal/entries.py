"""Entries of the journal's ring as named tuples."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sluice.broker.requests.route import ApiRoute
from sluice.broker.requests.trace import (
    AnySubject,
    BatchStart,
    ClientIdentity,
    NamedPartition,
    ReadTimes,
    RequestAnnotations,
    RequestSubject,
    Returned,
    Sent,
)
from sluice.journal_events import KINDS, NO_ID, AnyEvent, ProducedBatch, Request, TopicPartition, Value
from sluice.protocol.apis import API_KEYS
from sluice.protocol.entities import name_of
from sluice.protocol.records import compression
from sluice.protocol.records.batch import CODEC_MASK, LARGEST_MAGIC, TRANSACTIONAL_FLAG

from .journal import REQUEST, UNANSWERED, Journal
from .returned import ReturnedFields, returned_fields
from .sent import SENT

_NO_ANNOTATIONS = RequestAnnotations()
_COMPRESSIONS = dict(enumerate(compression.NAMES))


class RequestEntry(NamedTuple):
    """A request and its response. `at` and `before` are clock readings, `read_times` monotonic milliseconds."""

    kind: str
    at: float
    identity: ClientIdentity
    route: ApiRoute
    version: int
    correlation_id: int
    read_times: ReadTimes
    before: float
    request_bytes: int
    response_bytes: int  # or UNANSWERED
    subject: RequestSubject
    annotations: RequestAnnotations | None
    returned: Returned | None

    @property
    def api(self) -> str:
        return self.route.api_name


class OtherEntry(NamedTuple):
    """Any other event. `fields` are those of its kind."""

    kind: str
    at: float
    identity: ClientIdentity | None
    broker: int
    fields: Mapping[str, object]

    @property
    def api(self) -> str:
        return str(self.fields.get("api", ""))


Entry = RequestEntry | OtherEntry


def entry(journal: Journal, number: int) -> Entry:
    found = journal.entry(number)
    # `Journal.answered` and the other methods append tuples with the fields in this order.
    return RequestEntry._make(found) if found[0] == REQUEST else OtherEntry._make(found)


def api_of(found: tuple[Any, ...]) -> object:
    """Return the API of an entry of the ring, without making a named tuple."""
    return found[3].api_name if found[0] == REQUEST else found[4].get("api", "")


def broker_of(found: Entry) -> int:
    return found.broker if isinstance(found, OtherEntry) else found.identity.broker


def event(journal: Journal, number: int, found: Entry) -> AnyEvent:
    if isinstance(found, RequestEntry):
        return _request(journal, number, found)
    client = {} if found.identity is None else _client(found.identity)
    values = {**client, **found.fields}
    make: Callable[..., AnyEvent] = KINDS[found.kind]
    return make(seq=number + 1, at_ns=at_ns(journal, found), broker=found.broker, **values)


def _client(identity: ClientIdentity) -> dict[str, object]:
    name, version = identity.client_software
    return {
        "connection": identity.connection,
        "listener": identity.listener,
        "peer": identity.peer,
        "client_id": identity.client_id,
        "software_name": name,
        "software_version": version,
        "principal": f"User:{identity.user}",
    }


def at_ns(journal: Journal, found: Entry) -> int:
    return journal.ns(journal.ms(found.at))


def received_ns(journal: Journal, found: RequestEntry) -> int:
    annotations = found.annotations
    # A parked request has its own time, because other requests may be received before its response.
    is_parked = annotations is not None and annotations.begun_ms
    return journal.ns(annotations.received_ms if annotations is not None and is_parked else found.read_times[0])


def started_ns(journal: Journal, found: RequestEntry) -> int:
    begun_ms = found.annotations.begun_ms if found.annotations is not None else 0
    return journal.ns(begun_ms or max(found.read_times[1], journal.ms(found.before)))


def error_codes(found: RequestEntry) -> Sequence[int]:
    return () if found.annotations is None else found.annotations.error_codes


def transactional_id(found: RequestEntry) -> str:
    subject = found.subject
    return subject[3] if isinstance(subject[0], tuple) else subject[4] or ""


def _request(journal: Journal, number: int, found: RequestEntry) -> Request:
    identity, route, annotations = found.identity, found.route, found.annotations or _NO_ANNOTATIONS
    named, left_off, group_id, transactional_id, sent = _general(found.subject)
    returned = returned_fields(route.api_key, route.version, found.returned, journal.topics_by_id)
    partitions = [_partition(one, journal, returned) for one in named]
    written_ms = found.read_times[2]
    has_throttle_time = found.response_bytes > 0 and API_KEYS[route.api_key].has_throttle_time(route.version)
    make: Callable[..., Request] = Request
    return make(
        **_client(identity),
        seq=number + 1,
        at_ns=at_ns(journal, found),
        broker=identity.broker,
        api=route.api_name,
        api_key=route.api_key,
        version=found.version,
        correlation_id=found.correlation_id,
        received_ns=received_ns(journal, found),
        started_ns=started_ns(journal, found),
        answered_ns=None if found.response_bytes == UNANSWERED else at_ns(journal, found),
        written_ns=journal.ns(written_ms) if written_ms and found.response_bytes > 0 else None,
        request_bytes=found.request_bytes,
        response_bytes=max(0, found.response_bytes),
        partitions=partitions,
        partitions_left_off=left_off,
        group_id=group_id,
        transactional_id=transactional_id,
        attempt_key=",".join(map(_key, partitions)) + (f",+{left_off}" if left_off else ""),
        error_codes=list(error_codes(found)),
        throttle_time_ms=annotations.throttle_ms if has_throttle_time else 0,
        rule_id=annotations.rule_id,
        sent=_sent_fields(route.api_key, sent),
        returned=returned.fields,
    )


def _sent_fields(api_key: int, values: Sent) -> dict[str, Value]:
    """Return the fields by name, without absent ones."""
    names = SENT[api_key].names if values else ()
    found = {name: value for name, value in zip(names, values, strict=False) if value is not None}
    if found.get("replica_id") == NO_ID:
        del found["replica_id"]  # a consumer
    return cast("dict[str, Value]", found)


def _general(subject: RequestSubject) -> AnySubject:
    if isinstance(subject[0], tuple):
        return subject
    topic, index, header, size, transactional_id, acks, timeout_ms = subject
    return ((topic, index, NO_ID, (header, size, ())),), 0, "", transactional_id or "", (acks, timeout_ms)


def _partition(named: NamedPartition, journal: Journal, returned: ReturnedFields) -> TopicPartition:
    topic, partition, offset, batch = named
    name = topic if isinstance(topic, str) else name_of(topic, journal.topics_by_id)
    place = name, partition
    offset = returned.offsets.get(place, offset)
    if batch is None:
        return TopicPartition(topic=name, partition=partition, offset=offset, fetched=returned.fetched.get(place))
    header, size, hashes = batch
    if header is None or header[0] != LARGEST_MAGIC:
        found = ProducedBatch(bytes=size)
        return TopicPartition(topic=name, partition=partition, record_hashes=list(hashes), offset=offset, batch=found)
    _, _, _, _, producer_id, producer_epoch, base_sequence, _ = header
    return TopicPartition(
        topic=name,
        partition=partition,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_hashes=list(hashes),
        offset=offset,
        batch=_batch(header, size),
    )


def _batch(header: BatchStart, size: int) -> ProducedBatch:
    _, attributes, first_timestamp_ms, max_timestamp_ms, _, _, _, records = header
    return ProducedBatch(
        records=records,
        bytes=size,
        compression=_COMPRESSIONS.get(attributes & CODEC_MASK, ""),
        is_transactional=bool(attributes & TRANSACTIONAL_FLAG),
        first_timestamp_ms=first_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
    )


def _key(one: TopicPartition) -> str:
    where = one.topic if one.partition == NO_ID else f"{one.topic}-{one.partition}"
    if one.producer_id == NO_ID:
        return where
    return f"{where}@{one.producer_id}.{one.producer_epoch}.{one.base_sequence}"
