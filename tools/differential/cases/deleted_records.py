"""Deleted records: what each request finds before and after the check that removes whole segments.

A topic gets batches of one record and of one size, so that `internal.segment.bytes` sets the batches of a segment:

    offset      0     1  |   2     3  |   4
    timestamp   1000  3000 | 2000  5000 | 4000
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.support.messages import request
from tools.differential import requests
from tools.differential.case import DISK, MEMORY, Layout, case
from tools.differential.session import Session, until

_NEVER = 24 * 3600 * 1000
_OFTEN = 100


def _layout(
    name: str, *, check_ms: int, cleaner_ms: int = _NEVER, storages: tuple[str, ...] = (MEMORY, DISK)
) -> Layout:
    properties = (
        f"log.initial.task.delay.ms={check_ms}",
        f"log.retention.check.interval.ms={check_ms}",
        f"log.flush.start.offset.checkpoint.interval.ms={_NEVER}",
        f"log.cleaner.backoff.ms={cleaner_ms}",
    )
    return Layout(properties, name=name, storages=storages)


# With the one, requests see the state before the check; with the other, the state after it.
NEVER_CHECKED = _layout("never checked", check_ms=_NEVER)
CHECKED = _layout("checked", check_ms=_OFTEN)
ONLY_CLEANED = _layout("only cleaned", check_ms=_NEVER, cleaner_ms=_OFTEN)
RESTARTED = _layout("restarted", check_ms=_NEVER, storages=(DISK,))
KILLED_AFTER_A_CHECK = _layout("killed after a check", check_ms=_OFTEN, storages=(DISK,))

_SPECIAL_TIMES = (requests.LATEST, requests.EARLIEST, requests.MAX_TIMESTAMP, -4, -5, -6)
_TIMESTAMPS = (1000, 3000, 2000, 5000, 4000)
_TIMES = (0, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000, 6000)
_OFFSETS = range(len(_TIMESTAMPS) + 3)
_NO_TIMESTAMP = -1
_BATCH_BYTES = len(build_batch([Record(0, 1000, b"key", b"value")]))
_OF_TWO_BATCHES = {"internal.segment.bytes": str(2 * _BATCH_BYTES)}
_LIST_OFFSETS_VERSION = 11  # the last one with topic names
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1


def _produce(session: Session, topic: str, *timestamps: int) -> None:
    for timestamp in timestamps:
        _append(session, topic, build_batch([_record(timestamp)]))


def _open_transaction(session: Session, topic: str, timestamp: int) -> None:
    """Append a record of a transaction that does not end."""
    session.wait_for(
        requests.coordinator(topic, requests.TRANSACTION), lambda found: found.coordinators[0].error_code == 0
    )
    begin = requests.init_producer(topic, timeout_ms=900_000)
    producer = session.wait_for(begin, lambda found: found.error_code == 0, requests.INIT_PRODUCER_ID_VERSION)
    batch = build_batch([_record(timestamp)], base_sequence=0, transactional=True, **requests.of_producer(producer))
    _append(session, topic, batch, topic)


def _record(timestamp: int) -> Record:
    return Record(0, timestamp, b"key", b"value")


def _append(session: Session, topic: str, batch: bytes, transactional_id: str | None = None) -> None:
    response = session.wait_for(requests.produce(topic, batch, transactional_id), _has_leader, requests.PRODUCE_VERSION)
    assert response.responses[0].partition_responses[0].error_code == 0, response


def _has_leader(response: Any) -> bool:
    # Kafka's metadata may know a leader a moment before the broker does.
    return bool(response.responses[0].partition_responses[0].error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _delete_records(topic: str, offset: int) -> Message:
    partition = {"partition_index": 0, "offset": offset}
    return request("DeleteRecords", topics=[{"name": topic, "partitions": [partition]}], timeout_ms=requests.TIMEOUT_MS)


def _size(session: Session, topic: str) -> int:
    described = request("DescribeLogDirs", topics=[{"topic": topic, "partitions": [0]}])
    response = session.wait_for(described, lambda found: bool(found.results[0].topics))
    (partition,) = response.results[0].topics[0].partitions
    size: int = partition.partition_size
    return size


def _wait_for_size(session: Session, topic: str, size: int) -> None:
    until(lambda: _size(session, topic), lambda found: found == size)


def _wait_for_checks(session: Session, topic: str, configs: dict[str, str] | None = None) -> None:
    """Wait until all logs have been checked: after a first check has begun, until a second one has begun."""
    session.create_topic(topic, configs={"retention.ms": "-1"} | _OF_TWO_BATCHES | (configs or {}))
    _produce(session, topic, *_TIMESTAMPS)
    for offset, size in ((2, 3), (4, 1)):
        session.request(_delete_records(topic, offset))
        _wait_for_size(session, topic, size * _BATCH_BYTES)


def _offset_at(session: Session, topic: str, timestamp: int, isolation_level: int, fields: Sequence[str]) -> str:
    wanted = requests.list_offsets(topic, timestamp, isolation_level=isolation_level)
    response = session.request(wanted, _LIST_OFFSETS_VERSION)
    (found,) = response.topics[0].partitions
    return _words(found, *fields)


def _batch_at(session: Session, topic: str, offset: int) -> str:
    # At most one batch: Kafka does not read on in the next segment.
    response = session.request(requests.fetch(requests.fetched(topic, offset=offset, most=1)), requests.FETCH_VERSION)
    (found,) = response.responses[0].partitions
    headers = [header for _, header in iter_batches(bytes(found.records or b""))]
    batches = ", ".join(f"{header.base_offset} to {header.last_offset}" for header in headers)
    return f"{_words(found, 'error_code', 'log_start_offset', 'high_watermark', 'last_stable_offset')}: {batches}"


def _end_of_epoch(session: Session, topic: str, leader_epoch: int) -> str:
    response = session.request(requests.end_of_epoch(topic, leader_epoch))
    (found,) = response.topics[0].partitions
    return _words(found, "error_code", "leader_epoch", "end_offset")


def _words(found: object, *names: str) -> str:
    return ", ".join(f"{name} {getattr(found, name)}" for name in names)


def _describe(session: Session, topic: str) -> None:
    """Compare everything that a client can find out about the log."""
    _describe_records(session, topic, "error_code", "offset", "timestamp", "leader_epoch")
    session.note("ends of epochs", {str(epoch): _end_of_epoch(session, topic, epoch) for epoch in (-1, 0, 1, 2)})


def _describe_records(session: Session, topic: str, *fields: str) -> None:
    session.note("size", _size(session, topic))
    for label, isolation_level in (("read uncommitted", _READ_UNCOMMITTED), ("read committed", _READ_COMMITTED)):
        times = (*_SPECIAL_TIMES, *_TIMES)
        offsets = {str(at): _offset_at(session, topic, at, isolation_level, fields) for at in times}
        session.note(f"offsets by time, {label}", offsets)
    session.note("batches by offset", {str(offset): _batch_at(session, topic, offset) for offset in _OFFSETS})


class Deletion(NamedTuple):
    """Records of a topic, and those that are deleted."""

    timestamps: tuple[int, ...] = _TIMESTAMPS
    delete_to: tuple[int, ...] = ()
    then: tuple[int, ...] = ()  # appended afterwards
    open_transaction: int | None = None  # the offset of its only record
    configs: dict[str, str] = _OF_TWO_BATCHES


def _bytes(batches: int) -> dict[str, str]:
    """Return the retention of so many batches."""
    return {"retention.bytes": str(batches * _BATCH_BYTES)}


DELETIONS = {
    "empty": Deletion(()),
    "empty, all deleted": Deletion((), (-1,)),
    "several segments, nothing deleted": Deletion(),
    "several segments, a part of the first deleted": Deletion(delete_to=(1,)),
    "several segments, the first deleted": Deletion(delete_to=(2,)),
    "several segments, one and a half deleted": Deletion(delete_to=(3,)),
    "several segments, all but the active one deleted": Deletion(delete_to=(4,)),
    "several segments, all deleted": Deletion(delete_to=(-1,)),
    "several segments, all deleted, then a record": Deletion(delete_to=(-1,), then=(2500,)),
    "several segments, all deleted, then a segment": Deletion(delete_to=(-1,), then=(2500, 3500)),
    "several segments, deleted one after the other": Deletion(delete_to=(1, 2, 4)),
    "full active segment, all deleted": Deletion(_TIMESTAMPS[:4], (-1,)),
    "one segment, nothing deleted": Deletion(configs={}),
    "one segment, a part deleted": Deletion(delete_to=(2,), configs={}),
    "one segment, all deleted": Deletion(delete_to=(-1,), configs={}),
    "one segment, all deleted, then a record": Deletion(delete_to=(-1,), then=(2500,), configs={}),
    "no timestamps, the first deleted": Deletion((_NO_TIMESTAMP,) * 5, (2,)),
    "equal timestamps, the first deleted": Deletion((2000,) * 5, (2,)),
    "open transaction, nothing deleted": Deletion(open_transaction=3),
    "open transaction, deleted up to it": Deletion(delete_to=(3,), open_transaction=3),
    "open transaction, deleted with it": Deletion(delete_to=(3,), open_transaction=2),
    "open transaction, all deleted": Deletion(delete_to=(-1,), open_transaction=3),
    "deletion to the log start": Deletion(delete_to=(2, 2)),
    "deletion below the log start": Deletion(delete_to=(2, 1)),
    "deletion above the high watermark": Deletion(delete_to=(6,)),
    "deletion to a negative offset": Deletion(delete_to=(-2,)),
}
_EMPTY_POLICY = {"cleanup.policy": "", "retention.ms": "60000", "retention.bytes": "0"}
RETENTIONS = {
    "by size, nothing": Deletion(configs=_OF_TWO_BATCHES | _bytes(5)),
    "by size, less than a segment": Deletion(configs=_OF_TWO_BATCHES | _bytes(4)),
    "by size, one segment": Deletion(configs=_OF_TWO_BATCHES | _bytes(3)),
    "by size, all but the active segment": Deletion(configs=_OF_TWO_BATCHES | {"retention.bytes": "1"}),
    "by size, the active segment": Deletion(configs=_OF_TWO_BATCHES | _bytes(0)),
    "by size, after the deletion of records": Deletion(delete_to=(3,), configs=_OF_TWO_BATCHES | _bytes(3)),
    "by size, one large segment": Deletion(configs=_bytes(2)),
    "by time, the active segment": Deletion(configs=_OF_TWO_BATCHES | {"retention.ms": "60000"}),
    "by time, the only segment": Deletion(configs={"retention.ms": "60000"}),
    "by time and size": Deletion(configs=_OF_TWO_BATCHES | {"retention.ms": "60000", "retention.bytes": "1"}),
    "of an empty policy": Deletion(configs=_OF_TWO_BATCHES | _EMPTY_POLICY),
    "of an empty policy, after the deletion of records": Deletion(
        delete_to=(3,), configs=_OF_TWO_BATCHES | _EMPTY_POLICY
    ),
}


def _topic(*words: str) -> str:
    return "deleted-" + "-".join(words).replace(",", "").replace(" ", "-")


def _change(session: Session, topic: str, deletion: Deletion) -> None:
    session.create_topic(topic, configs={"retention.ms": "-1"} | deletion.configs)
    for offset, timestamp in enumerate(deletion.timestamps):
        if offset == deletion.open_transaction:
            _open_transaction(session, topic, timestamp)
        else:
            _produce(session, topic, timestamp)
    for offset in deletion.delete_to:
        session.call(_delete_records(topic, offset))
    _produce(session, topic, *deletion.then)


def before_the_check(session: Session, *, name: str, deletion: Deletion) -> None:
    topic = _topic(name)
    _change(session, topic, deletion)
    _describe(session, topic)


def after_the_check(session: Session, *, name: str, deletion: Deletion) -> None:
    topic = _topic(name)
    _change(session, topic, deletion)
    _wait_for_checks(session, _topic("checks", name))
    _describe(session, topic)


_CHANGES = DELETIONS | {f"retention {name}": deletion for name, deletion in RETENTIONS.items()}
for _name, _deletion in _CHANGES.items():
    case(NEVER_CHECKED, row=_name)(partial(before_the_check, name=_name, deletion=_deletion))
    case(CHECKED, row=_name)(partial(after_the_check, name=_name, deletion=_deletion))


# Logs with `compact` are checked by the cleaner only.


@case(ONLY_CLEANED)
def the_cleaner_removes_segments_of_compacted_logs_only(session: Session) -> None:
    uncleaned = {"min.cleanable.dirty.ratio": "1", "retention.ms": "-1"}
    policies = {name: f"deleted-policy-{name}" for name in ("delete", "compact-delete")}
    for name, topic in policies.items():
        session.create_topic(topic, configs=_OF_TWO_BATCHES | uncleaned | {"cleanup.policy": name.replace("-", ",")})
        _produce(session, topic, *_TIMESTAMPS)
        session.call(_delete_records(topic, 3))
    _wait_for_checks(session, "deleted-policy-checks", uncleaned | {"cleanup.policy": "compact,delete"})
    for topic in policies.values():
        _describe(session, topic)


@case(ONLY_CLEANED)
def deleted_records_of_a_compacted_log(session: Session) -> None:
    topic = "deleted-compacted"
    configs = {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.01", "retention.ms": "-1"}
    session.create_topic(topic, configs=_OF_TWO_BATCHES | configs)
    _produce(session, topic, *_TIMESTAMPS)
    _wait_for_size(session, topic, 2 * _BATCH_BYTES)
    _describe(session, topic)
    session.call(_delete_records(topic, 3))
    _wait_for_checks(session, "deleted-compacted-checks", configs | {"min.cleanable.dirty.ratio": "1"})
    _describe(session, topic)


@case(ONLY_CLEANED)
def records_of_an_only_compacted_log_cannot_be_deleted(session: Session) -> None:
    topic = "deleted-only-compacted"
    session.create_topic(topic, configs={"cleanup.policy": "compact"})
    _produce(session, topic, *_TIMESTAMPS)
    session.call(_delete_records(topic, 3))
    session.call(_delete_records(topic, -1))


# The log start offset is stored when a broker stops, and now and then.

_RESTARTED = {"a-part": 1, "first": 2, "one-and-a-half": 3, "all": -1}


def _delete_each(session: Session, prefix: str) -> None:
    for name, offset in _RESTARTED.items():
        topic = f"{prefix}-{name}"
        session.create_topic(topic, configs=_OF_TWO_BATCHES | {"retention.ms": "-1"})
        _produce(session, topic, *_TIMESTAMPS)
        session.call(_delete_records(topic, offset))


def _describe_each(session: Session, prefix: str) -> None:
    """Compare all but leader epochs: at a restart, Kafka begins one more."""
    for name in _RESTARTED:
        session.wait_for_leaders(f"{prefix}-{name}")
        _describe_records(session, f"{prefix}-{name}", "error_code", "offset", "timestamp")


@case(RESTARTED)
def a_stopped_broker_keeps_the_log_start_and_a_killed_one_only_if_it_was_stored(session: Session) -> None:
    _delete_each(session, "stopped")
    session.restart()
    _describe_each(session, "stopped")
    _delete_each(session, "killed")
    session.call(_delete_records("stopped-a-part", 3))
    session.restart(kill=True)
    _describe_each(session, "stopped")
    _describe_each(session, "killed")


@case(KILLED_AFTER_A_CHECK)
def a_broker_killed_after_a_check_starts_with_the_remaining_segments(session: Session) -> None:
    _wait_for_checks(session, "checked-before")  # the first check comes with a checkpoint of log start offsets
    _delete_each(session, "checked")
    _wait_for_checks(session, "checked-after")
    session.restart(kill=True)
    _describe_each(session, "checked")
