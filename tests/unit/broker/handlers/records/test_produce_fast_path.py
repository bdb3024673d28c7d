"""The fast path of Produce: same responses and effects as the general path, and the requests that it serves."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.broker.log.log_results import AppendResult
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.security.acl.acl import AclOperation
from sluice.errors import ClusterError
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.records.build import ABORT, build_batch, build_transaction_marker
from sluice.protocol.records.record import Record
from sluice.protocol.types import ZERO_UUID
from tests.support.acls import ANONYMOUS_MAY_ALL, AUTHORIZER_ON, acl
from tests.support.records import batch, batch_of, fetch, produce, records_for
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker

ALL = -1
NO_ID = b"0123456789abcdef"
HOUR_MS = 3_600_000
# The responses name leaders, so the addresses must be fixed.
ADVERTISED = "advertised.listeners=PLAINTEXT://localhost:9092"
BROKERS: dict[str, tuple[str, ...]] = {
    "one broker": (),
    "an authorizer": (AUTHORIZER_ON, ANONYMOUS_MAY_ALL),
    "a replication delay": ("sluice.replication.delay.ms=50",),
    "three replicas": ("sluice.brokers=3", "default.replication.factor=3", "sluice.replication.delay.ms=50"),
    "three brokers": ("sluice.brokers=3", "default.replication.factor=1"),
    "two in-sync replicas required": ("min.insync.replicas=2",),
    "compression": ("compression.type=gzip",),
    "append time": ("log.message.timestamp.type=LogAppendTime",),
    "a quota": ("quota.producer.default=100",),
}
MARKER = {"offset": 0, "timestamp": WALL_START_MS, "producer_epoch": 0, "coordinator_epoch": 0}
RECORDS = {
    "none": b"",
    "one record": batch(b"a"),
    "three records": batch(b"a", None, b"c"),
    "a key": build_batch([Record(0, WALL_START_MS, b"key", b"value")]),
    "zstd": batch(b"a", compression=4),
    "gzip": batch(b"a", compression=1),
    "first batch of a producer": batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0),
    "second batch of a producer": batch(b"b", producer_id=5, producer_epoch=0, base_sequence=1),
    "sequence gap of a producer": batch(b"b", producer_id=5, producer_epoch=0, base_sequence=7),
    "transactional": batch(b"a", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True),
    "a control batch": build_transaction_marker(ABORT, producer_id=7, **MARKER),
    "base offset above 0": batch(b"a", base_offset=3),
    "timestamp in the future": batch(b"a", timestamp=WALL_START_MS + 2 * HOUR_MS),
    "too large": batch_of(2_000),
    "truncated": batch(b"a")[:-1],
    "two batches": batch(b"a") + batch(b"b"),
    "a message set": records_for(2),
}
TOPICS = ("t", "secret", "safe", "compacted", "__consumer_offsets", "nowhere")
# Client id and user of each connection.
CLIENTS = (("client", None), ("__admin_client", None), ("client", "alice"))


class Send(NamedTuple):
    """A Produce request for one partition."""

    version: int = 9
    acks: int = 1
    topic: str = "t"
    partition: int = 0
    records: bytes = RECORDS["one record"]
    client: int = 0


class Simulation:
    """A broker with topics and clients, and its observable state."""

    def __init__(self, overrides: tuple[str, ...]) -> None:
        self.broker = broker = VirtualBroker("message.max.bytes=1000", ADVERTISED, *overrides)
        broker.topic("t", partitions=2)
        broker.topic("secret")  # alice may write only to "t"
        broker.topic("safe", min_insync_replicas="2")
        broker.topic("compacted", cleanup_policy="compact")
        broker.cluster.internal_topic("__consumer_offsets")
        self.topics = list(broker.cluster.topics.values())
        self.partitions = {topic.name: topic.partitions[0] for topic in self.topics}
        if broker.broker.authorizer is not None:
            broker.cluster.acls.create([acl(AclOperation.WRITE)])
        self.clients: list[Client] = []
        self.connections: dict[int, Client] = {}
        self.received: list[tuple[int, float, bytes]] = []

    def send(self, step: Send) -> None:
        topic = self.broker.cluster.topics.get(step.topic)
        topic_id = ZERO_UUID if step.version < 13 else NO_ID if topic is None else topic.topic_id
        request = produce(
            step.version,
            step.records,
            topic=step.topic,
            topic_id=topic_id,
            partition=step.partition,
            acks=step.acks,
            timeout_ms=100,
        )
        client = self.connections.get(step.client)
        if client is None or not client.is_open:
            client_id, user = CLIENTS[step.client]
            client = self.connections[step.client] = self.connect(client_id)
            if user is not None:
                client.connection.ctx.session.user = user
        client.send(request, step.version)

    def connect(self, client_id: str | None = "client") -> Client:
        client, number = self.broker.client(client_id), len(self.clients)
        client.on_bytes = lambda data: self.received.append((number, self.broker.now_ms, data))
        self.clients.append(client)
        return client

    def observe(self) -> object:
        """Return what clients received, the state of their connections, and the logs with their traffic counters."""
        logs = [partition.log for topic in self.topics for partition in topic.partitions]
        return (
            list(self.received),
            [(client.is_open, client.connection.ctx.error_code) for client in self.clients],
            [
                (node_id, traffic.records_in, traffic.bytes_in, traffic.bytes_out)
                for topic in self.topics
                for node_id, traffic in sorted(topic.traffic.items())
            ],
            [(log.log_end_offset, log.high_watermark, log.last_stable_offset, log.size_in_bytes) for log in logs],
            [b"".join(log.read(log.log_start_offset, 1 << 20, log.log_end_offset, True).parts) for log in logs],
            [len(broker.replicas.produces) for broker in self.broker.cluster_server.brokers.values()],
        )


def wait_for_records(simulation: Simulation) -> None:
    end = simulation.partitions["t"].log.high_watermark
    simulation.connect().send(fetch(end, max_wait_ms=200, min_bytes=1), 11)


def move_leader(simulation: Simulation) -> None:
    partition = simulation.partitions["t"]
    others = [node_id for node_id in partition.isr if node_id != partition.leader]
    if others and not partition.deleted:
        simulation.broker.cluster_server.move_leader("t", 0, others[0])


def change_state(event: str, node_id: int) -> Callable[[Simulation], None]:
    def change(simulation: Simulation) -> None:
        getattr(simulation.broker.cluster_server, event)(node_id)

    return change


def lose_follower(simulation: Simulation) -> None:
    for topic in ("t", "safe"):
        partition = simulation.partitions[topic]
        partition.replicas, partition.isr = (1, 2), (1,)


def raise_leader_epoch(simulation: Simulation) -> None:
    simulation.partitions["t"].leader_epoch += 1


def delete_records(simulation: Simulation) -> None:
    log = simulation.partitions["t"].log
    log.delete_records_before(log.high_watermark)


def delete_topic(simulation: Simulation) -> None:
    simulation.broker.client().send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)


EVENTS: dict[str, Callable[[Simulation], object]] = {
    "time passes": lambda simulation: simulation.broker.advance(60),
    "a consumer waits": wait_for_records,
    "the leader moves": move_leader,
    "a follower stops": change_state("stop_broker", 3),
    "the broker is isolated": change_state("isolate_broker", 1),
    "the broker rejoins": change_state("rejoin_broker", 1),
    "a follower is lost": lose_follower,
    "a leader epoch begins": raise_leader_epoch,
    "records are deleted": delete_records,
    "the topic is deleted": delete_topic,
}


def damaged(data: bytes, position: int, mask: int) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[position % len(changed)] ^= mask
    return bytes(changed)


VALID = st.sampled_from([RECORDS[name] for name in RECORDS])
SENDS = st.builds(
    Send,
    version=st.one_of(st.sampled_from((9, 13)), st.integers(0, 13)),
    acks=st.sampled_from((1, 1, ALL, ALL, 0, 5, -2)),
    topic=st.sampled_from(("t", "t", "t", *TOPICS)),
    partition=st.sampled_from((0, 0, 0, 0, 1, 2, -1)),
    records=st.one_of(
        st.just(RECORDS["one record"]), VALID, st.builds(damaged, VALID, st.integers(0, 80), st.integers(1, 255))
    ),
    client=st.sampled_from((0, 0, 0, 1, 2)),
)
STEPS = st.lists(st.one_of(SENDS, SENDS, st.sampled_from(sorted(EVENTS))), min_size=1, max_size=8)


def no_fast_path(*_: object) -> None:
    return None


def outcomes(overrides: tuple[str, ...], steps: list[Send | str]) -> list[object]:
    """Return the observable state after each step, and long after the last."""
    simulation = Simulation(overrides)
    observed: list[object] = []
    for step in steps:
        if isinstance(step, Send):
            simulation.send(step)
        else:
            with suppress(ClusterError):  # some events are impossible in some states
                EVENTS[step](simulation)
            simulation.broker.settle()
        observed.append(simulation.observe())
    simulation.broker.advance(120_000)  # longer than any throttle time of these records above 100 B/s
    return [*observed, simulation.observe()]


@settings(max_examples=3 * settings().max_examples)
@given(brokers=st.sampled_from(sorted(BROKERS)), steps=STEPS)
@example("three replicas", [Send(acks=ALL), "the leader moves", Send(10), "time passes"])
@example("three replicas", ["the broker is isolated", Send(), Send(acks=ALL), "time passes", "the broker rejoins"])
@example("one broker", ["a follower is lost", Send(topic="safe", acks=ALL), Send(topic="safe")])
@example("an authorizer", [Send(topic="secret", client=2), Send(client=2), Send(topic="secret")])
@example("one broker", [Send(topic="__consumer_offsets", records=RECORDS["a key"], client=n) for n in range(2)])
@example("three brokers", [Send(partition=n, acks=ALL) for n in range(2)])
@example("a replication delay", [Send(acks=ALL), "time passes"])
@example("one broker", ["a consumer waits", Send(), "the topic is deleted", Send()])
def test_both_paths_have_the_same_outcome(brokers: str, steps: list[Send | str]) -> None:
    fast = outcomes(BROKERS[brokers], steps)
    with patch.object(PartitionLog, "append_plain", no_fast_path):
        general = outcomes(BROKERS[brokers], steps)
    assert fast == general


def takes_fast_path(simulation: Simulation, step: Send) -> bool:
    original = PartitionLog.append_plain
    results: list[AppendResult | None] = []

    def observed(log: PartitionLog, *arguments: Any) -> AppendResult | None:
        results.append(original(log, *arguments))
        return results[-1]

    with patch.object(PartitionLog, "append_plain", observed):
        simulation.send(step)
    return results != [] and results[-1] is not None


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, ALL], ids=["acks=1", "acks=all"])
def test_one_batch_for_one_partition_takes_the_fast_path(version: int, acks: int) -> None:
    assert takes_fast_path(Simulation(()), Send(version, acks))


@pytest.mark.parametrize(
    "records", ["three records", "zstd", "first batch of a producer", "sequence gap of a producer"]
)
def test_plain_and_idempotent_batches_take_the_fast_path(records: str) -> None:
    assert takes_fast_path(Simulation(()), Send(records=RECORDS[records]))


GENERAL_PATH = {
    "zstd in a version before its support": ("one broker", Send(6, records=RECORDS["zstd"])),
    "acks=0": ("one broker", Send(acks=0)),
    "acks=5": ("one broker", Send(acks=5)),
    "unknown topic": ("one broker", Send(topic="nowhere")),
    "unknown partition": ("one broker", Send(partition=2)),
    "negative partition": ("one broker", Send(partition=-1)),
    "min.insync.replicas": ("one broker", Send(topic="safe")),
    "internal topic": ("one broker", Send(topic="__consumer_offsets", client=1)),
    "transactional records": ("one broker", Send(records=RECORDS["transactional"])),
    "two batches": ("one broker", Send(records=RECORDS["two batches"])),
    "truncated batch": ("one broker", Send(records=RECORDS["truncated"])),
    "no records": ("one broker", Send(records=RECORDS["none"])),
    "authorizer": ("an authorizer", Send()),
    "followers": ("three replicas", Send()),
    "batch that the broker recompresses": ("compression", Send()),
}


@pytest.mark.parametrize(("brokers", "step"), GENERAL_PATH.values(), ids=GENERAL_PATH)
def test_other_requests_take_the_general_path(brokers: str, step: Send) -> None:
    assert not takes_fast_path(Simulation(BROKERS[brokers]), step)


def test_two_partitions_take_the_general_path() -> None:
    simulation = Simulation(())
    data = [PartitionProduceData(index=index, records=batch()) for index in (0, 1)]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    with patch.object(PartitionLog, "append_plain") as fast:
        simulation.connect().send(request, 9)
    assert not fast.called
