"""Public reports about Kafka and its relatives: the requests that each is about.

The row of a case names its report; `docs/compatibility/reports.md` is the log of all.
"""

import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch, stamp_checksum
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record
from tests.support.messages import request
from tests.support.wire import error_codes
from tools.differential.case import Layout, case
from tools.differential.requests import (
    FETCH_VERSION,
    GROUP,
    INIT_PRODUCER_ID_VERSION,
    NO_ID,
    OFFSETS_VERSION,
    PRODUCE_VERSION,
    SHARE,
    TRANSACTION,
    add_offsets,
    add_partitions,
    commit,
    committed,
    coordinator,
    create_topics,
    describe_producers,
    end_of_epoch,
    end_txn,
    fetch,
    fetched,
    init_producer,
    list_offsets,
    metadata,
    of_producer,
    offsets,
    old_offsets,
    produce,
)
from tools.differential.session import Session, until

_LEAVE, _LEAVE_STATIC = -1, -2  # member epochs
_FINAL = -1  # the epoch of the last request of a session
_ACCEPT, _RELEASE, _REJECT = 1, 2, 3
_CONSUMER, _DEBUGGING = -1, -2  # replica ids
_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 27, 35
_GROUP_CONFIGS = 32
_UNKNOWN_ID = bytes(15) + b"\7"
_TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CONCURRENT_TRANSACTIONS,
}  # fmt: skip


def _is_settled(response: Any) -> bool:
    return not isinstance(response, Message) or not _TRANSIENT.intersection(error_codes(response))


def _call(session: Session, message: Message, version: int | None = None, **options: Any) -> Any:
    """Compare the first response after the broker has applied earlier changes."""
    return session.eventually(message, version, _is_settled, **options)


def _request(session: Session, message: Message, version: int | None = None, **options: Any) -> Any:
    """Return the first response after the broker has applied earlier changes, without comparing it."""
    return session.wait_for(message, _is_settled, version, **options)


def _find_coordinator(session: Session, key: str, kind: int) -> int:
    """Return the broker that is the coordinator."""
    found = _request(session, coordinator(key, kind)).coordinators[0]
    assert found.error_code == ErrorCode.NONE, found
    node: int = found.node_id
    return node


def _member(number: int) -> str:
    return f"{'A' * 20}{number:02}"


def _record(value: str, timestamp: int = 1000, offset: int = 0) -> Record:
    return Record(offset, timestamp, b"key", value.encode())


def _batch(*values: str, **fields: Any) -> bytes:
    return build_batch([_record(value, offset=offset) for offset, value in enumerate(values)], **fields)


def _at(timestamp: int) -> bytes:
    """Return a batch of one record with any timestamp: `build_batch` refuses negative ones."""
    batch = bytearray(_batch("a"))
    for position in (_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT):
        batch[position : position + 8] = timestamp.to_bytes(8, signed=True)
    stamp_checksum(batch)
    return bytes(batch)


def _append(session: Session, topic: str, *values: str) -> None:
    for value in values:
        response = _request(session, produce(topic, _batch(value)), PRODUCE_VERSION)
        assert not error_codes(response), response


# Groups of KIP-848.


def _create_group_topic(session: Session, name: str, partitions: int = 1) -> bytes:
    """Create a topic, and wait until the group coordinator, which learns of it later, assigns its partitions."""
    topic_id = session.create_topic(name, partitions)
    _find_coordinator(session, name, GROUP)
    probes = (_join(f"probe-{name}-{number}", name) for number in count())
    until(lambda: _request(session, next(probes)), lambda joined: bool(joined.assignment.topic_partitions))
    return topic_id


def _heartbeat(group: str, member: int = 1, epoch: int = 0, **fields: Any) -> Message:
    return request("ConsumerGroupHeartbeat", group_id=group, member_id=_member(member), member_epoch=epoch, **fields)


def _join(group: str, topic: str, member: int = 1, **fields: Any) -> Message:
    usual = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic], "topic_partitions": []}
    return request("ConsumerGroupHeartbeat", **{"group_id": group, "member_id": _member(member)} | usual | fields)


def _share_heartbeat(group: str, member: str = _member(1), epoch: int = 0, **fields: Any) -> Message:
    return request("ShareGroupHeartbeat", group_id=group, member_id=member, member_epoch=epoch, **fields)


_INCOMPLETE: dict[str, dict[str, Any]] = {
    "no subscription": {"subscribed_topic_names": None},
    "empty subscription": {"subscribed_topic_names": []},
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "no owned partitions": {"topic_partitions": None},
    "owned partitions": {"topic_partitions": [{"topic_id": _UNKNOWN_ID, "partitions": [0]}]},
    "empty member id": {"member_id": ""},
    "empty group id": {"group_id": ""},
    "empty rack": {"rack_id": ""},
    "empty instance id": {"instance_id": ""},
    "unknown assignor": {"server_assignor": "sticky"},
    "invalid regular expression": {"subscribed_topic_regex": "["},
    "epoch of a new group": {"member_epoch": 3},
    "epoch below all": {"member_epoch": -3},
    "leave a new group": {"member_epoch": _LEAVE},
    "static leave without an instance id": {"member_epoch": _LEAVE_STATIC},
}


@case(row="librdkafka #5541")
def join_without_all_fields(session: Session) -> None:
    _create_group_topic(session, "incomplete")
    _find_coordinator(session, "incomplete", GROUP)
    for number, fields in enumerate(_INCOMPLETE.values()):
        _call(session, _join(f"incomplete-{number}", "incomplete", **fields))


@case(row="librdkafka #5541")
def heartbeats_of_unknown_and_old_epochs(session: Session) -> None:
    _create_group_topic(session, "epochs")
    joined = _call(session, _join("epochs", "epochs"))
    for epoch in (joined.member_epoch + 5, joined.member_epoch - 1):
        _call(session, _heartbeat("epochs", epoch=epoch))
    for member, epoch in ((2, 1), (1, 0), (1, _LEAVE), (1, _LEAVE)):
        _call(session, _heartbeat("epochs", member, epoch))


@case(row="KAFKA-16815")
def an_instance_id_of_a_removed_static_member(session: Session) -> None:
    topic = group = "static"
    _create_group_topic(session, topic)
    epoch = _call(session, _join(group, topic, instance_id="instance")).member_epoch
    _call(session, _join(group, topic, 2, instance_id="instance"))
    removed = [{"member_id": "", "group_instance_id": "instance"}]
    _call(session, request("LeaveGroup", group_id=group, members=removed))
    _call(session, _join(group, topic, 2, instance_id="instance"))
    _call(session, _heartbeat(group, 1, epoch))
    _call(session, _heartbeat(group, 1, epoch, instance_id="instance"))
    _call(session, _heartbeat(group, 2, _LEAVE_STATIC, instance_id="instance"))
    _call(session, _join(group, topic, 3, instance_id="instance"))
    _call(session, _join(group, topic, 4, instance_id="other", member_epoch=2))


@case(row="KAFKA-18060")
def offsets_of_a_transaction_without_a_member_id(session: Session) -> None:
    topic = group = name = "no-member-id"
    _create_group_topic(session, topic)
    member = _call(session, _join(group, topic))
    producer = _init_producer(session, name)
    _call(session, add_offsets(producer, name, group), 3)
    for version, member_id, epoch in ((2, "", -1), (3, "", -1), (5, "", -1), (5, _member(1), member.member_epoch + 1)):
        _call(session, _txn_commit(group, topic, producer, name, member=member_id, epoch=epoch), version)
    _call(session, commit(group, [committed(topic, (0, ""))]), OFFSETS_VERSION)
    _call(session, end_txn(producer, name, committed=False), 4)


@case(row="KAFKA-20165")
def fetch_offsets_with_an_old_epoch_or_an_unknown_topic(session: Session) -> None:
    topic = group = "fetch-offsets"
    topic_id = _create_group_topic(session, topic)
    member = _call(session, _join(group, topic))
    as_member = (_member(1), member.member_epoch)
    _call(session, commit(group, [committed(topic, (0, "note"))], *as_member), OFFSETS_VERSION)
    for member_id, epoch in (as_member, (_member(1), 9), (_member(2), 1), (None, -1), ("", 1)):
        _call(session, offsets(group, topic, 0, 7, member=member_id, epoch=epoch), OFFSETS_VERSION)
    for wanted in (topic_id, _UNKNOWN_ID, NO_ID):
        topics = [{"topic_id": wanted, "partition_indexes": [0, 7]}]
        _call(session, request("OffsetFetch", groups=[{"group_id": group, "topics": topics}]), 10)
    for wanted in (_UNKNOWN_ID, NO_ID):
        _call(session, commit(group, [committed(topic, (0, "note")) | {"topic_id": wanted}], *as_member), 10)
    _call(session, offsets(group, "fetch-offsets-none", 0), OFFSETS_VERSION)


@case(row="KAFKA-19439")
def fetch_offsets_of_groups_of_other_kinds(session: Session) -> None:
    topic = "other-kinds"
    _create_group_topic(session, topic)
    _call(session, _share_heartbeat(topic, subscribed_topic_names=[topic]))
    for group in (topic, "other-kinds-none", ""):
        for version in (1, 2, 5, 7):
            _call(session, old_offsets(group, topic), version)
        _call(session, offsets(group, topic, 0), 8)
        _call(session, commit(group, [committed(topic, (0, ""))]), 2)
        _call(session, _join(group, topic))


@case(row="KAFKA-16371")
def one_committed_metadata_too_large(session: Session) -> None:
    topic = group = "large-metadata"
    _create_group_topic(session, topic, 2)
    _call(session, commit(group, [committed(topic, (0, "m" * 4097), (1, ""))]), OFFSETS_VERSION)
    _call(session, offsets(group, topic, 0, 1), OFFSETS_VERSION)
    producer = _init_producer(session, topic)
    _call(session, add_offsets(producer, topic, group), 3)
    _call(session, _txn_commit(group, topic, producer, topic, metadata=("m" * 4097, "")), 4)
    _call(session, offsets(group, topic, 0, 1), OFFSETS_VERSION)
    _call(session, end_txn(producer, topic, committed=True), 4)
    session.eventually(offsets(group, topic, 0, 1), OFFSETS_VERSION, lambda found: not error_codes(found))


@case(row="Redpanda #7958")
def the_limit_of_committed_metadata_in_characters(session: Session) -> None:
    topic = group = "metadata-limit"
    _create_group_topic(session, topic)
    for letter, units in (("m", 1), ("\u00e9", 1), ("\u6c34", 1), ("\U0001f4a7", 2)):
        for length in (4096, 4098):
            _call(session, commit(group, [committed(topic, (0, letter * (length // units)))]), OFFSETS_VERSION)


@case(row="KAFKA-19902")
def committed_leader_epochs(session: Session) -> None:
    topic = group = "leader-epochs"
    _create_group_topic(session, topic)
    _append(session, topic, "a", "b")
    for epoch in (0, 7, -1):
        wanted = committed(topic, (0, ""))
        wanted["partitions"][0]["committed_leader_epoch"] = epoch
        _call(session, commit(group, [wanted]), OFFSETS_VERSION)
        _call(session, offsets(group, topic, 0), OFFSETS_VERSION)
    for epoch in (-2, -1, 0, 7):
        _call(session, end_of_epoch(topic, epoch))


# Share groups.

Acknowledged = tuple[int, int, list[int]]


def _batches(acknowledged: Sequence[Acknowledged]) -> dict[str, Any]:
    found = [
        dict(zip(("first_offset", "last_offset", "acknowledge_types"), each, strict=True)) for each in acknowledged
    ]
    return {"partition_index": 0, "acknowledgement_batches": found}


def share_fetch(group: str, topic_id: bytes, epoch: int, *acknowledged: Acknowledged, **fields: Any) -> Message:
    partition = _batches(acknowledged) | {"partition_max_bytes": 1_000_000}
    usual = {"group_id": group, "member_id": _member(1), "share_session_epoch": epoch, "max_wait_ms": 500}
    usual |= {"min_bytes": 1, "max_bytes": 1_000_000, "max_records": 4, "batch_size": 4}
    usual["topics"] = [{"topic_id": topic_id, "partitions": [partition]}]
    return request("ShareFetch", **usual | fields)


def acknowledge(group: str, topic_id: bytes, epoch: int, *acknowledged: Acknowledged) -> Message:
    topics = [{"topic_id": topic_id, "partitions": [_batches(acknowledged)]}]
    return request("ShareAcknowledge", group_id=group, member_id=_member(1), share_session_epoch=epoch, topics=topics)


def share_group(session: Session, name: str, *values: str, reset: str = "earliest") -> bytes:
    """Join a share group, and wait until a session acquires these records of the topic of its name; release them."""
    configs = [{"name": "share.auto.offset.reset", "value": reset}]
    resource = {"resource_type": _GROUP_CONFIGS, "resource_name": name, "configs": configs}
    session.request(request("IncrementalAlterConfigs", resources=[resource]))
    topic_id = _create_group_topic(session, name)
    _append(session, name, *values)
    epoch = _request(session, _share_heartbeat(name, subscribed_topic_names=[name])).member_epoch

    def fetch_and_release() -> list[Any]:
        nonlocal epoch
        found = [_request(session, share_fetch(name, topic_id, each)) for each in (0, 1)]
        _request(session, share_fetch(name, topic_id, _FINAL, topics=[]))
        acquired = [
            one for each in found for topic in each.responses for one in topic.partitions if one.acquired_records
        ]
        if not acquired:
            epoch = _request(session, _share_heartbeat(name, epoch=epoch)).member_epoch
        return acquired

    until(fetch_and_release, bool)
    return topic_id


@case(row="librdkafka #5393")
def acknowledgements_in_share_fetches(session: Session) -> None:
    group = "acknowledgements"
    topic_id = share_group(session, group, "a", "b", "c", "d")
    _call(session, share_fetch(group, topic_id, 0, (0, 0, [_ACCEPT])))
    _call(session, share_fetch(group, topic_id, 0, max_wait_ms=5_000))
    _call(session, share_fetch(group, topic_id, 1))
    acknowledged: list[list[Acknowledged]] = [
        [(1, 1, [_ACCEPT]), (0, 0, [_ACCEPT])],
        [(0, 1, [_ACCEPT]), (1, 2, [_ACCEPT])],
        [(0, 2, [_ACCEPT, _REJECT])],
        [(1, 0, [_ACCEPT])],
        [(0, 0, [9])],
        [(0, 0, [])],
        [(0, 1, [_ACCEPT, _REJECT])],
        [(0, 0, [_ACCEPT])],
        [(40, 41, [_ACCEPT])],
    ]
    for epoch, batches in enumerate(acknowledged, 2):
        _call(session, share_fetch(group, topic_id, epoch, *batches, max_wait_ms=0))
    forgotten = [{"topic_id": topic_id, "partitions": [0]}]
    _call(session, share_fetch(group, topic_id, _FINAL, (2, 2, [_RELEASE]), forgotten_topics_data=forgotten))
    _call(session, share_fetch(group, topic_id, _FINAL, (2, 2, [_RELEASE])))


@case(row="apache/kafka #20836")
def acknowledgements_without_a_session_or_a_topic(session: Session) -> None:
    group = "acknowledge"
    topic_id = share_group(session, group, "a", "b", "c")
    _call(session, acknowledge(group, topic_id, 1, (0, 0, [_ACCEPT])))
    _call(session, acknowledge(group, topic_id, 0, (0, 0, [_ACCEPT])))
    _request(session, share_fetch(group, topic_id, 0, max_wait_ms=5_000))
    _request(session, share_fetch(group, topic_id, 1))
    _call(session, acknowledge(group, _UNKNOWN_ID, 2, (0, 0, [_ACCEPT])))
    _call(session, acknowledge(group, topic_id, 3, (0, 0, [_ACCEPT]), (2, 2, [_RELEASE])))
    _call(session, acknowledge(group, topic_id, 9, (1, 1, [_ACCEPT])))
    _call(session, acknowledge(group, topic_id, 4, (0, 0, [_ACCEPT])))
    _call(session, acknowledge("", topic_id, 5, (0, 0, [_ACCEPT])))
    _call(session, acknowledge(group, topic_id, _FINAL, (1, 1, [_ACCEPT])))
    _call(session, acknowledge(group, topic_id, 6, (1, 1, [_ACCEPT])))


@case(row="librdkafka #5514")
def heartbeats_of_share_groups(session: Session) -> None:
    group, none = "share-heartbeats", "share-heartbeats-none"
    _create_group_topic(session, group)
    _find_coordinator(session, group, GROUP)
    first, second, subscribed = _member(1), _member(2), {"subscribed_topic_names": [group]}
    heartbeats: list[tuple[str, str, int, dict[str, Any]]] = [
        (none, first, _LEAVE, {}),
        (none, first, 1, {}),
        (group, first, 0, {}),
        (group, first, 0, {"subscribed_topic_names": []}),
        (group, first, 0, subscribed | {"rack_id": ""}),
        (group, "", 0, subscribed),
        ("", first, 0, subscribed),
        (group, first, 0, subscribed),
        (group, first, 9, {}),
        (group, first, -2, {}),
        (group, second, 1, {}),
        (group, second, _LEAVE, {}),
        (group, first, _LEAVE, {}),
        (group, first, _LEAVE, {}),
        (group, first, 1, {}),
    ]
    for name, member, epoch, fields in heartbeats:
        _call(session, _share_heartbeat(name, member, epoch, **fields))


@case(row="Dekaf #821")
def offsets_of_share_groups(session: Session) -> None:
    group, none = "share-offsets", "share-offsets-none"
    _create_group_topic(session, group, 2)
    _find_coordinator(session, group, GROUP)

    def alter(group: str, topic: str, *partitions: int) -> None:
        changed = [{"partition_index": index, "start_offset": 0} for index in partitions]
        topics = [{"topic_name": topic, "partitions": changed}]
        _call(session, request("AlterShareGroupOffsets", group_id=group, topics=topics))

    def describe(group: str, topic: str, *partitions: int) -> None:
        groups = [{"group_id": group, "topics": [{"topic_name": topic, "partitions": list(partitions)}]}]
        _call(session, request("DescribeShareGroupOffsets", groups=groups), unordered=["partitions"])

    def delete(group: str, topic: str) -> None:
        _call(session, request("DeleteShareGroupOffsets", group_id=group, topics=[{"topic_name": topic}]))

    describe(none, group, 0)
    delete(none, group)
    delete("", group)
    alter("", group, 0)
    alter(group, group, 0, 7)
    describe(group, group, 0, 1, 7)
    describe(group, none, 0)
    alter(group, none, 0)
    delete(group, none)
    _call(session, _share_heartbeat(group, subscribed_topic_names=[group]))
    alter(group, group, 0)
    delete(group, group)
    _call(session, _share_heartbeat(group, epoch=_LEAVE))
    delete(group, group)
    describe(group, group, 0, 1)


# Client telemetry.


@case(row="Dekaf #819")
def telemetry_without_a_metrics_plugin(session: Session) -> None:
    served = session.request(request("ApiVersions", client_software_name="report", client_software_version="1"), 3)
    session.note("telemetry", [each.api_key for each in served.api_keys if each.api_key in (71, 72)])
    session.call(request("GetTelemetrySubscriptions"), 0)
    session.call(request("PushTelemetry", client_instance_id=_UNKNOWN_ID, subscription_id=1, metrics=b"\0"), 0)


# Old formats.


@case(row="KAFKA-6739")
def records_with_headers_in_old_fetches(session: Session) -> None:
    topic = "down-conversion"
    session.create_topic(topic)
    batch = build_batch([Record(0, 1000, b"key", b"a", (("name", b"header"),))])
    _call(session, produce(topic, batch), PRODUCE_VERSION)
    for version in (4, 0, 1, 2, 3):
        _call(session, fetch(fetched(topic)), version)


@case(row="sarama #988")
def message_sets_in_new_produces(session: Session) -> None:
    topic = "message-sets"
    session.create_topic(topic)
    for magic in (0, 1):
        for version in (2, 3, 9, 12):
            _call(session, produce(topic, build_message_set([_record("a")], magic=magic)), version)
    for records in (_batch("a") + _batch("b"), b"", _batch("a")[:-3], _batch("a") + b"\0\0"):
        for version in (3, 12):
            _call(session, produce(topic, records), version)
    _call(session, fetch(fetched(topic)), FETCH_VERSION)


_TIMESTAMPS = (-1, -2, -86_400_000, -(2**62), 0)


@case(row="KIP-228")
def timestamps_before_1970(session: Session) -> None:
    session.create_topic("before-1970")
    session.create_topic("before-1970-log-append", configs={"message.timestamp.type": "LogAppendTime"})
    for topic in ("before-1970", "before-1970-log-append"):
        for timestamp in _TIMESTAMPS:
            _call(session, produce(topic, _at(timestamp)), PRODUCE_VERSION)
        _call(session, fetch(fetched(topic)), FETCH_VERSION)
    for timestamp in (*range(-1, -9, -1), -86_400_000, -(2**63), 2**63 - 1):
        _call(session, list_offsets("before-1970", timestamp))


@case(row="KAFKA-13710")
def records_with_and_without_an_invalid_timestamp(session: Session) -> None:
    topic = "invalid-timestamps"
    session.create_topic(topic, configs={"message.timestamp.before.max.ms": "3600000"})
    now = int(time.time() * 1000)
    for timestamps in ((now, 1000, now), (1000, now), (now, now)):
        batch = build_batch([_record("a", timestamp, offset) for offset, timestamp in enumerate(timestamps)])
        for version in (7, 8, 12):
            (found,) = _request(session, produce(topic, batch), version).responses[0].partition_responses
            errors = {
                each.batch_index: each.batch_index_error_message.partition("[")[0] for each in found.record_errors
            }
            session.note(f"Produce {version}", [found.error_code, found.error_message, errors])


# Versions and names.


def _header(api_key: int, version: int) -> bytes:
    return api_key.to_bytes(2) + version.to_bytes(2) + bytes(3) + b"\1" + b"\0\3old" + b"\0"


@case(row="franz-go #1011")
def versions_of_a_newer_client(session: Session) -> None:
    for version in (6, 99, 32_767):
        session.exchange(f"ApiVersions {version}", _header(18, version) + b"\4kgo\0021\0")


@case(row="Kroxylicious #822")
def unknown_apis(session: Session) -> None:
    for api_key in (4, 5, 6, 7, 93, 200, 32_767):
        session.exchange(f"API {api_key}", _header(api_key, 0) + bytes(8))


@case(row="Redpanda #17581")
def unsupported_versions(session: Session) -> None:
    for api_key, version in ((3, 99), (0, 99), (1, 99), (17, 99), (36, 99), (10, 99), (3, 32_767)):
        session.exchange(f"API {api_key}, version {version}", _header(api_key, version) + bytes(8))


@case(row="Redpanda #13429")
def impossible_numbers_of_partitions(session: Session) -> None:
    for partitions, replicas in ((0, 1), (-2, 1), (-1, -1), (1, 0), (1, -2), (1, 5), (10_001, 1), (2_147_483_647, 1)):
        wanted = {"name": "impossible", "num_partitions": partitions, "replication_factor": replicas}
        for version in (2, 7):
            topic = _request(session, create_topics(wanted, validate_only=True), version).topics[0]
            session.note(f"CreateTopics {version}", [topic.error_code, topic.error_message, topic.num_partitions])


@case(row="franz-go #37")
def coordinators_of_empty_and_malformed_keys(session: Session) -> None:
    _find_coordinator(session, "some", GROUP)
    for kind in (GROUP, TRANSACTION, SHARE, 3, -1):
        for key in ("", "some", "group:topic:0", "group:AAAAAAAAAAAAAAAAAAAABw:0", "group:AAAAAAAAAAAAAAAAAAAABw:x"):
            for version in (0, 2, 4, 6) if kind == GROUP else (2, 4, 6):
                session.call(request("FindCoordinator", key=key, key_type=kind, coordinator_keys=[key]), version)
    for keys in ([], ["a", "", "a"]):
        _call(session, request("FindCoordinator", key_type=GROUP, coordinator_keys=keys), 4)


@case(row="Kroxylicious #1364")
def pages_of_partitions(session: Session) -> None:
    for topic, partitions in (("pages-a", 3), ("pages-b", 2), ("pages-c", 1)):
        session.create_topic(topic, partitions)
    names = ("pages-c", "pages-a", "pages-none", "pages-b")

    def describe(cursor: tuple[str, int] | None, limit: int, *topics: str, only: Sequence[str] = ()) -> Any:
        wanted: dict[str, Any] = {"topics": [{"name": name} for name in topics], "response_partition_limit": limit}
        if cursor is not None:
            wanted["cursor"] = dict(zip(("topic_name", "partition_index"), cursor, strict=True))
        return _call(session, request("DescribeTopicPartitions", **wanted), only=only)

    cursor = None
    for _ in range(9):
        found = describe(cursor, 2, *names).next_cursor
        if found is None:
            break
        cursor = (found.topic_name, found.partition_index)
    for cursor in (("pages-a", 3), ("pages-a", -1), ("pages-none", 0), ("pages-bb", 0), ("pages-z", 0), ("", 0)):
        describe(cursor, 10, *names)
    for limit in (0, -1, 1, 6, 2001):
        describe(None, limit, *names)
    describe(None, 10, "pages-a", "pages-a")
    describe(None, 10, "pages a", "..")
    describe(("pages-b", 1), 2, only=["topics"])  # of all topics


# Fetch sessions.


@case(row="KAFKA-13111")
def unknown_topic_ids_in_fetch_sessions(session: Session) -> None:
    topic_id = session.create_topic("session-ids")
    _append(session, "session-ids", "a")
    for unknown in (_UNKNOWN_ID, NO_ID):
        _call(session, fetch(fetched("", unknown)))
    found = _call(session, fetch(fetched("", topic_id), fetched("", _UNKNOWN_ID), session_epoch=0))
    for shift, epoch, version in ((0, 1, None), (0, 1, None), (0, 2, 12), (1, 1, None), (0, -1, None), (0, 2, None)):
        _call(session, fetch(session_id=found.session_id + shift, session_epoch=epoch), version)


@case(row="KAFKA-13111")
def a_topic_created_again_in_a_fetch_session(session: Session) -> None:
    topic = "session-again"
    old = session.create_topic(topic)
    found = _call(session, fetch(fetched("", old), session_epoch=0))
    _call(session, request("DeleteTopics", topics=[{"name": topic}], timeout_ms=30_000), 6)
    new = session.create_topic(topic)
    _call(session, fetch(session_id=found.session_id, session_epoch=1))
    _call(session, fetch(fetched("", new), session_id=found.session_id, session_epoch=2))
    for topic_id in (old, new, _UNKNOWN_ID):
        wanted = request("Metadata", topics=[{"topic_id": topic_id, "name": None}])
        _call(session, wanted, 13, only=["topics"])


@case(row="platformatic/kafka #321")
def forgotten_partitions(session: Session) -> None:
    first, second = (session.create_topic(f"forgotten-{number}") for number in range(2))
    for number in range(2):
        _append(session, f"forgotten-{number}", "a")
    found = _call(session, fetch(fetched("", first), fetched("", second), session_epoch=0))
    forgotten: list[tuple[list[bytes], int]] = [
        ([first], 0),
        ([first], 0),
        ([_UNKNOWN_ID, NO_ID], 0),
        ([second], 9),
        ([second], 0),
        ([], 0),
    ]
    for epoch, (topic_ids, partition) in enumerate(forgotten, 1):
        topics = [{"topic_id": each, "partitions": [partition]} for each in topic_ids]
        _call(session, fetch(session_id=found.session_id, session_epoch=epoch, forgotten_topics_data=topics))


# Leader epochs.


@case(row="librdkafka #4620")
def leader_epochs_of_the_past_and_future(session: Session) -> None:
    topic = "current-epoch"
    session.create_topic(topic)
    _append(session, topic, "a")
    for epoch in (-2, -1, 0, 1, 7):
        for timestamp in (-1, -2, 0):
            _call(session, list_offsets(topic, timestamp, epoch=epoch))
        _call(session, fetch(fetched(topic, epoch=epoch)), FETCH_VERSION)
        _call(session, end_of_epoch(topic, 0, current=epoch))
    for version in (1, 4):
        for name in (topic, "current-epoch-none"):
            _call(session, list_offsets(name, -1, replica_id=_DEBUGGING), version)
    _call(session, end_of_epoch("current-epoch-none", 0))


# Idempotent producers and transactions.


def _init_producer(session: Session, transactional_id: str | None) -> Any:
    if transactional_id is not None:
        _find_coordinator(session, transactional_id, TRANSACTION)
    return _request(session, init_producer(transactional_id), INIT_PRODUCER_ID_VERSION)


def _txn_commit(
    group: str,
    topic: str,
    producer: Any,
    transactional_id: str,
    *,
    member: str = "",
    epoch: int = -1,
    metadata: Sequence[str] = ("",),
) -> Message:
    return request(
        "TxnOffsetCommit",
        transactional_id=transactional_id,
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[committed(topic, *enumerate(metadata), offset=5)],
        **of_producer(producer),
    )


def _sequence(producer: Any, sequence: int, values: str, epoch: int | None = None) -> bytes:
    fields = of_producer(producer) | ({} if epoch is None else {"producer_epoch": epoch})
    return _batch(*values, base_sequence=sequence, **fields)


def _send_sequences(session: Session, topic: str, sent: Sequence[tuple[int, str, int | None]]) -> None:
    """Produce batches, each with its first sequence number, values and epoch, and describe the producer."""
    session.create_topic(topic)
    producer = _init_producer(session, None)
    for sequence, values, epoch in sent:
        _call(session, produce(topic, _sequence(producer, sequence, values, epoch)), PRODUCE_VERSION)
    _call(session, describe_producers(topic, 0))


@case(row="librdkafka #4953, kafkajs #598")
def sequences_with_gaps_and_repetitions(session: Session) -> None:
    usual = (0, "ab"), (0, "ab"), (3, "c"), (1, "b"), (2, "cd"), (2, "c"), (4, "e"), (5, "f"), (6, "g"), (7, "h")
    sent = [(*each, None) for each in (*usual, (0, "ab"))]
    _send_sequences(session, "sequences", [*sent, (0, "i", 1), (8, "j", None), (5, "j", 2)])


@case(row="Redpanda #22670")
def the_first_sequence_of_an_unknown_producer(session: Session) -> None:
    sent = [(7, "a", None), (8, "b", None), (2**31 - 1, "c", 1), (0, "c", 1)]
    _send_sequences(session, "unknown-producer", sent)


@case(row="rust-rdkafka #349, KAFKA-18401, KAFKA-18464")
def empty_transactions(session: Session) -> None:
    for version in (3, 4, 5):
        for committed_ in (True, False):
            name = f"empty-{version}-{committed_}"
            producer = _init_producer(session, name)
            first = _call(session, end_txn(producer, name, committed=committed_), version)
            _call(session, end_txn(producer, name, committed=not committed_), version)
            if version == 5 and not first.error_code:
                _call(session, end_txn(first, name, committed=False), version)
                _call(session, end_txn(first, name, committed=False), version)
            again = _init_producer(session, name)
            session.note("epochs", [producer.producer_epoch, again.producer_epoch])


@case(row="KAFKA-14402, KAFKA-14904")
def verification_of_partitions_of_a_transaction(session: Session) -> None:
    topic, unordered = "verify", ["results_by_partition"]
    session.create_topic(topic, 3)
    producer = _init_producer(session, topic)

    def verify(transactional_id: str, *partitions: int, **fields: Any) -> None:
        transaction: dict[str, Any] = {"transactional_id": transactional_id, "verify_only": True}
        transaction |= of_producer(producer) | {"topics": [{"name": topic, "partitions": list(partitions)}]}
        _call(session, request("AddPartitionsToTxn", transactions=[transaction | fields]), 4, unordered=unordered)

    verify(topic, 0)
    for partition in (1, 9):
        _call(session, add_partitions(producer, topic, topic, 0, partition), 3, unordered=unordered)
    verify(topic, 0)
    verify(topic, 0, 2)
    verify(topic, 0, producer_epoch=7)
    verify("verify-none", 0)
    verify(topic, 2, verify_only=False)
    verify(topic, 2)
    verify("", 0)


@case(row="KAFKA-20785")
def commit_after_the_coordinator_aborted(session: Session) -> None:
    topic = "aborted"
    session.create_topic(topic)
    producers = {}
    for version in (3, 4, 5):
        name = f"aborted-{version}"
        _find_coordinator(session, name, TRANSACTION)
        producers[version] = _request(session, init_producer(name, 500), INIT_PRODUCER_ID_VERSION)
        _call(session, add_partitions(producers[version], name, topic, 0), 3)
    for version, producer in producers.items():
        name = f"aborted-{version}"
        described = request("DescribeTransactions", transactional_ids=[name])
        session.eventually(described, None, _is_aborted, only=["error_code"])
        _call(session, end_txn(producer, name, committed=True), version)
        _call(session, end_txn(producer, name, committed=False), version)


def _is_aborted(response: Any) -> bool:
    return bool(response.transaction_states[0].transaction_state == "CompleteAbort")


# Large group metadata.


@case(row="KAFKA-7286")
def metadata_and_assignments_of_more_than_a_record(session: Session) -> None:
    _find_coordinator(session, "large-group", GROUP)

    def join(size: int, member_id: str, group: str) -> Any:
        timeouts = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": bytes(size)}]
        joining = request("JoinGroup", group_id=group, member_id=member_id, protocols=protocols, **timeouts)
        found = _request(session, joining, 9)
        session.note("JoinGroup", [found.error_code, found.generation_id])
        return found

    def sync(size: int, joined: Any, group: str) -> None:
        member = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        assignments = [{"member_id": joined.member_id, "assignment": bytes(size)}]
        found = _request(session, request("SyncGroup", assignments=assignments, **member, **protocol), 5)
        session.note("SyncGroup", [found.error_code, len(found.assignment)])

    sizes = ((10, 1_100_000), (1_100_000, 10), (600_000, 600_000), (10, 10))
    for number, (of_metadata, of_assignment) in enumerate(sizes):
        group = f"large-group-{number}"
        joined = join(of_metadata, join(of_metadata, "", group).member_id, group)
        sync(of_assignment, joined, group)
        _call(session, commit(group, [], joined.member_id, 1), 8)


# Clusters of several brokers.

THREE_BROKERS = Layout(("offsets.topic.num.partitions=6", "transaction.state.log.num.partitions=6"), brokers=3)


def _assigned(session: Session, name: str, *replicas: list[int]) -> bytes:
    return session.create_topic(name, assignments=replicas)


@case(THREE_BROKERS, row="KAFKA-6796, librdkafka #1665")
def records_through_a_broker_that_does_not_lead(session: Session) -> None:
    for topic, replicas in (("not-led", [1]), ("not-led-followed", [1, 2])):
        topic_id = _assigned(session, topic, replicas)
        _append(session, topic, "a")
        if len(replicas) > 1:
            _wait_for_replica(session, topic)
        for node in (2, 3):
            for partition in (0, 7):
                for version in (3, 9, 10, 12):
                    session.call(produce(topic, _batch("a"), partition=partition), version, node=node)
                for version in (4, 11, 12):
                    session.call(fetch(fetched(topic, partition=partition)), version, node=node)
                for version in (15, 16, 17):
                    session.call(fetch(fetched("", topic_id, partition=partition)), version, node=node)


def _wait_for_replica(session: Session, topic: str) -> None:
    """Wait until broker 2 has the record and its high watermark."""

    def has_record(response: Any) -> bool:
        return bool(response.responses[0].partitions[0].high_watermark == 1)

    session.wait_for(fetch(fetched(topic)), has_record, FETCH_VERSION, node=2)


@case(THREE_BROKERS, row="KAFKA-15661, AutoMQ #3548")
def the_new_leader_in_responses(session: Session) -> None:
    topic = "new-leader"
    topic_id = _assigned(session, topic, [1, 2])
    _append(session, topic, "a")
    _wait_for_replica(session, topic)
    for node in (1, 2, 3):
        for epoch in (-1, 0, 5):
            session.call(fetch(fetched("", topic_id, epoch=epoch)), 17, node=node)
            session.call(list_offsets(topic, -1, epoch=epoch), node=node)
    session.call(produce(topic, _batch("b")), 12, node=2)
    data = [{"index": 0, "records": _batch("b")}]
    topics = [{"name": name, "partition_data": data} for name in (topic, "new-leader-none")]
    session.call(request("Produce", acks=-1, timeout_ms=30_000, topic_data=topics), 12, node=3)


@case(THREE_BROKERS, row="KAFKA-7347, Redpanda #6400")
def offsets_of_a_broker_that_does_not_lead(session: Session) -> None:
    topic, none = "not-led-offsets", "not-led-offsets-none"
    _assigned(session, topic, [1, 2])
    _append(session, topic, "a")
    _wait_for_replica(session, topic)
    for node in (1, 2, 3):
        for replica_id in (_CONSUMER, _DEBUGGING, 3):
            session.call(end_of_epoch(topic, 0, replica_id=replica_id), node=node)
            session.call(list_offsets(topic, -2, replica_id=replica_id), node=node)
        session.call(end_of_epoch(none, 0), node=node)
        session.call(list_offsets(none, -1), node=node)
        session.call(describe_producers(topic, 0, 7), node=node)


@case(THREE_BROKERS, row="Redpanda #18174")
def requests_to_a_broker_that_does_not_coordinate(session: Session) -> None:
    topic = group = "wrong-coordinator"
    session.create_topic(topic)
    node = _find_coordinator(session, topic, TRANSACTION)
    producer = _request(session, init_producer(topic), INIT_PRODUCER_ID_VERSION, node=node)
    other = node % 3 + 1
    session.call(init_producer(topic), INIT_PRODUCER_ID_VERSION, node=other)
    session.call(add_partitions(producer, topic, topic, 0), 3, node=other)
    session.call(add_offsets(producer, topic, group), 3, node=other)
    session.call(end_txn(producer, topic, committed=True), 3, node=other)
    session.call(request("DescribeTransactions", transactional_ids=[topic]), node=other)
    other = _find_coordinator(session, group, GROUP) % 3 + 1
    session.call(commit(group, [committed(topic, (0, ""))]), OFFSETS_VERSION, node=other)
    session.call(offsets(group, topic, 0), OFFSETS_VERSION, node=other)
    session.call(_join(group, topic), node=other)
    session.call(_txn_commit(group, topic, producer, topic), 3, node=other)
    session.call(_share_heartbeat(group, subscribed_topic_names=[topic]), node=other)
    for version in (1, 2, 7):
        session.call(old_offsets(group, topic), version, node=other)
    session.call(request("LeaveGroup", group_id=group, members=[{"member_id": "m"}]), node=other)
    session.call(request("DescribeGroups", groups=[group]), node=other)
    session.call(request("DeleteGroups", groups_names=[group]), node=other)


@case(THREE_BROKERS, row="librdkafka #3003, Redpanda #7905")
def a_transaction_on_three_brokers(session: Session) -> None:
    topic, partitions = "across", (0, 1, 2)
    _assigned(session, topic, [1], [2], [3])
    for is_committed, end in ((True, 2), (False, 4)):
        name = f"across-{is_committed}"
        node = _find_coordinator(session, name, TRANSACTION)
        producer = _request(session, init_producer(name), INIT_PRODUCER_ID_VERSION, node=node)
        adding = add_partitions(producer, name, topic, *partitions)
        _call(session, adding, 3, node=node, unordered=["results_by_partition"])
        for partition in partitions:
            record = _record(name, int(time.time() * 1000))
            batch = build_batch([record], base_sequence=0, transactional=True, **of_producer(producer))
            _call(session, produce(topic, batch, name, partition), 11, node=partition + 1)
        _call(session, add_offsets(producer, name, name), 3, node=node)
        group = _find_coordinator(session, name, GROUP)
        _call(session, _txn_commit(name, topic, producer, name), 3, node=group)
        _call(session, offsets(name, topic, 0), OFFSETS_VERSION, node=group)
        _call(session, end_txn(producer, name, committed=is_committed), 3, node=node)
        for partition in partitions:
            reading = fetch(fetched(topic, partition=partition), isolation_level=1)
            session.eventually(reading, FETCH_VERSION, partial(_is_stable, end), node=partition + 1)
        session.eventually(offsets(name, topic, 0), OFFSETS_VERSION, lambda found: not error_codes(found), node=group)


def _is_stable(end: int, response: Any) -> bool:
    partition = response.responses[0].partitions[0]
    return bool(partition.last_stable_offset == partition.high_watermark == end)


# Connections.

_IDLE_MS = 2_000
CLOSED_WHEN_IDLE = Layout((f"connections.max.idle.ms={_IDLE_MS}",))
FOUR_CONNECTIONS = Layout(("max.connections.per.ip=4",))


def _is_open(session: Session, client_id: str) -> None:
    """Compare whether the connection of a client is open."""
    session.call(metadata(auto_create=True), client_id=client_id, only=["throttle_time_ms"])


@case(CLOSED_WHEN_IDLE, row="kafka-node #1377, kafka-rust #102")
def idle_connections(session: Session) -> None:
    _is_open(session, "idle")
    for _ in range(4):
        _is_open(session, "busy")
        time.sleep(_IDLE_MS / 2_000)
    _is_open(session, "busy")
    _is_open(session, "idle")


@case(CLOSED_WHEN_IDLE, row="franz-go #202")
def a_response_that_takes_longer_than_the_idle_time(session: Session) -> None:
    topic_id = session.create_topic("idle-fetch")
    _call(session, fetch(fetched("", topic_id)))
    waiting = fetch(fetched("", topic_id), min_bytes=1, max_wait_ms=3 * _IDLE_MS)
    session.call(waiting, client_id="waiting")


@case(FOUR_CONNECTIONS, row="KAFKA-2614")
def more_connections_than_an_address_may_have(session: Session) -> None:
    for number in (*range(6), 0):
        _is_open(session, f"client {number}")
    session.close()
    session.eventually(metadata(auto_create=True), None, lambda found: found is not None, only=["throttle_time_ms"])
    for number in range(4):
        _is_open(session, f"client {number}")
