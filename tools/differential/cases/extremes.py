"""Unusual values of one field in requests that read, append and delete records: negative, too large, or unknown."""

from typing import Any

from sluice.protocol.message import Message
from sluice.protocol.records.batch import ATTRIBUTES_AT, MAGIC_AT
from sluice.protocol.records.build import build_batch, stamp_checksum
from sluice.protocol.records.record import Record
from tests.support.messages import request
from tools.differential.case import case
from tools.differential.requests import (
    FETCH_VERSION,
    GROUP,
    INIT_PRODUCER_ID_VERSION,
    LATEST,
    MAX_BYTES,
    PRODUCE_VERSION,
    TIMEOUT_MS,
    TRANSACTION,
    coordinator,
    end_txn,
    fetch,
    fetched,
    init_producer,
    list_offsets,
    of_producer,
    produce,
)
from tools.differential.session import Session

_FIRST_TIMESTAMP = 1_700_000_000_000
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_LOWEST_INT, _HIGHEST_INT = -(2**31), 2**31 - 1
_RECORDS = 3


def _topic(session: Session, name: str) -> bytes:
    """Create a topic with a batch of one record, and one of two."""
    topic_id = session.create_topic(name)
    for offsets in ((0,), (1, 2)):
        records = [Record(at, _FIRST_TIMESTAMP + offset, b"k", b"v") for at, offset in enumerate(offsets)]
        response = session.wait_for(
            produce(name, build_batch(records)),
            lambda found: not found.responses[0].partition_responses[0].error_code,
            PRODUCE_VERSION,
        )
        assert response is not None
    return topic_id


def _note(session: Session, label: str, message: Message, version: int) -> None:
    response = session.request(message, version, within_s=3)
    session.note(f"{label}, version {version}", session.masked(response, unordered=("*",)))


_OF_FETCHES: tuple[dict[str, Any], ...] = (
    *({"isolation_level": level} for level in (2, -1, 127)),
    *({"max_bytes": most} for most in (0, 1)),
    *({"min_bytes": least} for least in (-1, _LOWEST_INT, _HIGHEST_INT)),
    *({"max_wait_ms": wait_ms, "min_bytes": MAX_BYTES} for wait_ms in (-1, _LOWEST_INT)),
    *({"replica_id": node} for node in (-2, -3, -4, 0, 1, 7, _LOWEST_INT, _HIGHEST_INT)),
    {"session_epoch": -2},
    {"session_id": 7},
    {"session_id": 7, "session_epoch": 1},
    {"session_id": -7, "session_epoch": 1},
    {"session_epoch": 1},
    {"session_epoch": _HIGHEST_INT},
    {"rack_id": "none"},
    {"topics": []},
    {"topics": [], "session_epoch": 0},
    {"topics": [], "isolation_level": 2},
    {"topics": [], "max_wait_ms": 60_000, "min_bytes": 1},
)
_OF_FETCHED: tuple[dict[str, Any], ...] = (
    *({"fetch_offset": offset} for offset in (-1, -2, 1, 2, 3, 4, _LOWEST, _HIGHEST)),
    *({"partition_max_bytes": most} for most in (0, 1)),
    *({"partition_max_bytes": most, "fetch_offset": 3} for most in (-1, 0)),
    *({"current_leader_epoch": epoch} for epoch in (-2, 0, 1, _LOWEST_INT, _HIGHEST_INT)),
    *(
        {"last_fetched_epoch": epoch, "fetch_offset": offset}
        for epoch in (-2, 0, 1, _HIGHEST_INT)
        for offset in (0, 2, 3, 4, -1)
    ),
    {"log_start_offset": 7},
    *({"partition": index} for index in (-1, 1, _HIGHEST_INT)),
)


@case()
def fetches(session: Session) -> None:
    name = "extremes-fetch"
    topic_id = _topic(session, name)

    def send(label: str, version: int, fields: dict[str, Any], partition: dict[str, Any]) -> None:
        wanted = {"partition": 0, "partition_max_bytes": MAX_BYTES, **partition}
        topics = [{"topic": name, "topic_id": topic_id, "partitions": [wanted]}]
        usual = {"max_bytes": MAX_BYTES, "session_epoch": -1, "topics": topics}
        fields = dict(fields)
        if version >= 15 and "replica_id" in fields:
            fields["replica_state"] = {"replica_id": fields.pop("replica_id")}
        _note(session, label, request("Fetch", **usual | fields), version)

    for version in (4, FETCH_VERSION, 18):
        for fields in _OF_FETCHES:
            send(str(fields), version, fields, {})
        for partition in _OF_FETCHED:
            send(str(partition), version, {}, partition)


@case()
def sessions(session: Session) -> None:
    name = "extremes-sessions"
    topic_id = _topic(session, name)

    def wanted(*offsets: int) -> list[dict[str, Any]]:
        partitions = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": MAX_BYTES} for offset in offsets]
        return [{"topic": name, "topic_id": topic_id, "partitions": partitions}]

    forgotten = [{"topic": name, "topic_id": topic_id, "partitions": [0, 7]}]
    for version in (7, FETCH_VERSION, 13, 18):
        opened = session.request(request("Fetch", max_bytes=MAX_BYTES, session_epoch=0, topics=wanted(3)), version)

        def send(label: str, at: int, session_id: int = opened.session_id, **fields: Any) -> None:
            usual = {"max_bytes": MAX_BYTES, "session_id": session_id, "topics": []}
            _note(session, label, request("Fetch", **usual | fields), at)

        send("nothing new", version, session_epoch=1)
        send("the same epoch again", version, session_epoch=1)
        send("a later epoch", version, session_epoch=7)
        send("an unknown isolation level", version, session_epoch=2, isolation_level=2)
        send("an earlier offset", version, session_epoch=3, topics=wanted(1))
        send("the other kind of topics", 25 - version if version in (12, 13) else version, session_epoch=4)
        send("a follower", min(version, 14), session_epoch=4, replica_id=2)
        send("twice", version, session_epoch=5, topics=wanted(0, 2))
        send("an invalid offset", version, session_epoch=6, topics=wanted(9))
        send("an invalid offset, again", version, session_epoch=7)
        send("named and forgotten", version, session_epoch=8, topics=wanted(0), forgotten_topics_data=forgotten)
        send("closed", version, session_epoch=9)
        missing = {"topic": "none", "topic_id": bytes(15) + b"\7", "partitions": [{"partition": 0}]}
        unknown = {"topic": name, "topic_id": topic_id, "partitions": [{"partition": 7}]}
        session.call(request("Fetch", max_bytes=MAX_BYTES, topics=[unknown, missing, *wanted(0)]), version)


@case()
def aborted_transactions(session: Session) -> None:
    name = "extremes-aborted"
    _topic(session, name)
    ended, opened = f"{name}-ended", f"{name}-open"
    for transaction in (opened, ended):
        session.wait_for(coordinator(transaction, TRANSACTION), lambda found: not found.coordinators[0].error_code)
        begun = init_producer(transaction, timeout_ms=900_000)
        producer = session.wait_for(begun, lambda found: not found.error_code, INIT_PRODUCER_ID_VERSION)
        record = Record(0, _FIRST_TIMESTAMP, b"k", b"v")
        batch = build_batch([record], base_sequence=0, transactional=True, **of_producer(producer))
        session.wait_for(
            produce(name, batch, transaction),
            lambda found: not found.responses[0].partition_responses[0].error_code,
            PRODUCE_VERSION,
        )
    session.wait_for(end_txn(producer, ended, committed=False), lambda found: not found.error_code, 4)
    session.wait_for(list_offsets(name, LATEST), lambda found: found.topics[0].partitions[0].offset == _RECORDS + 3, 6)
    for isolation_level in (0, 1):
        for offset in range(_RECORDS, _RECORDS + 5):  # the last stable offset, and later ones
            reading = fetch(fetched(name, offset=offset), isolation_level=isolation_level)
            (found,) = session.request(reading, FETCH_VERSION).responses[0].partitions
            aborted = [one.first_offset for one in found.aborted_transactions or ()]
            noted = [found.error_code, found.last_stable_offset, found.aborted_transactions is None, aborted]
            session.note(f"isolation level {isolation_level}, offset {offset}", noted)


_TIMES = (*range(-7, 1), _LOWEST, _FIRST_TIMESTAMP, _FIRST_TIMESTAMP + 1, _FIRST_TIMESTAMP + 9, _HIGHEST)


@case()
def offsets_of_times(session: Session) -> None:
    name = "extremes-list"
    _topic(session, name)

    def send(version: int, fields: dict[str, Any], **partition: Any) -> None:
        wanted = {"partition_index": 0, "timestamp": -1, **partition}
        usual = {"replica_id": -1, "timeout_ms": TIMEOUT_MS, "topics": [{"name": name, "partitions": [wanted]}]}
        _note(session, str(fields | partition), request("ListOffsets", **usual | fields), version)

    for version in (1, 6, 7, 8, 9, 10, 11):
        for timestamp in _TIMES:
            send(version, {}, timestamp=timestamp)
    for version in (4, 11):
        for level in (2, -1):
            send(version, {"isolation_level": level})
            send(version, {"isolation_level": level, "topics": [{"name": "none", "partitions": []}]})
        for node in (-2, -3, 0, 1, 7):
            send(version, {"replica_id": node})
        for epoch in (-2, 0, 1):
            send(version, {}, current_leader_epoch=epoch)
        for index in (-1, 1):
            send(version, {}, partition_index=index)
        send(version, {"timeout_ms": -1})


@case()
def offsets_of_epochs(session: Session) -> None:
    name = "extremes-epochs"
    _topic(session, name)
    for version in (2, 3, 4):
        for epoch in (-2, -1, 0, 1, _LOWEST_INT, _HIGHEST_INT):
            for current in (-2, -1, 0, 1):
                for index in (0, 1, -1):
                    wanted = {"partition": index, "current_leader_epoch": current, "leader_epoch": epoch}
                    topics = [{"topic": name, "partitions": [wanted]}]
                    message = request("OffsetForLeaderEpoch", replica_id=7, topics=topics)
                    _note(session, str(wanted), message, version)


@case()
def deletions(session: Session) -> None:
    name = "extremes-deleted"
    _topic(session, name)
    for offset in (-2, _LOWEST, _RECORDS + 1, _HIGHEST, 0, 1, 0, -1):
        for timeout_ms in (0, -1):
            for topic, index in ((name, 0), (name, 1), (name, -1), ("", 0), ("no topic!", 0)):
                partition = {"partition_index": index, "offset": offset}
                topics = [{"name": topic, "partitions": [partition]}]
                message = request("DeleteRecords", topics=topics, timeout_ms=timeout_ms)
                _note(session, f"{topic} {partition}", message, 2)


def _changed(position: int, value: int, size: int = 1, **fields: Any) -> bytes:
    batch = bytearray(build_batch([Record(0, _FIRST_TIMESTAMP, b"k", b"v")], **fields))
    batch[position : position + size] = value.to_bytes(size, signed=value < 0)
    if position > MAGIC_AT:
        stamp_checksum(batch)
    return bytes(batch)


_OF_PRODUCER = {"producer_id": 7_000, "producer_epoch": 0, "base_sequence": 0}
_BATCHES: dict[str, bytes] = {
    **{f"attributes {flags}": _changed(ATTRIBUTES_AT + 1, flags) for flags in (8, 16, 32, 64, 128, 5, 6, 7, 1)},
    "reserved attributes": _changed(ATTRIBUTES_AT, 1),
    "base offset 1": _changed(7, 1),
    "base offset -1": _changed(0, -1, 8),
    "leader epoch 7": _changed(12, 7, 4),
    "last offset delta 1": _changed(23, 1, 4),
    "last offset delta -1": _changed(23, -1, 4),
    "negative timestamp": _changed(27, -2, 8),
    "no timestamp": _changed(27, -1, 8),
    "other maximum timestamp": _changed(35, 1, 8),
    "producer id -2": _changed(43, -2, 8),
    "producer id without sequence": _changed(43, 7_001, 8),
    "producer epoch -1": _changed(51, -1, 2, **_OF_PRODUCER),
    "producer epoch -2": _changed(51, -2, 2, **_OF_PRODUCER | {"producer_id": 7_002}),
    "sequence 5 of a new producer": _changed(53, 5, 4, **_OF_PRODUCER | {"producer_id": 7_003}),
    "sequence -2": _changed(53, -2, 4, **_OF_PRODUCER | {"producer_id": 7_004}),
    "no records": _changed(57, 0, 4),
    "record count -1": _changed(57, -1, 4),
    "record count 2": _changed(57, 2, 4),
    "magic 1": _changed(MAGIC_AT, 1),
    "magic 3": _changed(MAGIC_AT, 3),
    "length 13": _changed(8, 13, 4),
    "length 14": _changed(8, 14, 4),
    "length 49": _changed(8, 49, 4),
    "length -1": _changed(8, -1, 4),
    "wrong checksum": _changed(17, 1, 4)[:17] + b"\0\0\0\1" + _changed(17, 1, 4)[21:],
    "two batches": 2 * _changed(12, 0, 4),
    "bytes after the batch": _changed(12, 0, 4) + bytes(11),
    "a truncated second batch": _changed(12, 0, 4) + _changed(12, 0, 4)[:-1],
}


@case()
def produced_batches(session: Session) -> None:
    name = "extremes-produced"
    topic_id = session.create_topic(name)
    _topic(session, f"{name}-other")
    session.create_topic(f"{name}-compacted", configs={"cleanup.policy": "compact"})
    session.create_topic(f"{name}-appended", configs={"message.timestamp.type": "LogAppendTime"})
    for label, batch in _BATCHES.items():
        _note(session, label, produce(name, batch), 3)
        _note(session, label, produce(name, batch), PRODUCE_VERSION)
        for suffix in ("compacted", "appended"):
            response = session.request(produce(f"{name}-{suffix}", batch), PRODUCE_VERSION, within_s=3)
            (found,) = response.responses[0].partition_responses
            session.note(f"{label}, {suffix}", [found.error_code, found.base_offset, found.error_message])
    for acks in (-2, 2, -32768):
        for version in (3, 13):
            data = {"name": name, "topic_id": topic_id, "partition_data": [{"index": 0, "records": _changed(12, 0, 4)}]}
            message = request("Produce", acks=acks, timeout_ms=-1, topic_data=[data])
            _note(session, f"acks {acks}", message, version)
    for index in (-1, 1):
        _note(session, f"partition {index}", produce(name, _changed(12, 0, 4), partition=index), PRODUCE_VERSION)
    for kind, internal in ((GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")):
        session.request(coordinator(name, kind))  # creates the topic
        session.wait_for_leaders(internal)
    for internal in ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "", "no topic!"):
        _note(session, internal, produce(internal, _changed(12, 0, 4)), PRODUCE_VERSION)
    _note(session, "transactional id without transactional records", produce(name, _changed(12, 0, 4), "t"), 12)
