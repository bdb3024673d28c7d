"""Real clients recover from faults of connections, leaders, disks and responses."""

import asyncio
from collections.abc import Iterator
from itertools import count
from time import monotonic
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sluice import SyncBroker
from sluice.broker.faults.actions.connections import Bandwidth, DropIdle, RefuseConnections, StallSasl
from sluice.broker.faults.actions.disks import SlowDisk
from sluice.broker.faults.actions.leaders import CoordinatorMoved, LeaderMoved, SlowElection, UncleanElection
from sluice.broker.faults.actions.stale_metadata import MetadataLag
from sluice.broker.faults.actions.wrong_metadata import OffsetLie, StaleLeaderHint, WrongLeader
from sluice.journal_events import ConnectionClosed, LeaderChange
from sluice.protocol.errors import ErrorCode
from tests.support.certificates import certificates
from tests.support.sasl import SASL

TIMEOUT_S = 120.0
CERTIFICATES = certificates()
_numbers = count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyncBroker]:
    """Three brokers with short failure detection."""
    config: dict[str, str | float] = {
        "sluice.election.delay.ms": 200,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 3,
        "auto.leader.rebalance.enable": "false",
    }
    with SyncBroker(brokers=3, config=config) as broker:
        yield broker


@pytest.fixture
def topic(cluster: SyncBroker) -> Iterator[str]:
    """A topic with one partition, replicated on all brokers and led by broker 1; removes all faults at the end."""
    name = f"t{next(_numbers)}"
    cluster.cluster.create_topic(name, assignments={0: [1, 2, 3]})
    yield name
    assert [fault.problem for fault in cluster.faults.list() if fault.problem] == []
    cluster.faults.clear()


class Sender:
    """A librdkafka producer with short backoffs, and the errors it reported."""

    def __init__(self, bootstrap: str, client_id: str, **config: Any) -> None:
        self.errors: list[KafkaError] = []
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": client_id,
                "error_cb": self.errors.append,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 50,
                **{name.replace("_", "."): value for name, value in config.items()},
            }
        )

    def send(self, topic: str, value: bytes = b"v") -> None:
        self.producer.produce(topic, value, partition=0)

    def deliver(self, topic: str, value: bytes = b"v") -> None:
        """Send a record, which must be acknowledged."""
        self.send(topic, value)
        assert self.delivers()

    def delivers(self, within_s: float = TIMEOUT_S) -> bool:
        """Return whether all sent records are acknowledged within this time."""
        return self.producer.flush(within_s) == 0

    def wait_for_error(self, code: int) -> str:
        """Wait for an error with this code and return its text."""
        until = monotonic() + TIMEOUT_S
        while monotonic() < until:
            self.producer.poll(0.05)
            for error in self.errors:
                if error.code() == code:
                    return str(error.str())
        raise AssertionError(f"expected {KafkaError(code).name()}, got {self.errors}")


def delivered(cluster: SyncBroker, topic: str, value: bytes = b"v", **config: Any) -> Sender:
    """Return a producer that has delivered a record."""
    sender = Sender(cluster.bootstrap, topic, **config)
    sender.deliver(topic, value)
    return sender


def codes(cluster: SyncBroker, client_id: str, api: str = "Produce") -> list[list[int]]:
    """Return the error codes of the responses to a client, in order."""
    return [request.error_codes for request in cluster.journal.requests(client_id=client_id, api=api)]


def values(cluster: SyncBroker, topic: str, expected: int) -> list[bytes]:
    """Return the records of a topic; wait until there are `expected`."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() or b"" for message in consumer.consume(expected, TIMEOUT_S)]
    consumer.close()
    return found


# -- connections -------------------------------------------------------------------------------------------------------


def test_client_reconnects_when_a_closed_port_opens_again(cluster: SyncBroker, topic: str) -> None:
    with cluster.faults.add("refuse-connections"):
        sender = Sender(cluster.bootstrap, topic)
        sender.send(topic)
        assert "Connection refused" in sender.wait_for_error(KafkaError._TRANSPORT)
    assert sender.delivers()


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_client_reconnects_after_its_first_connections_are_closed(cluster: SyncBroker, topic: str, how: Any) -> None:
    after = cluster.journal.last_seq
    with cluster.faults.add(RefuseConnections(how), times=2) as fault:
        delivered(cluster, topic)
        assert fault.hits == 2
    closed = cluster.wait_for(ConnectionClosed, where=lambda one: "fault rule" in one.reason, times=2, after=after)
    assert not any(one.by_client for one in closed)


def test_client_times_out_on_a_silent_connection_and_recovers(cluster: SyncBroker, topic: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, request_timeout_ms=300)
        with cluster.faults.add("silent-connections"):
            with pytest.raises(KafkaConnectionError):
                await producer.start()
            await producer.stop()
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as other:
            await other.send_and_wait(topic, b"v", partition=0)

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def test_client_retries_a_stalled_tls_handshake() -> None:
    properties = dict(each.split("=", 1) for each in CERTIFICATES.broker_overrides)
    with SyncBroker(config={"listeners": "SSL://127.0.0.1:0", **properties}) as broker:
        with broker.faults.add("stall-tls"):
            sender = Sender(
                broker.bootstrap,
                "tls",
                security_protocol="ssl",
                ssl_ca_location=str(CERTIFICATES.ca),
                socket_connection_setup_timeout_ms=1_000,
            )
            sender.send("t")
            assert "brokers are down" in sender.wait_for_error(KafkaError._ALL_BROKERS_DOWN)
        assert sender.delivers()


def test_client_retries_a_stalled_authentication() -> None:
    properties = dict(each.split("=", 1) for each in SASL)
    with SyncBroker(config=properties) as broker:
        with broker.faults.add(StallSasl("authenticate")):
            sender = Sender(
                broker.bootstrap,
                "sasl",
                security_protocol="sasl_plaintext",
                sasl_mechanism="PLAIN",
                sasl_username="alice",
                sasl_password="alice-secret",
                socket_connection_setup_timeout_ms=1_000,
            )
            sender.send("t")
            assert "SaslAuthenticateRequest failed" in sender.wait_for_error(KafkaError._TRANSPORT)
        assert sender.delivers()


def test_bandwidth_limit_delays_a_request_by_its_size(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic, linger_ms=0)
    with cluster.faults.add(Bandwidth(in_bytes_per_s="200k"), client_id=topic):
        began_s = monotonic()
        sender.deliver(topic, bytes(150_000))
        assert monotonic() - began_s > 0.6
    with cluster.faults.add(Bandwidth(out_bytes_per_s="200k")):
        began_s = monotonic()
        assert [len(value) for value in values(cluster, topic, 2)] == [1, 150_000]
        assert monotonic() - began_s > 0.6


def test_client_detects_a_dropped_idle_connection_by_a_request_timeout(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic, socket_timeout_ms=1_000, request_timeout_ms=500)
    fault = cluster.faults.add(DropIdle("200ms"), client_id=topic, broker=1)
    cluster.wait_for(fault)
    assert sender.errors == [], "the drop is silent"
    began_s = monotonic()
    sender.deliver(topic)
    assert monotonic() - began_s > 0.5


# -- metadata -------------------------------------------------------------------------------------------------------


def test_client_uses_the_old_leader_while_metadata_is_stale(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic)
    with cluster.faults.add("stale-metadata"):
        cluster.cluster.move_leader(topic, 0, 2)
        sender.send(topic)
        assert not sender.delivers(0.7)
    assert sender.delivers()
    refused = [code for each in codes(cluster, topic) for code in each]
    assert set(refused) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_client_finds_the_new_leader_after_the_metadata_lag(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic)
    with cluster.faults.add(MetadataLag("600ms")):
        began_s = monotonic()
        cluster.cluster.move_leader(topic, 0, 2)
        sender.deliver(topic)
        assert monotonic() - began_s > 0.5


@pytest.mark.parametrize("kind", ["empty-metadata", "unknown-leader"])
def test_client_refreshes_metadata_until_it_has_brokers_and_leaders(cluster: SyncBroker, topic: str, kind: str) -> None:
    with cluster.faults.add(kind, times=2, client_id=topic) as fault:
        delivered(cluster, topic)
        assert fault.hits == 2


def test_client_finds_the_leader_after_metadata_named_a_wrong_one(cluster: SyncBroker, topic: str) -> None:
    with cluster.faults.add(WrongLeader(leader=3), topic=topic, times=2):
        delivered(cluster, topic)
    produced = cluster.journal.requests(client_id=topic, api="Produce")
    assert (produced[0].broker, produced[0].error_codes) == (3, [ErrorCode.NOT_LEADER_OR_FOLLOWER])
    assert (produced[-1].broker, produced[-1].error_codes) == (1, [])


def test_hint_at_an_old_leader_loses_no_records(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic)
    with cluster.faults.add(StaleLeaderHint(leader=3, epoch="current"), topic=topic) as fault:
        cluster.cluster.move_leader(topic, 0, 2)
        sender.deliver(topic)
        assert fault.hits >= 1
    assert values(cluster, topic, 2) == [b"v", b"v"]


def test_consumer_starts_at_the_false_earliest_offset(cluster: SyncBroker, topic: str) -> None:
    sender = Sender(cluster.bootstrap, topic)
    for number in range(5):
        sender.send(topic, b"%d" % number)
    assert sender.delivers()
    partition = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest")
    consumer.assign([partition])
    with cluster.faults.add(OffsetLie(offset=3, of="earliest"), topic=topic):
        assert consumer.beginning_offsets([partition]) == {partition: 3}
        assert next(consumer).value == b"3"
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    consumer.close()


# -- leaders and brokers -----------------------------------------------------------------------------------------------


def test_group_continues_with_another_coordinator(cluster: SyncBroker, topic: str) -> None:
    """Uses aiokafka: librdkafka 2.16.0 does not recover if a commit is the first request to fail with NOT_COORDINATOR.

    It retries the commit before it has connected, treats that as a coordinator failure, and finds the coordinator again
    without end.
    """

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            client_id=topic,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
        )
        sender.send(topic, b"before")
        async with consumer:
            assert (await consumer.getone()).value == b"before"
            await consumer.commit()
            with cluster.faults.add(CoordinatorMoved(), group=topic):
                sender.send(topic, b"after")
                assert (await consumer.getone()).value == b"after"
                await consumer.commit()
            await consumer.commit()

    sender = Sender(cluster.bootstrap, f"{topic}-producer")
    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))
    errors = [code for api in ("Heartbeat", "OffsetCommit") for each in codes(cluster, topic, api) for code in each]
    assert ErrorCode.NOT_COORDINATOR in errors


def test_topic_creation_fails_without_a_controller(cluster: SyncBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(f"{topic}-new", 1, 1)
    with cluster.faults.add("controller-lost"):
        (future,) = admin.create_topics([new], request_timeout=0.5).values()
        with pytest.raises(KafkaException) as failed:
            future.result(TIMEOUT_S)
        assert failed.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
    (future,) = admin.create_topics([NewTopic(f"{topic}-other", 1, 1)]).values()
    future.result(TIMEOUT_S)


def test_producer_waits_for_an_election(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic)
    after = cluster.journal.last_seq
    with cluster.faults.add(SlowElection("700ms")):
        began_s = monotonic()
        cluster.cluster.move_leader(topic, 0, 2)
        sender.deliver(topic)
        assert monotonic() - began_s > 0.65
    changes = cluster.wait_for(LeaderChange, where=lambda one: one.topic == topic, times=2, after=after)
    assert [one.broker for one in changes] == [-1, 2]


def test_producer_follows_a_leader_that_moves_and_returns(cluster: SyncBroker, topic: str) -> None:
    sender = Sender(cluster.bootstrap, topic)
    brokers = []
    for _ in range(2):
        with cluster.faults.add(LeaderMoved(to=3), topic=topic):
            sender.deliver(topic)
            brokers.append(cluster.journal.requests(client_id=topic, api="Produce")[-1].broker)
        sender.deliver(topic)
        brokers.append(cluster.journal.requests(client_id=topic, api="Produce")[-1].broker)
    assert brokers == [3, 1, 3, 1]


def test_producer_survives_a_broker_that_is_down(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic, b"1", enable_idempotence=True)
    with cluster.faults.add("broker-down", broker=1):
        sender.deliver(topic, b"2")
        assert cluster.cluster.partition(topic, 0).leader in (2, 3)
    sender.deliver(topic, b"3")
    assert values(cluster, topic, 3) == [b"1", b"2", b"3"]


def test_producer_retries_unreplicated_records_of_an_isolated_leader(cluster: SyncBroker, topic: str) -> None:
    cluster.wait_for(lambda: cluster.cluster.partition(topic, 0).isr == (1, 2, 3))
    sender = delivered(cluster, topic, b"1", enable_idempotence=True, request_timeout_ms=300)
    with cluster.faults.add("isolate", broker=1):
        sender.send(topic, b"2")
        cluster.wait_for(lambda: any(codes(cluster, topic)))  # retriable errors
    assert sender.delivers()
    assert values(cluster, topic, 2) == [b"1", b"2"]


def test_unclean_election_loses_acknowledged_records(cluster: SyncBroker, topic: str) -> None:
    sender = Sender(cluster.bootstrap, topic, acks="all")
    for number in range(5):
        sender.deliver(topic, b"%d" % number)
    after = cluster.journal.last_seq
    with cluster.faults.add(UncleanElection(records=2), topic=topic):
        sender.deliver(topic, b"new")
    assert values(cluster, topic, 4) == [b"0", b"1", b"2", b"new"]
    (change,) = cluster.wait_for(LeaderChange, where=lambda one: one.topic == topic, after=after)
    assert change.lost_records == 2


# -- disks -------------------------------------------------------------------------------------------------------------


def test_slow_disk_delays_a_producer(cluster: SyncBroker, topic: str) -> None:
    sender = delivered(cluster, topic)
    with cluster.faults.add(SlowDisk("400ms"), topic=topic):
        began_s = monotonic()
        sender.deliver(topic)
        assert monotonic() - began_s > 0.4


def test_producer_retries_until_the_disk_has_space(cluster: SyncBroker, topic: str) -> None:
    sender = Sender(cluster.bootstrap, topic)
    with cluster.faults.add("disk-full", topic=topic):
        sender.send(topic)
        cluster.wait_for(lambda: len(codes(cluster, topic)) >= 2)
    assert sender.delivers()
    produced = codes(cluster, topic)
    assert produced[0] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert produced[-1] == []
