"""The short way of fetches of one partition has the same results as the way of all others."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.replica.fetch_session import FetchSessionCache
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchRequest, ReplicaState
from sluice.protocol.records.build import ABORT, build_transaction_marker
from sluice.protocol.records.log_validator import CLIENT, COORDINATOR
from sluice.quotas.entity import QuotaEntity
from tests.support.acls import AUTHORIZER_ON
from tests.support.records import batch, batch_of, fetch, produce
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

SHORT_WAY = "sluice.broker.handlers.records.fetch.fetch_one"
NAMES = ("t", "zstd", "nowhere")
AUTHORIZER = (AUTHORIZER_ON, "allow.everyone.if.no.acl.found=true")
NO_ID = b"0123456789abcdef"


def append(log: PartitionLog, data: bytes, origin: int) -> None:
    assert not log.append(memoryview(bytearray(data)), WALL_START_MS, 0, origin).error_code


@cache
def broker_with_logs(*overrides: str) -> VirtualBroker:
    """Return a broker with multi-segment logs: records of several sizes, an aborted and an open transaction."""
    broker = VirtualBroker(*overrides)
    client = broker.client()
    for name, compression in (("t", "producer"), ("zstd", "zstd")):
        topic = broker.topic(name, partitions=2, compression_type=compression)
        for size in (200, 3_000, 500, 5_000):
            client.call(produce(9, batch_of(size), topic=name), 9)
        log = topic.partitions[0].log
        assert log.high_watermark == 4
        log.delete_records_before(1)
        if name == "t":
            for producer_id in (7, 8):
                data = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
                append(log, data, CLIENT)
            marker = {"offset": 0, "timestamp": WALL_START_MS, "producer_epoch": 0, "coordinator_epoch": 0}
            append(log, build_transaction_marker(ABORT, producer_id=7, **marker), COORDINATOR)
    return broker


REQUESTS = st.builds(
    fetch,
    offset=st.integers(-1, 9),
    topic=st.sampled_from((*NAMES, "t", "t")),
    partition=st.sampled_from((-1, 0, 0, 0, 0, 1, 2)),
    max_wait_ms=st.sampled_from((0, 100)),
    min_bytes=st.sampled_from((0, 1, 1, 500, 3_500, 1 << 20)),
    max_bytes=st.sampled_from((0, 100, 3_500, 1 << 20, 1 << 20)),
    partition_max_bytes=st.sampled_from((-1, 0, 100, 3_500, 1 << 20, 1 << 20)),
    isolation_level=st.sampled_from((0, 1)),
    current_leader_epoch=st.sampled_from((-1, -1, 0, 5)),
    last_fetched_epoch=st.sampled_from((-1, -1, -1, 0)),
)
BROKERS = st.sampled_from(
    (
        (),
        ("quota.profile=kip-13",),
        ("quota.profile=kafka-0.9",),
        ("quota.consumer.default=100M",),
        ("quota.consumer.default=100M", "quota.profile=kafka-4.4"),
        ("fetch.max.bytes=1024",),
    )
)


def outcome(broker: VirtualBroker, request: FetchRequest, version: int) -> tuple[object, ...]:
    """Return the response bytes, their delay, the counted bytes and the error code."""
    client = broker.client()
    received = bytearray()
    client.on_bytes = received.extend
    started_ms = broker.now_ms
    topics = broker.cluster.topics.values()
    traffic = [topic.traffic_on(broker.broker.node_id) for topic in topics]
    sent_before = sum(counter.bytes_out for counter in traffic)
    client.send(request, version)
    while not received:
        broker.advance(1)
    client.leave()
    return (
        bytes(received),
        broker.now_ms - started_ms,
        sum(counter.bytes_out for counter in traffic) - sent_before,
        client.connection.ctx.error_code,
    )


@settings(max_examples=3 * settings().max_examples)
@given(
    overrides=BROKERS,
    version=st.integers(0, 18),
    request=REQUESTS,
    is_follower=st.sampled_from((False, False, False, True)),
    session=st.sampled_from(((0, -1), (0, -1), (0, -1), (5, -1), (0, 0), (5, 1))),
)
def test_both_ways_have_the_same_outcome(
    overrides: tuple[str, ...], version: int, request: FetchRequest, is_follower: bool, session: tuple[int, int]
) -> None:
    broker = broker_with_logs(*overrides)
    if is_follower:
        request.replica_id, request.replica_state = 2, ReplicaState(2, 0)
    request.session_id, request.session_epoch = session
    if version >= 13:
        name = request.topics[0].topic
        request.topics[0].topic_id = broker.cluster.topics[name].topic_id if name in broker.cluster.topics else NO_ID
    with patch.object(FetchSessionCache, "_new_id", lambda cache: 5):
        short = outcome(broker, request, version)
        broker.broker.fetch_sessions.close(5)
        with patch(SHORT_WAY, lambda ctx, broker, request: None):
            general = outcome(broker, request, version)
        broker.broker.fetch_sessions.close(5)
    assert short == general


def write(broker: VirtualBroker, size: int) -> None:
    if "t" in broker.cluster.topics:
        broker.client().call(produce(9, batch_of(size)), 9)


def write_in_transaction(broker: VirtualBroker) -> None:
    if "t" in broker.cluster.topics:
        data = batch(b"v", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
        append(broker.partition().log, data, CLIENT)
        broker.broker.replicas.appended(broker.partition())


def delete_records(broker: VirtualBroker) -> None:
    if "t" in broker.cluster.topics:
        broker.partition().log.delete_records_before(broker.partition().log.high_watermark)


def delete_topic(broker: VirtualBroker) -> None:
    broker.client().call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)


def raise_leader_epoch(broker: VirtualBroker) -> None:
    if "t" in broker.cluster.topics:
        broker.partition().leader_epoch += 1


def set_quota(broker: VirtualBroker) -> None:
    broker.broker.quotas.fetch.set_quota(QuotaEntity(None, "client"), 100.0)


EVENTS: dict[str, Callable[[VirtualBroker], object]] = {
    "small batch is written": partial(write, size=200),
    "large batch is written": partial(write, size=3_000),
    "transaction starts": write_in_transaction,
    "records are deleted": delete_records,
    "the topic is deleted": delete_topic,
    "leader epoch increases": raise_leader_epoch,
    "a quota is set": set_quota,
    "time passes": lambda broker: broker.advance(60),
}


def outcome_with_events(request: FetchRequest, version: int, events: list[str]) -> tuple[object, ...]:
    """Return response, delay and counters of a request that is followed by these events."""
    broker = VirtualBroker()
    topic = broker.topic()
    if version >= 13:
        request.topics[0].topic_id = topic.topic_id
    write(broker, 200)
    client = broker.client()
    received: list[tuple[float, bytes]] = []
    client.on_bytes = lambda data: received.append((broker.now_ms, data))
    client.send(request, version)
    for event in events:
        EVENTS[event](broker)
        broker.settle()
    broker.advance(120_000)  # longer than any throttle time of 6,400 bytes above 100 B/s
    fetches = broker.broker.replicas.fetches
    assert len(received) == 1, "each request has one response"
    return *received[0], topic.traffic_on(broker.broker.node_id).bytes_out, fetches.delayed, client.is_open


LONG_POLL = {
    "max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 20, "partition_max_bytes": 1 << 20,
    "isolation_level": 0, "current_leader_epoch": -1,
}  # fmt: skip


@settings(max_examples=settings().max_examples // 2)
@given(
    version=st.sampled_from((4, 11, 12, 15)),  # later versions return the leader's address, whose port is random
    offset=st.sampled_from((1, 1, 1, 0, 2)),
    fields=st.fixed_dictionaries(
        {
            "max_wait_ms": st.sampled_from((0, 100, 100, 100)),
            "min_bytes": st.sampled_from((0, 1, 1, 400, 3_200)),
            "max_bytes": st.sampled_from((0, 1 << 20, 1 << 20)),
            "partition_max_bytes": st.sampled_from((0, 300, 1 << 20, 1 << 20)),
            "isolation_level": st.sampled_from((0, 1)),
            "current_leader_epoch": st.sampled_from((-1, 0)),
        }
    ),
    events=st.lists(st.sampled_from(sorted(EVENTS)), max_size=4),
)
# The limit at arrival counts.
@example(11, 1, LONG_POLL | {"min_bytes": 3_200}, ["a quota is set", "large batch is written"])
@example(4, 1, LONG_POLL | {"partition_max_bytes": 0}, ["a quota is set", "large batch is written"])
def test_both_ways_have_the_same_outcome_with_concurrent_events(
    version: int, offset: int, fields: dict[str, Any], events: list[str]
) -> None:
    request = partial(fetch, offset, **fields)
    short = outcome_with_events(request(), version, events)
    with patch(SHORT_WAY, lambda ctx, broker, request: None):
        general = outcome_with_events(request(), version, events)
    assert short == general
