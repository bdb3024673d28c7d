"""The kafka-python 2 driver, which runs in a separate environment with that version.

All but its admin client is as in version 3: kafka_python_driver.py.
"""

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version

import kafka
import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from tests.clients.driver import Given, Step, as_json, rebalance, restart_static_member, until, verbs
from tests.clients.kafka_python_driver import (
    fence,
    live_group,
    oversize,
    produce,
    read,
    resume,
    transactional_offsets,
    transactions,
    with_members,
)
from tests.clients.login import of_python

# Until a new connection has logged in and knows the broker's versions; a busy machine needs more than the default, 2 s.
for _client in (KafkaConsumer, kafka.KafkaProducer, KafkaAdminClient):
    _client.DEFAULT_CONFIG["api_version_auto_timeout_ms"] = 60_000


@contextmanager
def admin_of(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(**of_python(bootstrap))) as admin:
        yield admin


def code(call: Callable[[], object]) -> int:
    """Return the error code of a call; 0 if it succeeded."""
    try:
        call()
    except kafka.errors.KafkaError as error:
        return int(error.errno)
    return 0


def partitions_of(admin: KafkaAdminClient, topic: str) -> int:
    return len(admin.describe_topics([topic])[0]["partitions"])


def topics(bootstrap: str, given: Given) -> Iterable[Step]:
    new = NewTopic(given.topic, given.partitions, 1)
    with admin_of(bootstrap) as admin:

        def listed() -> bool:
            return given.topic in admin.list_topics()

        yield {"created": code(lambda: admin.create_topics([new]))}
        yield {"created again": code(lambda: admin.create_topics([new]))}
        yield {"listed": until(listed, True)}
        yield {"partitions": partitions_of(admin, given.topic)}
        yield {"deleted": code(lambda: admin.delete_topics([given.topic]))}
        yield {"listed": until(listed, False)}
        yield {"deleted again": code(lambda: admin.delete_topics([given.topic]))}


def create_partitions(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def grow() -> int:
            return code(lambda: admin.create_partitions({given.topic: NewPartitions(given.partitions)}))

        yield {"error": grow()}
        yield {"partitions": until(lambda: partitions_of(admin, given.topic), given.partitions)}
        yield {"error": grow()}


def configs(admin: KafkaAdminClient, kind: ConfigResourceType, name: str, *keys: str) -> Step:
    (response,) = admin.describe_configs([ConfigResource(kind, name)])
    values = {entry[0]: entry[1] for entry in response.resources[0][4]}
    return {key: values[key] for key in keys}


def topic_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        yield configs(admin, ConfigResourceType.TOPIC, given.topic, "retention.ms", "cleanup.policy")


def broker_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        node, *_ = admin.describe_cluster()["brokers"]
        yield configs(admin, ConfigResourceType.BROKER, str(node["node_id"]), "message.max.bytes")


def alter_configs(bootstrap: str, given: Given) -> Iterable[Step]:
    wanted: Step = {"retention.ms": "5000"}
    with admin_of(bootstrap) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, given.topic, wanted)])
        yield until(lambda: configs(admin, ConfigResourceType.TOPIC, given.topic, "retention.ms"), wanted)


@contextmanager
def reader(bootstrap: str) -> Iterator[KafkaConsumer]:
    with closing(KafkaConsumer(**of_python(bootstrap), group_id=None)) as consumer:
        yield consumer


def delete_records(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with admin_of(bootstrap) as admin, reader(bootstrap) as consumer:
        yield {"low_watermark": admin.delete_records({partition: given.count})[partition]["low_watermark"]}
        yield {"earliest": consumer.beginning_offsets([partition])[partition]}


def list_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with reader(bootstrap) as consumer:
        earliest, latest = consumer.beginning_offsets([partition]), consumer.end_offsets([partition])
        found = consumer.offsets_for_times({partition: given.count})
    yield {"earliest": earliest[partition], "latest": latest[partition], "by_timestamp": found[partition].offset}


def list_groups(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        yield {"listed": (given.group, "consumer") in admin.list_consumer_groups()}


def describe_group(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def described() -> Step:
            (group,) = admin.describe_consumer_groups([given.group])
            return {"state": group.state, "members": len(group.members)}

        with live_group(bootstrap, given):
            yield described()
        yield described()


def delete_group(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:

        def delete() -> int:
            ((_, error),) = admin.delete_consumer_groups([given.group])
            return int(error.errno)

        with live_group(bootstrap, given):
            yield {"with a member": delete()}
        yield {"empty": delete()}
        yield {"deleted": delete()}


def list_group_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        yield {"offset": admin.list_consumer_group_offsets(given.group)[TopicPartition(given.topic, 0)].offset}


def cluster(bootstrap: str, given: Given) -> Iterable[Step]:
    with admin_of(bootstrap) as admin:
        response = admin.describe_cluster()
    nodes = [node["node_id"] for node in response["brokers"]]
    yield {"nodes": len(nodes), "controller": response["controller_id"] in nodes, "id": bool(response["cluster_id"])}


VERBS = (
    verbs(produce, read, oversize, transactions, fence, transactional_offsets, resume, topics, create_partitions)
    | verbs(topic_configs, broker_configs, alter_configs, delete_records, list_offsets, list_groups, describe_group)
    | verbs(delete_group, list_group_offsets, cluster)
    | {"rebalance": with_members(rebalance), "static": with_members(restart_static_member)}
)


def write(name: str, value: object) -> None:
    print(json.dumps({name: value}), flush=True)


def main() -> None:
    """Answer calls in the protocol of external.py."""
    logging.disable()
    write("version", version("kafka-python"))
    for line in sys.stdin:
        call = json.loads(line)
        try:
            for step in VERBS[call["verb"]](call["bootstrap"], msgspec.convert(call["given"], Given)):
                write("step", as_json(step))
            write("end", True)
        except Exception:
            write("failure", traceback.format_exc())


if __name__ == "__main__":
    main()
