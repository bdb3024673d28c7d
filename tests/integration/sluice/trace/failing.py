"""Tests that fail, each for another cause; test_failing.py reads their traces. Clients have the usual mistakes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sluice import SyncBroker
from sluice.faults import BlackHole, Close, Delay, Error

UNCLEAN = {"unclean.leader.election.enable": "true", "replica.lag.time.max.ms": 500, "sluice.election.delay.ms": 500}
Made = Callable[..., Any]
THREE = {"default.replication.factor": 3, "min.insync.replicas": 2}


@pytest.fixture
def producer(kafka_broker: SyncBroker) -> Callable[..., Producer]:
    """Return a function that makes producers."""

    def make(client_id: str = "shop", **settings: Any) -> Producer:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": kafka_broker.bootstrap, "client.id": client_id, **names})

    return make


@pytest.fixture
def consumer(kafka_broker: SyncBroker) -> Iterator[Callable[..., Consumer]]:
    """Return a function that makes consumers, which are closed after the test."""
    made: list[Consumer] = []

    def make(*topics: str, client_id: str = "kitchen", group: str = "kitchen", **settings: Any) -> Consumer:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        defaults = {"auto.offset.reset": "earliest", "client.id": client_id, "group.id": group}
        one = Consumer({"bootstrap.servers": kafka_broker.bootstrap, **defaults, **names})
        made.append(one)
        if topics:
            one.subscribe([*topics])
        return one

    yield make
    for one in made:
        one.close()


def produce(producer: Producer, topic: str, *values: str, timeout_s: float = 10, **arguments: Any) -> list[str]:
    """Produce records, and return the names of their errors."""
    errors: list[str] = []
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: errors.append(error.name()) if error else None, **arguments
        )
    left = producer.flush(timeout_s)
    return [*errors, *["not delivered"] * left]


def receive(consumer: Consumer, count: int, timeout_s: float = 2) -> list[str]:
    """Return the values of up to `count` records."""
    found: list[str] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            found.append((message.value() or b"").decode())
    return found


# -- records that are not where they are looked for --------------------------------------------------------------------


def test_reader_of_another_topic(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    kafka_broker.cluster.create_topic("order")
    produce(producer(), "orders", "one pizza")
    assert receive(consumer("order"), 1) == ["one pizza"]


def test_reader_of_another_partition(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    kafka_broker.cluster.create_topic("orders", partitions=2)
    produce(producer(), "orders", "one pizza", partition=0)
    kitchen = consumer()
    kitchen.assign([TopicPartition("orders", 1, 0)])
    assert receive(kitchen, 1) == ["one pizza"]


def test_reader_from_the_end(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one pizza", "another")
    assert receive(consumer("orders", auto_offset_reset="latest"), 2) == ["one pizza", "another"]


def test_reader_of_an_open_transaction(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    shop = producer(transactional_id="shop-1")
    shop.init_transactions(10)
    shop.begin_transaction()
    produce(shop, "orders", "one pizza")
    assert receive(consumer("orders"), 1) == ["one pizza"]  # isolation.level is read_committed by default


def test_reader_of_an_aborted_transaction(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    shop = producer(transactional_id="shop-1")
    shop.init_transactions(10)
    shop.begin_transaction()
    produce(shop, "orders", "one pizza")
    shop.abort_transaction(10)
    assert receive(consumer("orders"), 1) == ["one pizza"]


def test_group_of_another_name(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one pizza")
    first = consumer("orders", group="kitchen")
    assert receive(first, 1) == ["one pizza"]
    first.commit(asynchronous=False)
    produce(producer(), "orders", "another")
    assert receive(consumer("orders", group="kitchn", client_id="second"), 1) == ["another"]


def test_group_that_never_commits(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one pizza")
    first = consumer("orders", enable_auto_commit=False)
    assert receive(first, 1) == ["one pizza"]
    first.close()
    produce(producer(), "orders", "another")
    assert receive(consumer("orders", client_id="second", enable_auto_commit=False), 1) == ["another"]


def test_commit_of_an_older_offset(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one", "two", "three")
    first = consumer("orders", enable_auto_commit=False)
    assert receive(first, 3) == ["one", "two", "three"]
    for offset in (3, 1):
        first.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    first.close()
    assert receive(consumer("orders", client_id="second"), 1, timeout_s=1) == []


def test_producer_that_does_not_flush(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    shop = producer(linger_ms=60_000)
    shop.produce("orders", "one pizza")
    assert receive(consumer("orders"), 1, timeout_s=1) == ["one pizza"]


# -- faults, quotas and permissions ------------------------------------------------------------------------------------


def test_rule_for_another_client(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", client_id="shpo", times=2)
    assert produce(producer(), "orders", "one pizza") == []
    kafka_broker.assert_requests("Produce", client_id="shop", exactly=3)


def test_rule_for_another_api(kafka_broker: SyncBroker, producer: Made) -> None:
    rule = kafka_broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Fetch", client_id="shop", times=2)
    assert produce(producer(), "orders", "one pizza") == []
    assert rule.hits == 2


def test_rule_for_another_topic(kafka_broker: SyncBroker, producer: Made) -> None:
    rule = kafka_broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", topic="order", times=2)
    assert produce(producer(), "orders", "one pizza") == []
    assert rule.hits == 2


@pytest.mark.kafka(quota={"client_id": "shop", "produce": "10k"})
def test_producer_above_its_quota(kafka_broker: SyncBroker, producer: Made) -> None:
    shop, large = producer(batch_size=20_000, linger_ms=0), "x" * 15_000
    assert produce(shop, "orders", *[large] * 20, timeout_s=3) == []


@pytest.mark.kafka(quota={"client_id": "kitchen", "fetch": "5k"})
def test_consumer_above_its_quota(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", *["x" * 10_000] * 20)
    assert len(receive(consumer("orders", max_partition_fetch_bytes=12_000), 20, 3)) == 20


@pytest.mark.kafka(quota={"client_id": "shop", "controller_mutation_rate": 1})
def test_admin_above_its_quota(kafka_broker: SyncBroker) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "client.id": "shop"})
    for number in range(20):
        for created in admin.create_topics([NewTopic(f"t{number}", 5)], request_timeout=2).values():
            created.result(5)


@pytest.mark.kafka(
    sasl="PLAIN", users={"shop": "secret"}, acls=[{"user": "shop", "allow": "Describe", "topic": "orders"}]
)
def test_producer_without_permission(kafka_broker: SyncBroker) -> None:
    kafka_broker.client().send("orders", "first")
    shop = Producer(kafka_broker.client_config("confluent-kafka", client_id="shop", user="shop"))
    assert produce(shop, "orders", "one pizza") == []


@pytest.mark.kafka(sasl="PLAIN", users={"shop": "secret"})
def test_producer_with_a_wrong_password(kafka_broker: SyncBroker) -> None:
    settings = kafka_broker.client_config("confluent-kafka", client_id="shop") | {"sasl.password": "sercet"}
    assert produce(Producer(settings | {"message.timeout.ms": 1000}), "orders", "one pizza") == []


def test_lost_response(kafka_broker: SyncBroker) -> None:
    kafka_broker.cluster.create_topic("orders")
    kafka_broker.faults.add(BlackHole(), api="Produce", times=1)
    shop = Producer(
        {
            "bootstrap.servers": kafka_broker.bootstrap,
            "client.id": "shop",
            "request.timeout.ms": 1000,
            "socket.timeout.ms": 1000,
        }
    )
    assert produce(shop, "orders", "one pizza") == []
    assert kafka_broker.assert_requests("Produce", client_id="shop", exactly=1)


def test_response_that_is_too_late(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.cluster.create_topic("orders")
    kafka_broker.faults.add(Delay(5000), api="Produce")
    assert produce(producer(message_timeout_ms=1500), "orders", "one pizza") == []


def test_connections_that_are_closed(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.cluster.create_topic("orders")
    kafka_broker.faults.add(Close(), api="Produce", client_id="shop")
    assert produce(producer(message_timeout_ms=1500), "orders", "one pizza") == []


@pytest.mark.kafka(config={"max.connections.per.ip": 1})
def test_connections_over_the_limit(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.cluster.create_topic("orders")
    first = producer("first")
    assert produce(first, "orders", "one pizza") == []
    assert produce(producer(message_timeout_ms=1500), "orders", "another", timeout_s=3) == []


def test_retries_that_end(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce", client_id="shop", times=10)
    settings = {"retries": 2, "retry_backoff_ms": 50, "retry_backoff_max_ms": 50}
    assert produce(producer(**settings), "orders", "one pizza") == []


# -- groups and transactions -------------------------------------------------------------------------------------------

SHORT = {"group.min.session.timeout.ms": 100, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}
LEFT: list[object] = []  # clients that no test closes


@pytest.mark.kafka(config=SHORT)
def test_poll_too_late(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one", "two")
    settings = {"max_poll_interval_ms": 1000, "session_timeout_ms": 1000, "heartbeat_interval_ms": 200}
    kitchen = consumer("orders", enable_auto_commit=False, **settings)
    assert receive(kitchen, 1) == ["one"]
    time.sleep(2)
    kitchen.commit(asynchronous=False)


def test_member_that_was_not_closed(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "client.id": "first", "group.id": "kitchen"}
    first = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    LEFT.append(first)
    first.subscribe(["orders"])
    produce(producer(), "orders", "one pizza")
    assert receive(first, 1) == ["one pizza"]
    assert receive(consumer("orders", client_id="second"), 1) == ["one pizza"]


def test_static_id_that_is_used_twice(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one")
    settings = {"group_instance_id": "oven-1", "enable_auto_commit": False}
    first = consumer("orders", client_id="first", **settings)
    assert receive(first, 1, 5) == ["one"]
    receive(consumer("orders", client_id="second", **settings), 1)
    first.commit(asynchronous=False)


@pytest.mark.kafka(config=SHORT)
def test_members_that_come_and_go(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    kafka_broker.cluster.create_topic("orders", partitions=4)
    stays = consumer("orders", client_id="stays", session_timeout_ms=1000, heartbeat_interval_ms=100)
    for number in range(6):
        comes = consumer("orders", client_id=f"comes-{number}", session_timeout_ms=1000, heartbeat_interval_ms=100)
        receive(comes, 1, 0.4)
        receive(stays, 1, 0.2)
        comes.close()
    produce(producer(), "orders", "one pizza")
    assert len(kafka_broker.journal.events(kind="group-state")) <= 6


@pytest.mark.kafka(config=SHORT, faults=[{"action": BlackHole(), "api": "Heartbeat", "client_id": "kitchen"}])
def test_member_whose_heartbeats_are_lost(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    produce(producer(), "orders", "one", "two")
    kitchen = consumer("orders", session_timeout_ms=1000, heartbeat_interval_ms=300, enable_auto_commit=False)
    assert receive(kitchen, 1) == ["one"]
    time.sleep(2)
    kitchen.commit(asynchronous=False)


def test_producers_with_one_transactional_id(kafka_broker: SyncBroker, producer: Made) -> None:
    first, second = (producer(client_id, transactional_id="shop-1") for client_id in ("first", "second"))
    first.init_transactions(10)
    first.begin_transaction()
    produce(first, "orders", "one pizza")
    second.init_transactions(10)
    first.commit_transaction(10)


@pytest.mark.kafka(config=SHORT)
def test_transaction_that_times_out(kafka_broker: SyncBroker, producer: Made) -> None:
    shop = producer(transactional_id="shop-1", transaction_timeout_ms=1000, message_timeout_ms=1000)
    shop.init_transactions(10)
    shop.begin_transaction()
    produce(shop, "orders", "one pizza")
    time.sleep(2)
    shop.commit_transaction(10)


# -- brokers -----------------------------------------------------------------------------------------------------------


@pytest.mark.kafka(config={"auto.create.topics.enable": "false"})
def test_unknown_topic(kafka_broker: SyncBroker, producer: Made) -> None:
    assert produce(producer(message_timeout_ms=1500), "orders", "one pizza") == []


@pytest.mark.kafka(config={"message.max.bytes": 1000})
def test_record_that_is_too_large(kafka_broker: SyncBroker, producer: Made) -> None:
    assert produce(producer(), "orders", "x" * 5000) == []


def test_broker_that_is_down(kafka_broker: SyncBroker, producer: Made) -> None:
    shop = producer(message_timeout_ms=1500)
    assert produce(shop, "orders", "one pizza") == []
    kafka_broker.cluster.stop(1)
    assert produce(shop, "orders", "another") == []


@pytest.mark.kafka(brokers=3, config=THREE)
def test_isolated_replicas(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.cluster.create_topic("orders", assignments={0: [1, 2, 3]})
    shop = producer(message_timeout_ms=2000)
    assert produce(shop, "orders", "one pizza") == []
    for node_id in (2, 3):
        kafka_broker.cluster.stop(node_id, controlled=False)
    assert produce(shop, "orders", "another") == []


@pytest.mark.kafka(brokers=2, config={"sluice.election.delay.ms": 3000})
def test_slow_election(kafka_broker: SyncBroker, producer: Made) -> None:
    kafka_broker.cluster.create_topic("orders", assignments={0: [1, 2]})
    shop = producer(message_timeout_ms=1500)
    assert produce(shop, "orders", "one pizza") == []
    kafka_broker.cluster.stop(1, controlled=False)
    assert produce(shop, "orders", "another") == []


@pytest.mark.kafka(brokers=2)
@pytest.mark.filterwarnings("ignore")  # kafka-python's own
def test_leader_that_moves(kafka_broker: SyncBroker) -> None:
    from kafka import KafkaProducer

    kafka_broker.cluster.create_topic("orders", assignments={0: [1, 2]})
    shop = KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap, client_id="shop", retries=0, enable_idempotence=False
    )
    shop.send("orders", b"one pizza").get(10)
    kafka_broker.cluster.move_leader("orders", 0, 2)
    shop.send("orders", b"another").get(10)


@pytest.mark.kafka(brokers=2, config=UNCLEAN)
def test_records_that_an_election_lost(kafka_broker: SyncBroker, producer: Made, consumer: Made) -> None:
    kafka_broker.cluster.create_topic("orders", assignments={0: [1, 2]})
    kafka_broker.cluster.isolate(2)
    assert produce(producer(), "orders", "one pizza") == []
    kafka_broker.cluster.stop(1, controlled=False)
    kafka_broker.cluster.rejoin(2)
    assert receive(consumer("orders"), 1) == ["one pizza"]
