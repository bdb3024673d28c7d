"""Public reports about Kafka and its relatives: the requests that each is about.

The row of a case names its report; `docs/compatibility/reports.md` is the log of all.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sluice.protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from sluice.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.describe_producers import DescribeProducersRequest
from sluice.protocol.apis.describe_producers import TopicRequest as ProducersOfTopic
from sluice.protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from sluice.protocol.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest
from sluice.protocol.apis.end_txn import EndTxnRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from sluice.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from sluice.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest
from sluice.protocol.apis.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from sluice.protocol.apis.share_fetch import AcknowledgementBatch, ShareFetchRequest
from sluice.protocol.apis.share_fetch import FetchPartition as SharePartition
from sluice.protocol.apis.share_fetch import FetchTopic as ShareTopic
from sluice.protocol.apis.share_fetch import ForgottenTopic as ForgottenShareTopic
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch, stamp_checksum
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record
from tests.support.wire import error_codes
from tools.differential.case import Layout, case
from tools.differential.session import SETTLED_WITHIN_S, Session

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2  # kinds of coordinators
_LEAVE, _LEAVE_STATIC = -1, -2  # member epochs
_FINAL = -1  # the epoch of the last request of a session
_ACCEPT, _RELEASE, _REJECT = 1, 2, 3
_CONSUMER = -1
_DEBUGGING = -2
_INIT_PRODUCER_ID_VERSION = 5  # the newest stable one
_LAST_OF_NAMES = {"produce": 12, "fetch": 12, "offsets": 9}  # versions after them have topic ids
_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 27, 35
_GROUP_CONFIGS = 32
_UNKNOWN_ID = bytes(15) + b"\7"
_TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


def _is_settled(response: Any) -> bool:
    return not isinstance(response, Message) or not _TRANSIENT.intersection(error_codes(response))


def _call(session: Session, request: Message, version: int | None = None, **options: Any) -> Any:
    """Compare the first response after the broker has applied earlier changes."""
    return session.eventually(request, version, _is_settled, **options)


def _request(session: Session, request: Message, version: int | None = None, **options: Any) -> Any:
    """Return the first response after the broker has applied earlier changes, without comparing it."""
    end = time.monotonic() + SETTLED_WITHIN_S
    while not _is_settled(response := session.request(request, version, **options)):
        assert time.monotonic() < end, f"not settled after {SETTLED_WITHIN_S} s: {response}"
        time.sleep(0.05)
    return response


def _find_coordinator(session: Session, key: str, kind: int) -> int:
    """Return the broker that is the coordinator."""
    found = _request(session, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators[0]
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


def _produce(topic: str, records: bytes, transactional_id: str | None = None, partition: int = 0) -> ProduceRequest:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])]
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=data)


def _append(session: Session, topic: str, *values: str) -> None:
    for value in values:
        response = _request(session, _produce(topic, _batch(value)), _LAST_OF_NAMES["produce"])
        assert not error_codes(response), response


def _fetch(
    *topics: FetchTopic, session_id: int = 0, session_epoch: int = -1, forgotten: Sequence[ForgottenTopic] = ()
) -> FetchRequest:
    return FetchRequest(
        replica_id=_CONSUMER,
        max_bytes=1_000_000,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=list(topics),
        forgotten_topics_data=list(forgotten),
    )


def _fetched(
    topic: str, topic_id: bytes = bytes(16), *, offset: int = 0, partition: int = 0, epoch: int = -1
) -> FetchTopic:
    wanted = FetchPartition(
        partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1_000_000
    )
    return FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])


def _list_offsets(topic: str, timestamp: int, *, epoch: int = -1, replica_id: int = _CONSUMER) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
    return ListOffsetsRequest(replica_id=replica_id, topics=topics, timeout_ms=30_000)


def _commit(
    group: str, topic: str, *partitions: tuple[int, str], member: str = "", epoch: int = -1
) -> OffsetCommitRequest:
    committed = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=metadata)
        for index, metadata in partitions
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=committed)]
    return OffsetCommitRequest(group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=topics)


def _offsets(
    group: str, topic: str, *partitions: int, member: str | None = None, epoch: int = -1
) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    groups = [OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch, topics=topics)]
    return OffsetFetchRequest(groups=groups, require_stable=True)


# Groups of KIP-848.


def _create_group_topic(session: Session, name: str, partitions: int = 1) -> bytes:
    """Create a topic, and wait until the group coordinator, which learns of it later, assigns its partitions."""
    topic_id = session.create_topic(name, partitions)
    _find_coordinator(session, name, _GROUP)
    end = time.monotonic() + SETTLED_WITHIN_S
    attempt = 0
    while not _request(session, _join(f"probe-{name}-{attempt}", name)).assignment.topic_partitions:
        assert time.monotonic() < end, f"the coordinator does not know the topic {name}"
        time.sleep(0.05)
        attempt += 1
    return topic_id


def _join(group: str, topic: str, member: int = 1, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given: dict[str, Any] = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=_member(member), **given | fields)


_INCOMPLETE: dict[str, dict[str, Any]] = {
    "no subscription": {"subscribed_topic_names": None},
    "empty subscription": {"subscribed_topic_names": []},
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "no owned partitions": {"topic_partitions": None},
    "owned partitions": {"topic_partitions": [TopicPartitions(topic_id=_UNKNOWN_ID, partitions=[0])]},
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
    _find_coordinator(session, "incomplete", _GROUP)
    for number, fields in enumerate(_INCOMPLETE.values()):
        _call(session, _changed(number, fields))


def _changed(number: int, fields: dict[str, Any]) -> ConsumerGroupHeartbeatRequest:
    request = _join(f"incomplete-{number}", "incomplete")
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@case(row="librdkafka #5541")
def heartbeats_of_unknown_and_old_epochs(session: Session) -> None:
    _create_group_topic(session, "epochs")
    joined = _call(session, _join("epochs", "epochs"))
    for epoch in (joined.member_epoch + 5, joined.member_epoch - 1):
        _call(session, ConsumerGroupHeartbeatRequest(group_id="epochs", member_id=_member(1), member_epoch=epoch))
    _call(session, ConsumerGroupHeartbeatRequest(group_id="epochs", member_id=_member(2), member_epoch=1))
    _call(session, ConsumerGroupHeartbeatRequest(group_id="epochs", member_id=_member(1), member_epoch=0))
    _call(session, ConsumerGroupHeartbeatRequest(group_id="epochs", member_id=_member(1), member_epoch=_LEAVE))
    _call(session, ConsumerGroupHeartbeatRequest(group_id="epochs", member_id=_member(1), member_epoch=_LEAVE))


@case(row="KAFKA-16815")
def an_instance_id_of_a_removed_static_member(session: Session) -> None:
    topic = group = "static"
    _create_group_topic(session, topic)
    epoch = _call(session, _join(group, topic, instance_id="instance")).member_epoch
    _call(session, _join(group, topic, 2, instance_id="instance"))
    removed = [MemberIdentity(member_id="", group_instance_id="instance")]
    _call(session, LeaveGroupRequest(group_id=group, members=removed))
    _call(session, _join(group, topic, 2, instance_id="instance"))
    heartbeat = ConsumerGroupHeartbeatRequest(group_id=group, member_id=_member(1), member_epoch=epoch)
    _call(session, heartbeat)
    heartbeat.instance_id = "instance"
    _call(session, heartbeat)
    away = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=_member(2), member_epoch=_LEAVE_STATIC, instance_id="instance"
    )
    _call(session, away)
    _call(session, _join(group, topic, 3, instance_id="instance"))
    _call(session, _join(group, topic, 4, instance_id="other", member_epoch=2))


@case(row="KAFKA-18060")
def offsets_of_a_transaction_without_a_member_id(session: Session) -> None:
    topic = group = "no-member-id"
    _create_group_topic(session, topic)
    member = _call(session, _join(group, topic))
    producer = _init_producer(session, "no-member-id")
    _call(
        session,
        AddOffsetsToTxnRequest(
            transactional_id="no-member-id",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group,
        ),
        3,
    )
    for version, member_id, epoch in ((2, "", -1), (3, "", -1), (5, "", -1), (5, _member(1), member.member_epoch + 1)):
        _call(session, _txn_commit(group, topic, producer, "no-member-id", member=member_id, epoch=epoch), version)
    _call(session, _commit(group, topic, (0, "")), _LAST_OF_NAMES["offsets"])
    _call(session, _end(producer, "no-member-id", committed=False), 4)


@case(row="KAFKA-20165")
def fetch_offsets_with_an_old_epoch_or_an_unknown_topic(session: Session) -> None:
    topic = group = "fetch-offsets"
    topic_id = _create_group_topic(session, topic)
    member = _call(session, _join(group, topic))
    commit = _commit(group, topic, (0, "note"), member=_member(1), epoch=member.member_epoch)
    _call(session, commit, _LAST_OF_NAMES["offsets"])
    for member_id, epoch in ((_member(1), member.member_epoch), (_member(1), 9), (_member(2), 1), (None, -1), ("", 1)):
        _call(session, _offsets(group, topic, 0, 7, member=member_id, epoch=epoch), _LAST_OF_NAMES["offsets"])
    for wanted in (topic_id, _UNKNOWN_ID, bytes(16)):
        topics = [OffsetFetchRequestTopics(topic_id=wanted, partition_indexes=[0, 7])]
        _call(session, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]), 10)
    for wanted in (_UNKNOWN_ID, bytes(16)):
        commit.topics[0].topic_id = wanted
        _call(session, commit, 10)
    _call(session, _offsets(group, "fetch-offsets-none", 0), _LAST_OF_NAMES["offsets"])


@case(row="KAFKA-19439")
def fetch_offsets_of_groups_of_other_kinds(session: Session) -> None:
    _create_group_topic(session, "other-kinds")
    _call(
        session,
        ShareGroupHeartbeatRequest(
            group_id="other-kinds", member_id=_member(1), subscribed_topic_names=["other-kinds"]
        ),
    )
    topics = [OffsetFetchRequestTopic(name="other-kinds", partition_indexes=[0])]
    for group in ("other-kinds", "other-kinds-none", ""):
        for version in (1, 2, 5, 7):
            _call(session, OffsetFetchRequest(group_id=group, topics=topics), version)
        _call(session, _offsets(group, "other-kinds", 0), 8)
        _call(session, _commit(group, "other-kinds", (0, "")), 2)
        _call(session, _join(group, "other-kinds"))


@case(row="KAFKA-16371")
def one_committed_metadata_too_large(session: Session) -> None:
    topic = group = "large-metadata"
    _create_group_topic(session, topic, 2)
    _call(session, _commit(group, topic, (0, "m" * 4097), (1, "")), _LAST_OF_NAMES["offsets"])
    _call(session, _offsets(group, topic, 0, 1), _LAST_OF_NAMES["offsets"])
    producer = _init_producer(session, topic)
    _add_group(session, producer, topic, group)
    _call(session, _txn_commit(group, topic, producer, topic, metadata=("m" * 4097, "")), 4)
    _call(session, _offsets(group, topic, 0, 1), _LAST_OF_NAMES["offsets"])
    _call(session, _end(producer, topic, committed=True), 4)
    session.eventually(_offsets(group, topic, 0, 1), _LAST_OF_NAMES["offsets"], lambda found: not error_codes(found))


@case(row="Redpanda #7958")
def the_limit_of_committed_metadata_in_characters(session: Session) -> None:
    topic = group = "metadata-limit"
    _create_group_topic(session, topic)
    for letter, units in (("m", 1), ("\u00e9", 1), ("\u6c34", 1), ("\U0001f4a7", 2)):
        for length in (4096, 4098):
            _call(session, _commit(group, topic, (0, letter * (length // units))), _LAST_OF_NAMES["offsets"])


@case(row="KAFKA-19902")
def committed_leader_epochs(session: Session) -> None:
    topic = group = "leader-epochs"
    _create_group_topic(session, topic)
    _append(session, topic, "a", "b")
    commit = _commit(group, topic, (0, ""))
    for epoch in (0, 7, -1):
        commit.topics[0].partitions[0].committed_leader_epoch = epoch
        _call(session, commit, _LAST_OF_NAMES["offsets"])
        _call(session, _offsets(group, topic, 0), _LAST_OF_NAMES["offsets"])
    for epoch in (-2, -1, 0, 7):
        _call(session, _end_of_epoch(topic, epoch))


def _end_of_epoch(
    topic: str, epoch: int, current: int = -1, replica_id: int = _CONSUMER
) -> OffsetForLeaderEpochRequest:
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    return OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)


# Share groups.


def _share_fetch(
    group: str, topic_id: bytes, epoch: int, *acknowledged: tuple[int, int, list[int]], **fields: Any
) -> ShareFetchRequest:
    batches = [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in acknowledged
    ]
    partition = SharePartition(partition_index=0, partition_max_bytes=1_000_000, acknowledgement_batches=batches)
    given: dict[str, Any] = {
        "group_id": group,
        "member_id": _member(1),
        "share_session_epoch": epoch,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "max_records": 4,
        "batch_size": 4,
        "topics": [ShareTopic(topic_id=topic_id, partitions=[partition])],
    }
    return ShareFetchRequest(**given | fields)


def _acknowledge(
    group: str, topic_id: bytes, epoch: int, *batches: tuple[int, int, list[int]]
) -> ShareAcknowledgeRequest:
    acknowledged = [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in batches
    ]
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=acknowledged)
    return ShareAcknowledgeRequest(
        group_id=group,
        member_id=_member(1),
        share_session_epoch=epoch,
        topics=[AcknowledgeTopic(topic_id=topic_id, partitions=[partition])],
    )


def _share_group(session: Session, name: str, *values: str) -> bytes:
    """Join a share group, and wait until a session acquires these records of the topic of its name; release them."""
    earliest = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(resource_type=_GROUP_CONFIGS, resource_name=name, configs=[earliest])
    session.request(IncrementalAlterConfigsRequest(resources=[resource]))
    topic_id = _create_group_topic(session, name)
    _append(session, name, *values)
    heartbeat = ShareGroupHeartbeatRequest(group_id=name, member_id=_member(1), subscribed_topic_names=[name])
    heartbeat.member_epoch = _request(session, heartbeat).member_epoch
    heartbeat.subscribed_topic_names = None
    end = time.monotonic() + SETTLED_WITHIN_S
    while True:
        found = [_request(session, _share_fetch(name, topic_id, epoch)) for epoch in (0, 1)]
        _request(session, _share_fetch(name, topic_id, _FINAL, topics=[]))
        if any(one.acquired_records for each in found for topic in each.responses for one in topic.partitions):
            return topic_id
        assert time.monotonic() < end, f"no records were acquired: {found}"
        heartbeat.member_epoch = _request(session, heartbeat).member_epoch
        time.sleep(0.1)


@case(row="librdkafka #5393")
def acknowledgements_in_share_fetches(session: Session) -> None:
    group = "acknowledgements"
    topic_id = _share_group(session, group, "a", "b", "c", "d")
    _call(session, _share_fetch(group, topic_id, 0, (0, 0, [_ACCEPT])))
    _call(session, _share_fetch(group, topic_id, 0, max_wait_ms=5_000))
    _call(session, _share_fetch(group, topic_id, 1))
    acknowledged: list[list[tuple[int, int, list[int]]]] = [
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
        _call(session, _share_fetch(group, topic_id, epoch, *batches, max_wait_ms=0))
    forgotten = [ForgottenShareTopic(topic_id=topic_id, partitions=[0])]
    _call(session, _share_fetch(group, topic_id, _FINAL, (2, 2, [_RELEASE]), forgotten_topics_data=forgotten))
    _call(session, _share_fetch(group, topic_id, _FINAL, (2, 2, [_RELEASE])))


@case(row="apache/kafka #20836")
def acknowledgements_without_a_session_or_a_topic(session: Session) -> None:
    group = "acknowledge"
    topic_id = _share_group(session, group, "a", "b", "c")
    _call(session, _acknowledge(group, topic_id, 1, (0, 0, [_ACCEPT])))
    _call(session, _acknowledge(group, topic_id, 0, (0, 0, [_ACCEPT])))
    _request(session, _share_fetch(group, topic_id, 0, max_wait_ms=5_000))
    _request(session, _share_fetch(group, topic_id, 1))
    _call(session, _acknowledge(group, _UNKNOWN_ID, 2, (0, 0, [_ACCEPT])))
    _call(session, _acknowledge(group, topic_id, 3, (0, 0, [_ACCEPT]), (2, 2, [_RELEASE])))
    _call(session, _acknowledge(group, topic_id, 9, (1, 1, [_ACCEPT])))
    _call(session, _acknowledge(group, topic_id, 4, (0, 0, [_ACCEPT])))
    _call(session, _acknowledge("", topic_id, 5, (0, 0, [_ACCEPT])))
    _call(session, _acknowledge(group, topic_id, _FINAL, (1, 1, [_ACCEPT])))
    _call(session, _acknowledge(group, topic_id, 6, (1, 1, [_ACCEPT])))


@case(row="librdkafka #5514")
def heartbeats_of_share_groups(session: Session) -> None:
    group = "share-heartbeats"
    _create_group_topic(session, group)
    _find_coordinator(session, group, _GROUP)

    def beat(member: str, epoch: int, *, group: str = group, **fields: Any) -> None:
        _call(session, ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields))

    beat(_member(1), _LEAVE, group="share-heartbeats-none")
    beat(_member(1), 1, group="share-heartbeats-none")
    beat(_member(1), 0)
    beat(_member(1), 0, subscribed_topic_names=[])
    beat(_member(1), 0, subscribed_topic_names=[group], rack_id="")
    beat("", 0, subscribed_topic_names=[group])
    beat(_member(1), 0, group="", subscribed_topic_names=[group])
    beat(_member(1), 0, subscribed_topic_names=[group])
    beat(_member(1), 9)
    beat(_member(1), -2)
    beat(_member(2), 1)
    beat(_member(2), _LEAVE)
    beat(_member(1), _LEAVE)
    beat(_member(1), _LEAVE)
    beat(_member(1), 1)


@case(row="Dekaf #821")
def offsets_of_share_groups(session: Session) -> None:
    group = "share-offsets"
    _create_group_topic(session, group, 2)
    _find_coordinator(session, group, _GROUP)

    def alter(group: str, topic: str, *partitions: int) -> None:
        changed = [
            AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0) for index in partitions
        ]
        topics = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=changed)]
        _call(session, AlterShareGroupOffsetsRequest(group_id=group, topics=topics))

    def describe(group: str, topic: str, *partitions: int) -> None:
        topics = [DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=list(partitions))]
        groups = [DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
        _call(session, DescribeShareGroupOffsetsRequest(groups=groups), unordered=["partitions"])

    def delete(group: str, topic: str) -> None:
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
        _call(session, DeleteShareGroupOffsetsRequest(group_id=group, topics=topics))

    describe("share-offsets-none", group, 0)
    delete("share-offsets-none", group)
    delete("", group)
    alter("", group, 0)
    alter(group, group, 0, 7)
    describe(group, group, 0, 1, 7)
    describe(group, "share-offsets-none", 0)
    alter(group, "share-offsets-none", 0)
    delete(group, "share-offsets-none")
    _call(session, ShareGroupHeartbeatRequest(group_id=group, member_id=_member(1), subscribed_topic_names=[group]))
    alter(group, group, 0)
    delete(group, group)
    _call(session, ShareGroupHeartbeatRequest(group_id=group, member_id=_member(1), member_epoch=_LEAVE))
    delete(group, group)
    describe(group, group, 0, 1)


# Client telemetry.


@case(row="Dekaf #819")
def telemetry_without_a_metrics_plugin(session: Session) -> None:
    served = session.request(ApiVersionsRequest(client_software_name="report", client_software_version="1"), 3)
    session.note("telemetry", [each.api_key for each in served.api_keys if each.api_key in (71, 72)])
    session.call(GetTelemetrySubscriptionsRequest(), 0)
    session.call(PushTelemetryRequest(client_instance_id=_UNKNOWN_ID, subscription_id=1, metrics=b"\0"), 0)


# Old formats.


@case(row="KAFKA-6739")
def records_with_headers_in_old_fetches(session: Session) -> None:
    session.create_topic("down-conversion")
    batch = build_batch([Record(0, 1000, b"key", b"a", (("name", b"header"),))])
    _call(session, _produce("down-conversion", batch), _LAST_OF_NAMES["produce"])
    _call(session, _fetch(_fetched("down-conversion")), 4)
    for version in (0, 1, 2, 3):
        _call(session, _fetch(_fetched("down-conversion")), version)


@case(row="sarama #988")
def message_sets_in_new_produces(session: Session) -> None:
    session.create_topic("message-sets")
    for magic in (0, 1):
        records = build_message_set([_record("a")], magic=magic)
        for version in (2, 3, 9, 12):
            _call(session, _produce("message-sets", records), version)
    two = _batch("a") + _batch("b")
    for records in (two, b"", _batch("a")[:-3], _batch("a") + b"\0\0"):
        for version in (3, 12):
            _call(session, _produce("message-sets", records), version)
    _call(session, _fetch(_fetched("message-sets")), _LAST_OF_NAMES["fetch"])


_TIMESTAMPS = (-1, -2, -86_400_000, -(2**62), 0)


@case(row="KIP-228")
def timestamps_before_1970(session: Session) -> None:
    session.create_topic("before-1970")
    session.create_topic("before-1970-log-append", configs={"message.timestamp.type": "LogAppendTime"})
    for topic in ("before-1970", "before-1970-log-append"):
        for timestamp in _TIMESTAMPS:
            _call(session, _produce(topic, _at(timestamp)), _LAST_OF_NAMES["produce"])
        _call(session, _fetch(_fetched(topic)), _LAST_OF_NAMES["fetch"])
    for timestamp in (*range(-1, -9, -1), -86_400_000, -(2**63), 2**63 - 1):
        _call(session, _list_offsets("before-1970", timestamp))


@case(row="KAFKA-13710")
def records_with_and_without_an_invalid_timestamp(session: Session) -> None:
    session.create_topic("invalid-timestamps", configs={"message.timestamp.before.max.ms": "3600000"})
    now = int(time.time() * 1000)
    for timestamps in ((now, 1000, now), (1000, now), (now, now)):
        batch = build_batch([_record("a", timestamp, offset) for offset, timestamp in enumerate(timestamps)])
        for version in (7, 8, 12):
            response = (
                _request(session, _produce("invalid-timestamps", batch), version).responses[0].partition_responses[0]
            )
            errors = {
                each.batch_index: each.batch_index_error_message.partition("[")[0] for each in response.record_errors
            }
            session.note(f"Produce {version}", [response.error_code, response.error_message, errors])


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
        wanted = CreatableTopic(name="impossible", num_partitions=partitions, replication_factor=replicas)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000, validate_only=True)
        for version in (2, 7):
            topic = _request(session, request, version).topics[0]
            session.note(f"CreateTopics {version}", [topic.error_code, topic.error_message, topic.num_partitions])


@case(row="franz-go #37")
def coordinators_of_empty_and_malformed_keys(session: Session) -> None:
    _find_coordinator(session, "some", _GROUP)
    for kind in (_GROUP, _TRANSACTION, _SHARE, 3, -1):
        for key in ("", "some", "group:topic:0", "group:AAAAAAAAAAAAAAAAAAAABw:0", "group:AAAAAAAAAAAAAAAAAAAABw:x"):
            for version in (0, 2, 4, 6) if kind == _GROUP else (2, 4, 6):
                request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
                session.call(request, version)
    _call(session, FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[]), 4)
    _call(session, FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=["a", "", "a"]), 4)


@case(row="Kroxylicious #1364")
def pages_of_partitions(session: Session) -> None:
    for topic, partitions in (("pages-a", 3), ("pages-b", 2), ("pages-c", 1)):
        session.create_topic(topic, partitions)
    names = ("pages-c", "pages-a", "pages-none", "pages-b")

    def describe(cursor: Cursor | None, limit: int, *topics: str, only: Sequence[str] = ()) -> Any:
        wanted = [TopicRequest(name=name) for name in topics]
        request = DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=limit, cursor=cursor)
        return _call(session, request, only=only)

    cursor = None
    for _ in range(9):
        cursor = describe(cursor, 2, *names).next_cursor
        if cursor is None:
            break
        cursor = Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
    for topic, partition in (
        ("pages-a", 3),
        ("pages-a", -1),
        ("pages-none", 0),
        ("pages-bb", 0),
        ("pages-z", 0),
        ("", 0),
    ):
        describe(Cursor(topic_name=topic, partition_index=partition), 10, *names)
    for limit in (0, -1, 1, 6, 2001):
        describe(None, limit, *names)
    describe(None, 10, "pages-a", "pages-a")
    describe(None, 10, "pages a", "..")
    describe(Cursor(topic_name="pages-b", partition_index=1), 2, only=["topics"])  # of all topics


# Fetch sessions.


@case(row="KAFKA-13111")
def unknown_topic_ids_in_fetch_sessions(session: Session) -> None:
    topic_id = session.create_topic("session-ids")
    _append(session, "session-ids", "a")
    _call(session, _fetch(_fetched("", _UNKNOWN_ID)))
    _call(session, _fetch(_fetched("", bytes(16))))
    found = _call(session, _fetch(_fetched("", topic_id), _fetched("", _UNKNOWN_ID), session_epoch=0))
    _call(session, _fetch(session_id=found.session_id, session_epoch=1))
    _call(session, _fetch(session_id=found.session_id, session_epoch=1))
    _call(session, _fetch(session_id=found.session_id, session_epoch=2), 12)
    _call(session, _fetch(session_id=found.session_id + 1, session_epoch=1))
    _call(session, _fetch(session_id=found.session_id, session_epoch=-1))
    _call(session, _fetch(session_id=found.session_id, session_epoch=2))


@case(row="KAFKA-13111")
def a_topic_created_again_in_a_fetch_session(session: Session) -> None:
    old = session.create_topic("session-again")
    found = _call(session, _fetch(_fetched("", old), session_epoch=0))
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="session-again")], timeout_ms=30_000)
    _call(session, deletion, 6)
    new = session.create_topic("session-again")
    _call(session, _fetch(session_id=found.session_id, session_epoch=1))
    _call(session, _fetch(_fetched("", new), session_id=found.session_id, session_epoch=2))
    for topic_id in (old, new, _UNKNOWN_ID):
        topic = MetadataRequestTopic(topic_id=topic_id, name=None)
        _call(session, MetadataRequest(topics=[topic]), 13, only=["topics"])


@case(row="platformatic/kafka #321")
def forgotten_partitions(session: Session) -> None:
    ids = [session.create_topic(f"forgotten-{number}") for number in range(2)]
    for number in range(2):
        _append(session, f"forgotten-{number}", "a")
    found = _call(session, _fetch(*(_fetched("", each) for each in ids), session_epoch=0))

    def forget(epoch: int, *topic_ids: bytes, partition: int = 0) -> None:
        topics = [ForgottenTopic(topic_id=topic_id, partitions=[partition]) for topic_id in topic_ids]
        _call(session, _fetch(session_id=found.session_id, session_epoch=epoch, forgotten=topics))

    forget(1, ids[0])
    forget(2, ids[0])
    forget(3, _UNKNOWN_ID, bytes(16))
    forget(4, ids[1], partition=9)
    forget(5, ids[1])
    forget(6)


# Leader epochs.


@case(row="librdkafka #4620")
def leader_epochs_of_the_past_and_future(session: Session) -> None:
    topic = "current-epoch"
    session.create_topic(topic)
    _append(session, topic, "a")
    for epoch in (-2, -1, 0, 1, 7):
        for timestamp in (-1, -2, 0):
            _call(session, _list_offsets(topic, timestamp, epoch=epoch))
        _call(session, _fetch(_fetched(topic, epoch=epoch)), _LAST_OF_NAMES["fetch"])
        _call(session, _end_of_epoch(topic, 0, current=epoch))
    for version in (1, 4):
        _call(session, _list_offsets(topic, -1, replica_id=_DEBUGGING), version)
        _call(session, _list_offsets("current-epoch-none", -1, replica_id=_DEBUGGING), version)
    _call(session, _end_of_epoch("current-epoch-none", 0))


# Idempotent producers and transactions.


def _init_producer(session: Session, transactional_id: str | None, **fields: Any) -> Any:
    if transactional_id is not None:
        _find_coordinator(session, transactional_id, _TRANSACTION)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000, **fields)
    return _request(session, request, _INIT_PRODUCER_ID_VERSION)


def _end(producer: Any, transactional_id: str, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )


def _add_group(session: Session, producer: Any, transactional_id: str, group: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id=group,
    )
    _call(session, request, 3)


def _txn_commit(
    group: str,
    topic: str,
    producer: Any,
    transactional_id: str,
    *,
    member: str = "",
    epoch: int = -1,
    metadata: Sequence[str] = ("",),
) -> TxnOffsetCommitRequest:
    partitions = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata=each)
        for index, each in enumerate(metadata)
    ]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )


def _add(producer: Any, transactional_id: str, topic: str, *partitions: int) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )


def _sequence(producer: Any, sequence: int, *values: str, epoch: int | None = None) -> bytes:
    return _batch(
        *values,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch if epoch is None else epoch,
        base_sequence=sequence,
    )


@case(row="librdkafka #4953, kafkajs #598")
def sequences_with_gaps_and_repetitions(session: Session) -> None:
    topic = "sequences"
    session.create_topic(topic)
    producer = _init_producer(session, None)
    sent = (
        (0, "ab"),
        (0, "ab"),
        (3, "c"),
        (1, "b"),
        (2, "cd"),
        (2, "c"),
        (4, "e"),
        (5, "f"),
        (6, "g"),
        (7, "h"),
        (0, "ab"),
    )
    for sequence, values in sent:
        _call(session, _produce(topic, _sequence(producer, sequence, *values)), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 0, "i", epoch=1)), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 8, "j")), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 5, "j", epoch=2)), _LAST_OF_NAMES["produce"])
    _describe_producers(session, topic)


@case(row="Redpanda #22670")
def the_first_sequence_of_an_unknown_producer(session: Session) -> None:
    topic = "unknown-producer"
    session.create_topic(topic)
    producer = _init_producer(session, None)
    _call(session, _produce(topic, _sequence(producer, 7, "a")), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 8, "b")), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 2**31 - 1, "c", epoch=1)), _LAST_OF_NAMES["produce"])
    _call(session, _produce(topic, _sequence(producer, 0, "c", epoch=1)), _LAST_OF_NAMES["produce"])
    _describe_producers(session, topic)


def _describe_producers(session: Session, topic: str) -> None:
    _call(session, DescribeProducersRequest(topics=[ProducersOfTopic(name=topic, partition_indexes=[0])]))


@case(row="rust-rdkafka #349, KAFKA-18401, KAFKA-18464")
def empty_transactions(session: Session) -> None:
    for version in (3, 4, 5):
        for committed in (True, False):
            name = f"empty-{version}-{committed}"
            producer = _init_producer(session, name)
            first = _call(session, _end(producer, name, committed=committed), version)
            _call(session, _end(producer, name, committed=not committed), version)
            if version == 5 and not first.error_code:
                _call(session, _end(first, name, committed=False), version)
                _call(session, _end(first, name, committed=False), version)
            again = _init_producer(session, name)
            session.note("epochs", [producer.producer_epoch, again.producer_epoch])


@case(row="KAFKA-14402, KAFKA-14904")
def verification_of_partitions_of_a_transaction(session: Session) -> None:
    topic = "verify"
    session.create_topic(topic, 3)
    producer = _init_producer(session, topic)

    def verify(transactional_id: str, *partitions: int, only: bool = True, epoch: int | None = None) -> None:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch if epoch is None else epoch,
            verify_only=only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        _call(session, AddPartitionsToTxnRequest(transactions=[transaction]), 4, unordered=["results_by_partition"])

    verify(topic, 0)
    _call(session, _add(producer, topic, topic, 0, 1), 3, unordered=["results_by_partition"])
    _call(session, _add(producer, topic, topic, 0, 9), 3, unordered=["results_by_partition"])
    verify(topic, 0)
    verify(topic, 0, 2)
    verify(topic, 0, epoch=7)
    verify("verify-none", 0)
    verify(topic, 2, only=False)
    verify(topic, 2)
    verify("", 0)


@case(row="KAFKA-20785")
def commit_after_the_coordinator_aborted(session: Session) -> None:
    topic = "aborted"
    session.create_topic(topic)
    producers = {}
    for version in (3, 4, 5):
        name = f"aborted-{version}"
        _find_coordinator(session, name, _TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=500)
        producers[version] = _request(session, request, _INIT_PRODUCER_ID_VERSION)
        _call(session, _add(producers[version], name, topic, 0), 3)
    for version, producer in producers.items():
        name = f"aborted-{version}"
        described = DescribeTransactionsRequest(transactional_ids=[name])
        session.eventually(described, None, _is_aborted, only=["error_code"])
        _call(session, _end(producer, name, committed=True), version)
        _call(session, _end(producer, name, committed=False), version)


def _is_aborted(response: Any) -> bool:
    return bool(response.transaction_states[0].transaction_state == "CompleteAbort")


# Large group metadata.


@case(row="KAFKA-7286")
def metadata_and_assignments_of_more_than_a_record(session: Session) -> None:
    group = "large-group"
    _find_coordinator(session, group, _GROUP)

    def join(size: int, member_id: str, group: str) -> Any:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(size))]
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        found = _request(session, request, 9)
        session.note("JoinGroup", [found.error_code, found.generation_id])
        return found

    def sync(size: int, joined: Any, group: str) -> None:
        assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        found = _request(session, request, 5)
        session.note("SyncGroup", [found.error_code, len(found.assignment)])

    for number, (metadata, assignment) in enumerate(((10, 1_100_000), (1_100_000, 10), (600_000, 600_000), (10, 10))):
        name = f"{group}-{number}"
        joined = join(metadata, join(metadata, "", name).member_id, name)
        sync(assignment, joined, name)
        _call(
            session, OffsetCommitRequest(group_id=name, member_id=joined.member_id, generation_id_or_member_epoch=1), 8
        )


# Clusters of several brokers.

THREE_BROKERS = Layout(("offsets.topic.num.partitions=6", "transaction.state.log.num.partitions=6"), brokers=3)


def _assigned(session: Session, name: str, *replicas: list[int]) -> bytes:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in enumerate(replicas)
    ]
    return session.create_topic(name, assignments=assignments)


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
                    session.call(_produce(topic, _batch("a"), partition=partition), version, node=node)
                for version in (4, 11, 12):
                    session.call(_fetch(_fetched(topic, partition=partition)), version, node=node)
                for version in (15, 16, 17):
                    session.call(_fetch(_fetched("", topic_id, partition=partition)), version, node=node)


def _wait_for_replica(session: Session, topic: str) -> None:
    """Wait until broker 2 has the record and its high watermark."""
    request = _fetch(_fetched(topic))
    end = time.monotonic() + SETTLED_WITHIN_S
    while session.request(request, _LAST_OF_NAMES["fetch"], node=2).responses[0].partitions[0].high_watermark != 1:
        assert time.monotonic() < end, "the follower has no records"
        time.sleep(0.05)


@case(THREE_BROKERS, row="KAFKA-15661, AutoMQ #3548")
def the_new_leader_in_responses(session: Session) -> None:
    topic = "new-leader"
    topic_id = _assigned(session, topic, [1, 2])
    _append(session, topic, "a")
    _wait_for_replica(session, topic)
    for node in (1, 2, 3):
        for epoch in (-1, 0, 5):
            wanted = _fetched("", topic_id, epoch=epoch)
            session.call(_fetch(wanted), 17, node=node)
            session.call(_list_offsets(topic, -1, epoch=epoch), node=node)
    session.call(_produce(topic, _batch("b")), 12, node=2)
    two = _produce(topic, _batch("b"))
    two.topic_data.append(TopicProduceData(name="new-leader-none", partition_data=two.topic_data[0].partition_data))
    session.call(two, 12, node=3)


@case(THREE_BROKERS, row="KAFKA-7347, Redpanda #6400")
def offsets_of_a_broker_that_does_not_lead(session: Session) -> None:
    topic = "not-led-offsets"
    _assigned(session, topic, [1, 2])
    _append(session, topic, "a")
    _wait_for_replica(session, topic)
    for node in (1, 2, 3):
        for replica_id in (_CONSUMER, _DEBUGGING, 3):
            session.call(_end_of_epoch(topic, 0, replica_id=replica_id), node=node)
            session.call(_list_offsets(topic, -2, replica_id=replica_id), node=node)
        session.call(_end_of_epoch("not-led-offsets-none", 0), node=node)
        session.call(_list_offsets("not-led-offsets-none", -1), node=node)
        session.call(
            DescribeProducersRequest(topics=[ProducersOfTopic(name=topic, partition_indexes=[0, 7])]), node=node
        )


@case(THREE_BROKERS, row="Redpanda #18174")
def requests_to_a_broker_that_does_not_coordinate(session: Session) -> None:
    topic = "wrong-coordinator"
    session.create_topic(topic)
    node = _find_coordinator(session, topic, _TRANSACTION)
    request = InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=60_000)
    producer = _request(session, request, _INIT_PRODUCER_ID_VERSION, node=node)
    other = node % 3 + 1
    session.call(request, _INIT_PRODUCER_ID_VERSION, node=other)
    session.call(_add(producer, topic, topic, 0), 3, node=other)
    offsets = AddOffsetsToTxnRequest(
        transactional_id=topic, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, group_id=topic
    )
    session.call(offsets, 3, node=other)
    session.call(_end(producer, topic, committed=True), 3, node=other)
    session.call(DescribeTransactionsRequest(transactional_ids=[topic]), node=other)
    other = _find_coordinator(session, topic, _GROUP) % 3 + 1
    session.call(_commit(topic, topic, (0, "")), _LAST_OF_NAMES["offsets"], node=other)
    session.call(_offsets(topic, topic, 0), _LAST_OF_NAMES["offsets"], node=other)
    session.call(_join(topic, topic), node=other)
    session.call(_txn_commit(topic, topic, producer, topic), 3, node=other)
    member = ShareGroupHeartbeatRequest(group_id=topic, member_id=_member(1), subscribed_topic_names=[topic])
    session.call(member, node=other)
    for version in (1, 2, 7):
        wanted = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
        session.call(OffsetFetchRequest(group_id=topic, topics=wanted), version, node=other)
    session.call(LeaveGroupRequest(group_id=topic, members=[MemberIdentity(member_id="m")]), node=other)
    session.call(DescribeGroupsRequest(groups=[topic]), node=other)
    session.call(DeleteGroupsRequest(groups_names=[topic]), node=other)


@case(THREE_BROKERS, row="librdkafka #3003, Redpanda #7905")
def a_transaction_on_three_brokers(session: Session) -> None:
    topic = "across"
    _assigned(session, topic, [1], [2], [3])
    for committed, end in ((True, 2), (False, 4)):
        name = f"across-{committed}"
        node = _find_coordinator(session, name, _TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        producer = _request(session, request, _INIT_PRODUCER_ID_VERSION, node=node)
        _call(session, _add(producer, name, topic, 0, 1, 2), 3, node=node, unordered=["results_by_partition"])
        for partition in (0, 1, 2):
            batch = build_batch(
                [_record(name, int(time.time() * 1000))],
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
                transactional=True,
            )
            _call(session, _produce(topic, batch, name, partition), 11, node=partition + 1)
        offsets = AddOffsetsToTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=name,
        )
        _call(session, offsets, 3, node=node)
        group = _find_coordinator(session, name, _GROUP)
        _call(session, _txn_commit(name, topic, producer, name), 3, node=group)
        _call(session, _offsets(name, topic, 0), _LAST_OF_NAMES["offsets"], node=group)
        _call(session, _end(producer, name, committed=committed), 3, node=node)
        for partition in (0, 1, 2):
            fetch = _fetch(_fetched(topic, partition=partition))
            fetch.isolation_level = 1
            session.eventually(fetch, _LAST_OF_NAMES["fetch"], partial(_is_stable, end), node=partition + 1)
        session.eventually(
            _offsets(name, topic, 0), _LAST_OF_NAMES["offsets"], lambda found: not error_codes(found), node=group
        )


def _is_stable(end: int, response: Any) -> bool:
    partition = response.responses[0].partitions[0]
    return bool(partition.last_stable_offset == partition.high_watermark == end)


# Connections.

_IDLE_MS = 2_000
CLOSED_WHEN_IDLE = Layout((f"connections.max.idle.ms={_IDLE_MS}",))
FOUR_CONNECTIONS = Layout(("max.connections.per.ip=4",))
_HEARTBEAT = MetadataRequest(topics=[])


@case(CLOSED_WHEN_IDLE, row="kafka-node #1377, kafka-rust #102")
def idle_connections(session: Session) -> None:
    session.call(_HEARTBEAT, client_id="idle", only=["throttle_time_ms"])
    for _ in range(4):
        session.call(_HEARTBEAT, client_id="busy", only=["throttle_time_ms"])
        time.sleep(_IDLE_MS / 2_000)
    session.call(_HEARTBEAT, client_id="busy", only=["throttle_time_ms"])
    session.call(_HEARTBEAT, client_id="idle", only=["throttle_time_ms"])


@case(CLOSED_WHEN_IDLE, row="franz-go #202")
def a_response_that_takes_longer_than_the_idle_time(session: Session) -> None:
    topic_id = session.create_topic("idle-fetch")
    _call(session, _fetch(_fetched("", topic_id)))
    fetch = _fetch(_fetched("", topic_id))
    fetch.min_bytes, fetch.max_wait_ms = 1, 3 * _IDLE_MS
    session.call(fetch, client_id="waiting")


@case(FOUR_CONNECTIONS, row="KAFKA-2614")
def more_connections_than_an_address_may_have(session: Session) -> None:
    for number in range(6):
        session.call(_HEARTBEAT, client_id=f"client {number}", only=["throttle_time_ms"])
    session.call(_HEARTBEAT, client_id="client 0", only=["throttle_time_ms"])
    session.close()
    session.eventually(_HEARTBEAT, None, lambda found: found is not None, only=["throttle_time_ms"])
    for number in range(4):
        session.call(_HEARTBEAT, client_id=f"client {number}", only=["throttle_time_ms"])
