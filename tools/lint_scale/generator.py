"""Simulated journals of many clients over many hours, as lines of JSON.

Each client sends one request per slot of 36 s, 100 in an hour. An event follows from its client and slot, so any part
of a journal can be generated alone, and again with the same bytes. Of ten clients, four are healthy producers, one
sends single records with acks=1, four are members of a group, and one requests metadata all the time.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

import msgspec

from sluice.journal_events import FetchedRecords, ProducedBatch, Request, TopicPartition, Value

SLOTS_PER_HOUR = 100
_NS_PER_MS, _SLOT_NS = 1_000_000, 36_000_000_000
_BEGAN_NS = 1_700_000_000_000_000_000
_LINES_AT_ONCE = 4000
_SOFTWARE = (
    ("apache-kafka-java", "4.4.0"),
    ("librdkafka", "2.14.0"),
    ("kgo", "1.20.3"),
    ("apache-kafka-java", "3.9.1"),
)
# Stand for the numbers of an event in its template: sequence number, times, slot, and time in milliseconds.
_SEQ, _AT, _RECEIVED, _SLOT, _MS = _NUMBERS = [700_000_000_000_000_001 + each for each in range(5)]
_SLOT_TIMES_10 = 10 * _SLOT


class Part(NamedTuple):
    """A part of a journal: the slots from `begin` to before `end`."""

    journal: int
    clients: int
    begin: int
    end: int

    @property
    def events(self) -> int:
        return self.clients * (self.end - self.begin)


class _Template(NamedTuple):
    """A line with placeholders, and what selects their values from those of `_NUMBERS`."""

    line: bytes
    values: Callable[[tuple[int, ...]], tuple[int, ...]]


def lines(part: Part) -> Iterator[bytes]:
    """Yield complete lines."""
    found: list[bytes] = []
    templates: dict[tuple[int, str], _Template] = {}
    for slot in range(part.begin, part.end):
        for client in range(part.clients):
            at_ns = _BEGAN_NS + slot * _SLOT_NS + client * (_SLOT_NS // part.clients)
            seq = slot * part.clients + client + 1
            kind = client, _kind(client, slot)
            template = templates.get(kind)
            if template is None:
                template = templates[kind] = _template(part.journal, *kind)
            line, values = template
            found.append(line % values((seq, at_ns, at_ns - 2 * _NS_PER_MS, slot, at_ns // _NS_PER_MS - 5)))
        if len(found) >= _LINES_AT_ONCE:
            yield b"".join(found)
            found.clear()
    yield b"".join(found)


def _kind(client: int, slot: int) -> str:
    """Return the API of a client in a slot."""
    role = client % 10
    if slot == 0:
        return "ApiVersions"
    if role < 5:
        return "Produce"
    if role == 9:
        return "Metadata"
    if slot < 3:
        return "JoinGroup" if slot == 1 else "SyncGroup"
    return "Heartbeat" if slot % 10 in (3, 7) else "OffsetCommit" if slot % 10 == 9 else "Fetch"


def _template(journal: int, client: int, api: str) -> _Template:
    text = msgspec.json.encode(_event(journal, client, api)).replace(b"%", b"%%") + b"\n"
    places = sorted((at, index) for index, number in enumerate(_NUMBERS) for at in _found(text, b"%d" % number))
    for number in _NUMBERS:
        text = text.replace(b"%d" % number, b"%d")
    return _Template(text, itemgetter(*(index for _, index in places)))


def _found(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _event(journal: int, client: int, api: str) -> Request:
    name, version = _SOFTWARE[client % len(_SOFTWARE)]
    topic, partition, is_member = f"orders-{client // 100}", client // 10 % 12, 5 <= client % 10 < 9
    sent, returned, partitions = _fields(client, api, topic, partition)
    return Request(
        seq=_SEQ,
        at_ns=_AT,
        broker=client % 3,
        connection=client + 1,
        listener="PLAINTEXT",
        peer=f"10.{journal % 250}.{client // 250 % 250}.{client % 250}:40001",
        client_id=f"client-{journal}-{client}",
        software_name=name,
        software_version=version,
        principal="User:ANONYMOUS",
        api=api,
        api_key=0,
        version=9,
        correlation_id=_SLOT,
        received_ns=_RECEIVED,
        started_ns=_RECEIVED,
        answered_ns=_AT,
        written_ns=_AT,
        request_bytes=200,
        response_bytes=100,
        partitions=partitions,
        partitions_left_off=0,
        group_id=f"group-{journal}-{client // 10}" if is_member and api not in ("ApiVersions", "Fetch") else "",
        transactional_id="",
        attempt_key=",".join(f"{each.topic}-{each.partition}" for each in partitions),
        error_codes=[],
        throttle_time_ms=0,
        rule_id="",
        sent=sent,
        returned=returned,
    )


def _fields(
    client: int, api: str, topic: str, partition: int
) -> tuple[dict[str, Value], dict[str, Value], list[TopicPartition]]:
    """Return the fields of a request and of its response, and its partitions."""
    member: dict[str, Value] = {"member_id": f"member-{client}", "generation_id": 1}
    if api == "Produce":
        healthy = client % 10 < 4
        batch = ProducedBatch(
            records=10 if healthy else 1,
            bytes=4000,
            compression="lz4" if healthy else "none",
            first_timestamp_ms=_MS,
            max_timestamp_ms=_MS,
        )
        one = TopicPartition(
            topic=topic,
            partition=partition,
            producer_id=client if healthy else -1,
            producer_epoch=0 if healthy else -1,
            base_sequence=_SLOT_TIMES_10 if healthy else -1,
            offset=_SLOT_TIMES_10,
            batch=batch,
        )
        return {"acks": -1 if healthy else 1, "timeout_ms": 30_000}, {}, [one]
    if api == "Fetch":
        fetched = FetchedRecords(bytes=4000, high_watermark=_SLOT_TIMES_10, last_stable_offset=_SLOT_TIMES_10)
        fetch: dict[str, Value] = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 50 << 20,
            "isolation_level": 0,
            "session_id": 7,
            "session_epoch": 1,
            "partition_max_bytes": 1 << 20,
        }
        return fetch, {}, [TopicPartition(topic=topic, partition=partition, offset=_SLOT_TIMES_10, fetched=fetched)]
    if api == "OffsetCommit":
        return member, {}, [TopicPartition(topic=topic, partition=partition, offset=_SLOT_TIMES_10)]
    if api == "JoinGroup":
        join: dict[str, Value] = {
            "member_id": f"member-{client}",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": ["cooperative-sticky"],
        }
        return join, {**member, "protocol_name": "cooperative-sticky"}, []
    if api == "SyncGroup":
        return member, {"protocol_name": "cooperative-sticky", "assignment": [f"{topic}-{partition}"]}, []
    if api == "Heartbeat":
        return member, {}, []
    if api == "Metadata":
        return {"all_topics": True, "allow_auto_topic_creation": False}, {}, []
    return {}, {}, []
