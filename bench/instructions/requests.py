"""The requests whose instructions are counted, in their order."""

from collections.abc import Callable
from typing import NamedTuple

from bench.first_second import SEQUENCES, send_first_second
from bench.wire_client import CLIENT_ID, Client, frame, receive
from sluice.protocol.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.sync_group import SyncGroupRequest
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

TOPIC = "counted"
_WALL_MS = 1_700_000_000_000  # where the clock of the counted process starts
_HIGH_QUOTA = 1e12  # bytes/s: charged, never throttled
_LARGE_BATCH_BYTES = 64 * 1024
_CONNECTIONS = 64
_FIRST_SECONDS = 2  # each is twenty requests


class Kind(NamedTuple):
    """Requests that are counted together."""

    name: str
    prepare: Callable[[Client, int], Callable[[], None]]  # returns what sends them
    in_lap: int = 64  # requests, or sequences of requests; at least twice as many as connections


def fill_topic(client: Client, records: int) -> None:
    """Create the topic of all requests, with batches of one record."""
    client.exchange([_metadata(TOPIC)] + [frame(_produce(_batch()), 12)] * records)


def _one_at_a_time(frames: Callable[[Client, int], list[bytes]]) -> Callable[[Client, int], Callable[[], None]]:
    def prepare(client: Client, count: int) -> Callable[[], None]:
        prepared = frames(client, count)
        return lambda: client.exchange(prepared)

    return prepare


def _same(request: Message, version: int) -> Callable[[Client, int], Callable[[], None]]:
    return _one_at_a_time(lambda _, count: [frame(request, version)] * count)


def _batch(size: int = 100, producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1) -> bytes:
    return build_batch(
        [Record(0, _WALL_MS, None, bytes(size), ())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def _records_of_1_kib() -> bytes:
    return build_batch([Record(offset, _WALL_MS, None, bytes(1024), ()) for offset in range(63)])


def _produce(records: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])


def _pipelined(client: Client, count: int) -> Callable[[], None]:
    depth = 16
    block = frame(_produce(_batch()), 12) * depth

    def send() -> None:
        for _ in range(count // depth):
            client.socket.sendall(block)
            for _ in range(depth):
                receive(client.socket)

    return send


def _many_connections(client: Client, count: int) -> Callable[[], None]:
    request = frame(_produce(_batch()), 12)
    connections = [client.connect() for _ in range(_CONNECTIONS)]

    def send() -> None:
        for _ in range(count // _CONNECTIONS):
            with client.stopped():
                for each in connections:
                    each.sendall(request)
            for each in connections:
                receive(each)

    for each in connections:
        each.sendall(request)
        receive(each)
    return send


def _idempotent(client: Client, count: int) -> list[bytes]:
    producer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    batches = [_batch(100, producer.producer_id, producer.producer_epoch, sequence) for sequence in range(count + 1)]
    frames = [frame(_produce(batch), 12) for batch in batches]
    client.exchange(frames[:1])
    return frames[1:]


def _fetch(offset: int, session_id: int = 0, session_epoch: int = -1) -> FetchRequest:
    partition = FetchPartition(partition=0, current_leader_epoch=0, fetch_offset=offset, partition_max_bytes=200)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
    )


def _fetch_without_session(_: Client, count: int) -> list[bytes]:
    return [frame(_fetch(offset), 12) for offset in range(count)]


def _fetch_as_aiokafka(_: Client, count: int) -> list[bytes]:
    return [frame(_fetch(offset), 4) for offset in range(count)]


def _fetch_in_session(client: Client, count: int) -> list[bytes]:
    opened = client.call(_fetch(0, session_epoch=0), 12)
    frames = [frame(_fetch(1 + i, opened.session_id, 1 + i), 12) for i in range(count + 1)]
    client.exchange(frames[:1])
    return frames[1:]


def _fetch_with_quota(client: Client, count: int) -> list[bytes]:
    client.call(_quotas(), 1)
    return _fetch_in_session(client, count)


def _idempotent_with_quota(client: Client, count: int) -> list[bytes]:
    client.call(_quotas(), 1)
    return _idempotent(client, count)


def _quotas() -> AlterClientQuotasRequest:
    entity = [EntityData(entity_type="client-id", entity_name=CLIENT_ID)]
    keys = ("producer_byte_rate", "consumer_byte_rate")
    ops = [OpData(key=key, value=_HIGH_QUOTA) for key in keys]
    return AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)])


def _ten_topics(client: Client, count: int) -> list[bytes]:
    names = [f"{TOPIC}-{i}" for i in range(10)]
    topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in names]
    client.call(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    return [_metadata(*names)] * count


def _metadata(*names: str) -> bytes:
    return frame(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]), 12)


class _Member(NamedTuple):
    group_id: str
    member_id: str
    generation_id: int


def join(client: Client, group_id: str) -> _Member:
    """Join a new group as its only member."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    joined = client.call(request, 3)
    member = _Member(group_id, joined.member_id, joined.generation_id)
    client.call(SyncGroupRequest(**member._asdict()), 3)
    return member


def _first_second(sequence: str) -> Callable[[Client, int], Callable[[], None]]:
    def prepare(client: Client, count: int) -> Callable[[], None]:
        def send() -> None:
            for _ in range(count):
                send_first_second(client, sequence, TOPIC, client.new_name())

        return send

    return prepare


def _heartbeats(client: Client, count: int) -> list[bytes]:
    member = join(client, client.new_name())
    return [frame(HeartbeatRequest(**member._asdict()), 4)] * count


def _commits(client: Client, count: int) -> list[bytes]:
    member = join(client, client.new_name())

    def commit(offset: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        return OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )

    return [frame(commit(offset), 9) for offset in range(count)]


# Those with a quota are last: it applies to all later ones.
KINDS = (
    Kind("ApiVersions", _same(ApiVersionsRequest(client_software_name="bench", client_software_version="1"), 4)),
    Kind("Metadata of a topic", _one_at_a_time(lambda _, count: [_metadata(TOPIC)] * count)),
    Kind("Metadata of ten topics", _one_at_a_time(_ten_topics)),
    Kind("Produce", _same(_produce(_batch()), 12)),
    Kind("Produce, 16 in flight", _pipelined),
    Kind("Produce on 64 connections", _many_connections),
    Kind("Produce of 64 KiB", _same(_produce(_batch(_LARGE_BATCH_BYTES)), 12)),
    Kind("Produce of 63 records of 1 KiB", _same(_produce(_records_of_1_kib()), 12)),
    Kind("Produce, idempotent", _one_at_a_time(_idempotent)),
    Kind("Fetch", _one_at_a_time(_fetch_without_session)),
    Kind("Fetch in a session", _one_at_a_time(_fetch_in_session)),
    Kind("Heartbeat", _one_at_a_time(_heartbeats)),
    Kind("OffsetCommit", _one_at_a_time(_commits)),
    Kind("Fetch of version 4", _one_at_a_time(_fetch_as_aiokafka)),
    Kind("First second of aiokafka", _first_second(SEQUENCES["aiokafka"]), _FIRST_SECONDS),
    Kind("First second of java", _first_second(SEQUENCES["java"]), _FIRST_SECONDS),
    Kind("Produce, idempotent, with a quota", _one_at_a_time(_idempotent_with_quota)),
    Kind("Fetch in a session, with a quota", _one_at_a_time(_fetch_with_quota)),
)
