"""The confluent-kafka driver: admin calls, and the table of verbs."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from time import monotonic
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
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

from tests.clients.confluent_driver import (
    fence,
    group_consumer,
    oversize,
    produce,
    read,
    resume,
    share,
    transactional_offsets,
    transactions,
    with_members,
)
from tests.clients.driver import TIMEOUT_S, Given, InProcess, Step, rebalance, restart_static_member, until, verbs
from tests.clients.login import of_librdkafka
from tests.clients.scenarios import without_admin_calls

# The library has no types for these.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def admin_of(bootstrap: str) -> AdminClient:
    return AdminClient(of_librdkafka(bootstrap))


def code_of(futures: dict[Any, Any]) -> int:
    """Return the error code of a call about one resource; 0 if it succeeded."""
    (future,) = futures.values()
    try:
        future.result(TIMEOUT_S)
    except KafkaException as raised:
        return int(raised.args[0].code())
    return 0


def result_of(futures: dict[Any, Any]) -> Any:
    """Return the result of a call about one resource."""
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
    found = result_of(admin.describe_configs([ConfigResource(kind, name)]))
    return {key: found[key].value for key in keys}


def topic_configs(bootstrap: str, given: Given) -> list[Step]:
    return [configs(admin_of(bootstrap), "topic", given.topic, "retention.ms", "cleanup.policy")]


def broker_configs(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    node_id, *_ = admin.list_topics(timeout=TIMEOUT_S).brokers
    return [configs(admin, "broker", str(node_id), "message.max.bytes")]


def until_retention(admin: AdminClient, topic: str, retention_ms: str) -> Step:
    """Return the altered config when it has the value."""
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
        warnings.simplefilter("ignore", DeprecationWarning)  # the deprecated call is under test
        result_of(admin.alter_configs([ConfigResource("topic", given.topic, set_config={"retention.ms": "5000"})]))
    return [until_retention(admin, given.topic, "5000")]


def offset_of(admin: AdminClient, topic: str, spec: OffsetSpec) -> Any:
    """Return the ListOffsets result of partition 0."""
    futures = admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return result_of(futures)


def delete_records(bootstrap: str, given: Given) -> Iterable[Step]:
    admin = admin_of(bootstrap)
    deleted = result_of(admin.delete_records([TopicPartition(given.topic, 0, given.count)]))
    yield {"low_watermark": deleted.low_watermark}
    yield {"earliest": offset_of(admin, given.topic, EARLIEST).offset}


def list_offsets(bootstrap: str, given: Given) -> list[Step]:
    admin = admin_of(bootstrap)
    specs = {"earliest": EARLIEST, "latest": LATEST, "by_timestamp": OffsetSpec.for_timestamp(given.count)}
    return [{name: offset_of(admin, given.topic, spec).offset for name, spec in specs.items()}]


def max_timestamp(bootstrap: str, given: Given) -> list[Step]:
    found = offset_of(admin_of(bootstrap), given.topic, MAX_TIMESTAMP)
    return [{"offset": found.offset, "timestamp": found.timestamp}]


@contextmanager
def live_group(bootstrap: str, given: Given) -> Iterator[None]:
    """A group with one member that has committed offset 3."""
    with group_consumer(bootstrap, given) as consumer:
        deadline = monotonic() + TIMEOUT_S
        while not consumer.assignment():
            assert monotonic() < deadline, "no partition is assigned"
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
        yield {"with a member": code_of(admin.delete_consumer_groups([given.group]))}
    yield {"empty": code_of(admin.delete_consumer_groups([given.group]))}
    yield {"deleted": code_of(admin.delete_consumer_groups([given.group]))}


def group_offset(admin: AdminClient, given: Given) -> int:
    requested = ConsumerGroupTopicPartitions(given.group, [TopicPartition(given.topic, 0)])
    offset = result_of(admin.list_consumer_group_offsets([requested])).topic_partitions[0].offset
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
    response = admin.describe_cluster().result(TIMEOUT_S)
    nodes = [node.id for node in response.nodes]
    return [{"nodes": len(nodes), "controller": response.controller.id in nodes, "id": bool(response.cluster_id)}]


CONFLUENT = InProcess(
    "confluent-kafka",
    lambda: f"{version('confluent-kafka')} (librdkafka {libversion()[0]})",
    verbs(produce, read, oversize, transactions, fence, transactional_offsets, resume, share, topics)
    | verbs(create_partitions, topic_configs, broker_configs, incremental_alter_configs, alter_configs)
    | verbs(delete_records, list_offsets, max_timestamp, list_groups, describe_group, delete_group)
    | verbs(list_group_offsets, alter_group_offsets, cluster)
    | {"rebalance": with_members(rebalance), "static": with_members(restart_static_member)},
    without_admin_calls("delete-group-offsets", "client-quotas", "log-dirs"),
)
