"""The kafka-python driver: admin calls, and the table of verbs."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version

import kafka
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer import OffsetSpec
from kafka.structs import OffsetAndMetadata

from tests.clients.driver import Given, InProcess, Row, Step, rebalance, restart_static_member, until, verbs
from tests.clients.kafka_python_driver import (
    fence,
    live_group,
    oversize,
    produce,
    read,
    resume,
    send,
    transactional_offsets,
    transactional_producer,
    transactions,
    with_members,
)
from tests.clients.login import of_python
from tests.clients.scenarios import CLASSIC_ONLY, WITHOUT_SHARE_CONSUMER


@contextmanager
def admin_of(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(**of_python(bootstrap))) as admin:
        yield admin


def partitions_of(admin: KafkaAdminClient, topic: str) -> int:
    return len(admin.describe_topics([topic])[0]["partitions"])


def topics(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def create() -> int:
            response = admin.create_topics({given.topic: {"num_partitions": given.partitions}}, raise_errors=False)
            return int(response["topics"][0]["error_code"])

        def delete() -> int:
            return int(admin.delete_topics([given.topic], raise_errors=False)["topics"][0]["error_code"])

        def listed() -> bool:
            return given.topic in admin.list_topics()

        yield {"created": create()}
        yield {"created again": create()}
        yield {"listed": until(listed, True)}
        yield {"partitions": partitions_of(admin, given.topic)}
        yield {"deleted": delete()}
        yield {"listed": until(listed, False)}
        yield {"deleted again": delete()}


def create_partitions(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def grow() -> int:
            response = admin.create_partitions({given.topic: given.partitions}, raise_errors=False)
            return int(response.results[0].error_code)

        yield {"error": grow()}
        yield {"partitions": until(lambda: partitions_of(admin, given.topic), given.partitions)}
        yield {"error": grow()}


# -- configs -----------------------------------------------------------------------------------------------------------


def configs(admin: KafkaAdminClient, kind: str, name: str, *keys: str) -> Step:
    resource = ConfigResource(ConfigResourceType[kind.upper()], name)
    found = admin.describe_configs([resource], config_filter="all")[kind][name]
    return {key: found[key]["value"] for key in keys}


def topic_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        yield configs(admin, "topic", given.topic, "retention.ms", "cleanup.policy")


def broker_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        node, *_ = admin.describe_cluster()["brokers"]
        yield configs(admin, "broker", str(node["broker_id"]), "message.max.bytes")


def alter(admin: KafkaAdminClient, topic: str, operation: str, value: str, incremental: bool) -> Step:
    """Alter a config and return it when it has the value."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": (operation, value)})
    admin.alter_configs([resource], incremental=incremental)
    wanted: Step = {"retention.ms": value}
    return until(lambda: configs(admin, "topic", topic, "retention.ms"), wanted)


def incremental_alter_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        for operation, value in (("SET", "5000"), ("DELETE", "604800000")):
            altered = alter(admin, given.topic, operation, value, True)
            yield altered | configs(admin, "topic", given.topic, "retention.bytes")


def alter_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        yield alter(admin, given.topic, "SET", "5000", False)


# -- offsets -----------------------------------------------------------------------------------------------------------


def offset_of(admin: KafkaAdminClient, topic: str, spec: int) -> OffsetAndMetadata:
    """Return the ListOffsets result of partition 0."""
    partition = TopicPartition(topic, 0)
    return admin.list_partition_offsets({partition: spec})[partition]


def delete_records(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with admin_of(bootstrap) as admin:
        yield {"low_watermark": admin.delete_records({partition: given.count})[partition]["low_watermark"]}
        yield {"earliest": offset_of(admin, given.topic, OffsetSpec.EARLIEST).offset}


def list_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    specs = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "by_timestamp": given.count}
    with admin_of(bootstrap) as admin:
        yield {name: offset_of(admin, given.topic, spec).offset for name, spec in specs.items()}


def max_timestamp(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        found = offset_of(admin, given.topic, OffsetSpec.MAX_TIMESTAMP)
        yield {"offset": found.offset, "timestamp": found.timestamp}


# -- groups ------------------------------------------------------------------------------------------------------------


def list_groups(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        yield {"listed": given.group in [group["group_id"] for group in admin.list_groups()]}


def describe_group(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def described() -> Step:
            group = admin.describe_groups([given.group])[given.group]
            return {"state": group["group_state"], "members": len(group["members"])}

        with live_group(bootstrap, given):
            yield described()
        yield described()


def delete_group(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def delete() -> int:
            result = admin.delete_groups([given.group])[given.group]
            return 0 if result == "OK" else int(getattr(kafka.errors, result).errno)

        with live_group(bootstrap, given):
            yield {"with a member": delete()}
        yield {"empty": delete()}
        yield {"deleted": delete()}


def group_offset(admin: KafkaAdminClient, given: Given) -> int:
    offsets = admin.list_group_offsets({given.group: [TopicPartition(given.topic, 0)]})[given.group]
    return int(offsets[TopicPartition(given.topic, 0)].offset)


def list_group_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        yield {"offset": group_offset(admin, given)}


def alter_group_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    with live_group(bootstrap, given):
        pass
    with admin_of(bootstrap) as admin:
        admin.alter_group_offsets(given.group, {TopicPartition(given.topic, 0): OffsetAndMetadata(7, "", -1)})
        yield {"offset": group_offset(admin, given)}


def delete_group_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with live_group(bootstrap, given):
        pass
    with admin_of(bootstrap) as admin:
        yield {"error": admin.delete_group_offsets(given.group, [partition])[partition].errno}
        yield {"left": len(admin.list_group_offsets(given.group)[given.group])}


# -- the rest ----------------------------------------------------------------------------------------------------------


def cluster(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        response = admin.describe_cluster()
    nodes = [node["broker_id"] for node in response["brokers"]]
    yield {"nodes": len(nodes), "controller": response["controller_id"] in nodes, "id": bool(response["cluster_id"])}


@contextmanager
def open_transaction(bootstrap: str, given: Given) -> Iterator[None]:
    """A transaction that has written one record."""
    with transactional_producer(bootstrap, given) as producer:
        producer.begin_transaction()
        send(producer, given.topic, [Row(None, b"v", [], 0)])
        yield
        producer.abort_transaction()


def list_transactions(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, open_transaction(bootstrap, given):
        listed = [one for listings in admin.list_transactions().values() for one in listings]
        (state,) = [one.state for one in listed if one.transactional_id == given.transactional_id]
        yield {"state": state.value}


def describe_transaction(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, open_transaction(bootstrap, given):
        described = admin.describe_transactions([given.transactional_id])[given.transactional_id]
        yield {"state": described.state.value, "partitions": len(described.topic_partitions)}


def describe_producers(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with admin_of(bootstrap) as admin, open_transaction(bootstrap, given):
        yield {"producers": len(admin.describe_producers([partition])[partition].active_producers)}


def log_dirs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        brokers = admin.describe_log_dirs([given.topic])
    topics = [topic for broker in brokers for log_dir in broker["log_dirs"] for topic in log_dir["topics"]]
    yield {"partitions": sum(len(topic["partitions"]) for topic in topics)}


KAFKA_PYTHON = InProcess(
    "kafka-python",
    lambda: version("kafka-python"),
    verbs(produce, read, oversize, transactions, fence, transactional_offsets, resume, topics, create_partitions)
    | verbs(topic_configs, broker_configs, incremental_alter_configs, alter_configs, delete_records, list_offsets)
    | verbs(max_timestamp, list_groups, describe_group, delete_group, list_group_offsets, alter_group_offsets)
    | verbs(delete_group_offsets, cluster, list_transactions, describe_transaction, describe_producers, log_dirs)
    | {"rebalance": with_members(rebalance), "static": with_members(restart_static_member)},
    {
        **WITHOUT_SHARE_CONSUMER,
        **dict.fromkeys(("null-header", "null-record"), "refuses to send it"),
        **CLASSIC_ONLY,
        "client-quotas": "has no such call in its admin client",
    },
)
