"""confluent-kafka (librdkafka), as the scenarios ask for it."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from time import monotonic
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
    libversion,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented, though not re-exported by the rules
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.clients.driver import (
    TIMEOUT_S,
    Given,
    InProcess,
    Member,
    Row,
    Step,
    rebalance,
    restart_static_member,
    until,
)

# The library has no types for these.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def send(producer: Producer, topic: str, rows: list[Row], partitions: int = 1) -> None:
    """Produces the rows to the partitions in turn and waits until all are there."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for number, row in enumerate(rows):
        producer.produce(
            topic,
            row.value,
            row.key,
            number % partitions,
            on_delivery=delivered,
            timestamp=row.timestamp,
            headers=list(row.headers),
        )
    left = producer.flush(TIMEOUT_S)
    assert (left, failed) == (0, [])


def produce(bootstrap: str, given: Given) -> list[Step]:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": given.acks,
            "compression.type": given.compression,
            "enable.idempotence": given.idempotent,
            "linger.ms": 5,
        }
    )
    send(producer, given.topic, given.rows, given.partitions)
    return [{"sent": len(given.rows)}]


def poll_for(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` records."""
    records: list[Message] = []
    deadline = monotonic() + TIMEOUT_S
    while len(records) < count:
        assert monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.consume(count - len(records), 0.2)
    assert not [error for record in records if (error := record.error())]
    return records


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    headers = message.headers() or []
    return [(name, value) for name, value in headers]  # type: ignore[str-unpack, misc]  # a received one has a list


def read(bootstrap: str, given: Given) -> list[Step]:
    # A group id is wanted by the library; partitions that are assigned by hand need no group.
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer(settings | {"isolation.level": given.isolation})
    try:
        consumer.assign([TopicPartition(given.topic, 0, 0)])
        records = poll_for(consumer, given.count)
    finally:
        consumer.close()
    return [{"rows": [Row(one.key(), one.value(), headers_of(one), one.timestamp()[1]) for one in records]}]


def oversize(bootstrap: str, given: Given) -> list[Step]:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(given.topic, bytes(given.size), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    (error,) = errors
    return [{"error": error.code() if error else 0}]


# -- transactions ------------------------------------------------------------------------------------------------------


def transactional_producer(bootstrap: str, given: Given) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": given.transactional_id})
    producer.init_transactions(TIMEOUT_S)
    return producer


def transactions(bootstrap: str, given: Given) -> Iterable[Step]:
    producer = transactional_producer(bootstrap, given)
    for one in given.rounds:
        producer.begin_transaction()
        send(producer, given.topic, one.rows)
        if one.end == "commit":
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
        yield {"end": one.end}


def fence(bootstrap: str, given: Given) -> list[Step]:
    first = transactional_producer(bootstrap, given)
    first.begin_transaction()
    send(first, given.topic, [Row(None, b"first", [], 0)])
    transactional_producer(bootstrap, given)
    try:
        first.commit_transaction(TIMEOUT_S)
    except KafkaException as raised:
        return [{"fenced": raised.args[0].code() == KafkaError._FENCED}]
    return [{"fenced": False}]


def transactional_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    producer = transactional_producer(bootstrap, given)
    with group_consumer(bootstrap, given) as consumer:
        for ends, offset in (("commit", 3), ("abort", 6)):
            producer.begin_transaction()
            for record in poll_for(consumer, 3):
                producer.produce(given.output, record.value(), partition=0)
            offsets = [TopicPartition(given.topic, 0, offset)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
            if ends == "commit":
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
            (committed,) = consumer.committed([TopicPartition(given.topic, 0)], TIMEOUT_S)
            yield {f"after_{ends}": committed.offset}


# -- groups ------------------------------------------------------------------------------------------------------------


def group_settings(bootstrap: str, given: Given, instance_id: str | None = None) -> dict[str, Any]:
    """Of a consumer in a group; members look soon whether a rebalance has begun."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": given.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": given.protocol,
    }
    if given.protocol == "consumer":
        settings["group.remote.assignor"] = "uniform"
    else:
        settings |= {"partition.assignment.strategy": given.assignor, "heartbeat.interval.ms": 100}
    return settings | ({"group.instance.id": instance_id} if instance_id else {})


@contextmanager
def group_consumer(bootstrap: str, given: Given) -> Iterator[Consumer]:
    consumer = Consumer(group_settings(bootstrap, given))
    try:
        consumer.subscribe([given.topic])
        yield consumer
    finally:
        consumer.close()


class GroupMember:
    """A consumer that counts what it loses."""

    def __init__(self, bootstrap: str, given: Given, instance_id: str | None) -> None:
        self._revocations = 0
        self._consumer = Consumer(group_settings(bootstrap, given, instance_id))
        self._consumer.subscribe([given.topic], on_revoke=self._revoked)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._revocations += bool(partitions)

    def poll(self) -> None:
        self._consumer.poll(0.02)

    def assigned(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def revocations(self) -> int:
        return self._revocations

    def close(self) -> None:
        self._consumer.close()


def with_members(
    script: Callable[[Given, Callable[[str | None], Member]], Iterable[Step]],
) -> Callable[[str, Given], Iterable[Step]]:
    """A verb that runs a script of group members."""
    return lambda bootstrap, given: script(given, lambda instance_id: GroupMember(bootstrap, given, instance_id))


def resume(bootstrap: str, given: Given) -> Iterable[Step]:
    for name in ("first", "resumed"):
        with group_consumer(bootstrap, given) as consumer:
            records = poll_for(consumer, 5)
            consumer.commit(message=records[-1], asynchronous=False)
        yield {name: [value.decode() for record in records if (value := record.value()) is not None]}


# -- admin -------------------------------------------------------------------------------------------------------------


def admin_of(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def code_of(futures: dict[Any, Any]) -> int:
    """The error code of a call for one thing; 0 if it went well."""
    (future,) = futures.values()
    try:
        future.result(TIMEOUT_S)
    except KafkaException as raised:
        return int(raised.args[0].code())
    return 0


def result_of(futures: dict[Any, Any]) -> Any:
    """What a call for one thing gives."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def partitions_of(admin: AdminClient, topic: str) -> int:
    return len(result_of(admin.describe_topics(TopicCollection([topic]))).partitions)


def topics(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    new = NewTopic(given.topic, given.partitions, 1)

    def listed() -> bool:
        return given.topic in admin.list_topics(timeout=TIMEOUT_S).topics

    yield {"created": code_of(admin.create_topics([new]))}
    yield {"created again": code_of(admin.create_topics([new]))}
    yield {"listed": until(listed, True)}
    yield {"partitions": partitions_of(admin, given.topic)}
    yield {"deleted": code_of(admin.delete_topics([given.topic]))}
    yield {"listed": until(listed, False)}
    yield {"deleted again": code_of(admin.delete_topics([given.topic]))}


def create_partitions(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    new = NewPartitions(given.topic, given.partitions)
    yield {"error": code_of(admin.create_partitions([new]))}
    yield {"partitions": until(lambda: partitions_of(admin, given.topic), given.partitions)}
    yield {"error": code_of(admin.create_partitions([new]))}


def configs(admin: AdminClient, kind: str, name: str, *keys: str) -> Step:
    """The values of these configs."""
    found = result_of(admin.describe_configs([ConfigResource(kind, name)]))
    return {key: found[key].value for key in keys}


def topic_configs(bootstrap: str, given: Given) -> list[Step]:
    return [configs(admin_of(bootstrap), "topic", given.topic, "retention.ms", "cleanup.policy")]


def broker_configs(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    (node_id,) = admin.list_topics(timeout=TIMEOUT_S).brokers
    return [configs(admin, "broker", str(node_id), "message.max.bytes")]


def until_retention(admin: AdminClient, topic: str, retention_ms: str) -> Step:
    """The altered config, once it has the value."""
    wanted: Step = {"retention.ms": retention_ms}
    return until(lambda: configs(admin, "topic", topic, "retention.ms"), wanted)


def incremental_alter_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    for operation, value in ((AlterConfigOpType.SET, "5000"), (AlterConfigOpType.DELETE, "604800000")):
        entry = ConfigEntry("retention.ms", value, incremental_operation=operation)
        resource = ConfigResource("topic", given.topic, incremental_configs=[entry])
        result_of(admin.incremental_alter_configs([resource]))
        yield until_retention(admin, given.topic, value) | configs(admin, "topic", given.topic, "retention.bytes")


def alter_configs(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is what this is about
        result_of(admin.alter_configs([ConfigResource("topic", given.topic, set_config={"retention.ms": "5000"})]))
    return [until_retention(admin, given.topic, "5000")]


def offset_of(admin: AdminClient, topic: str, spec: OffsetSpec) -> Any:
    """What ListOffsets finds in partition 0."""
    futures = admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return result_of(futures)


def delete_records(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    deleted = result_of(admin.delete_records([TopicPartition(given.topic, 0, given.count)]))
    yield {"low_watermark": deleted.low_watermark}
    yield {"earliest": offset_of(admin, given.topic, EARLIEST).offset}


def list_offsets(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    specs = {
        "earliest": EARLIEST,
        "latest": LATEST,
        "by_timestamp": OffsetSpec.for_timestamp(given.count),
    }
    return [{name: offset_of(admin, given.topic, spec).offset for name, spec in specs.items()}]


def max_timestamp(bootstrap: str, given: Given) -> list[Step]:
    found = offset_of(admin_of(bootstrap), given.topic, MAX_TIMESTAMP)
    return [{"offset": found.offset, "timestamp": found.timestamp}]


@contextmanager
def live_group(bootstrap: str, given: Given) -> Iterator[None]:
    """A group with one member, which has committed offset 3."""
    with group_consumer(bootstrap, given) as consumer:
        deadline = monotonic() + TIMEOUT_S
        while not consumer.assignment():
            assert monotonic() < deadline, "it is assigned nothing"
            consumer.poll(0.05)
        consumer.commit(offsets=[TopicPartition(given.topic, 0, 3)], asynchronous=False)
        yield


def list_groups(bootstrap: str, given: Given) -> list[Step]:
    with live_group(bootstrap, given):
        admin = admin_of(bootstrap)
        groups = admin.list_consumer_groups().result(TIMEOUT_S)
    return [{"listed": given.group in [group.group_id for group in groups.valid]}]


def describe_group(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)

    def described() -> Step:
        group = result_of(admin.describe_consumer_groups([given.group]))
        return {"state": group.state.name.capitalize(), "members": len(group.members)}

    with live_group(bootstrap, given):
        yield until(described, {"state": "Stable", "members": 1})
    yield described()


def delete_group(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    with live_group(bootstrap, given):
        yield {"while it has a member": code_of(admin.delete_consumer_groups([given.group]))}
    yield {"while it is empty": code_of(admin.delete_consumer_groups([given.group]))}
    yield {"once it is gone": code_of(admin.delete_consumer_groups([given.group]))}


def group_offset(admin: AdminClient, given: Given) -> int:
    asked = ConsumerGroupTopicPartitions(given.group, [TopicPartition(given.topic, 0)])
    offset = result_of(admin.list_consumer_group_offsets([asked])).topic_partitions[0].offset
    assert isinstance(offset, int)
    return offset


def list_group_offsets(bootstrap: str, given: Given) -> list[Step]:
    with live_group(bootstrap, given):
        return [{"offset": group_offset(admin_of(bootstrap), given)}]


def alter_group_offsets(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    with live_group(bootstrap, given):
        pass
    wanted = ConsumerGroupTopicPartitions(given.group, [TopicPartition(given.topic, 0, 7)])
    result_of(admin.alter_consumer_group_offsets([wanted]))
    return [{"offset": group_offset(admin, given)}]


def cluster(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    answer = admin.describe_cluster().result(TIMEOUT_S)
    nodes = [node.id for node in answer.nodes]
    return [{"nodes": len(nodes), "controller": answer.controller.id in nodes, "id": bool(answer.cluster_id)}]


CONFLUENT = InProcess(
    "confluent-kafka",
    lambda: f"{version('confluent-kafka')} (librdkafka {libversion()[0]})",
    {
        "produce": produce,
        "read": read,
        "oversize": oversize,
        "transactions": transactions,
        "fence": fence,
        "transactional_offsets": transactional_offsets,
        "rebalance": with_members(rebalance),
        "static": with_members(restart_static_member),
        "resume": resume,
        "topics": topics,
        "create_partitions": create_partitions,
        "topic_configs": topic_configs,
        "broker_configs": broker_configs,
        "incremental_alter_configs": incremental_alter_configs,
        "alter_configs": alter_configs,
        "delete_records": delete_records,
        "list_offsets": list_offsets,
        "max_timestamp": max_timestamp,
        "list_groups": list_groups,
        "describe_group": describe_group,
        "delete_group": delete_group,
        "list_group_offsets": list_group_offsets,
        "alter_group_offsets": alter_group_offsets,
        "cluster": cluster,
    },
    dict.fromkeys(
        (
            "delete-group-offsets",
            "client-quotas",
            "list-transactions",
            "describe-transactions",
            "describe-producers",
            "log-dirs",
        ),
        "has no such call in its admin client",
    ),
)
