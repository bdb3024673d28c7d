"""Admin clients create, describe and delete topics; producers and consumers create them by asking."""

import kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented, though not re-exported by the rules
    AdminClient,
    ConfigResource,
    NewTopic,
)

from tests.support.broker_process import BrokerProcess
from tests.support.real_clients import CLIENTS, RealClient, Row


def test_kafka_python_creates_describes_and_deletes_a_topic(broker: BrokerProcess, topic: str) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    new = kafka.admin.NewTopic(topic, 3, 1, topic_configs={"retention.ms": "1234"})
    try:
        admin.create_topics([new])
        assert topic in admin.list_topics()
        (described,) = admin.describe_topics([topic])
        assert len(described["partitions"]) == 3
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
        configs = admin.describe_configs([resource])["topic"][topic]
        assert {name: config["value"] for name, config in configs.items()} == {"retention.ms": "1234"}
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([new])
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
        with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
            admin.delete_topics([topic])
    finally:
        admin.close()


def test_kafka_python_describes_the_cluster(broker: BrokerProcess) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        (node,) = admin.describe_cluster()["brokers"]
        assert f"{node['host']}:{node['port']}" == broker.bootstrap
    finally:
        admin.close()


def test_confluent_kafka_creates_describes_and_deletes_a_topic(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(topic, 3, 1, config={"retention.ms": "1234"})
    admin.create_topics([new])[topic].result(30)
    assert len(admin.list_topics(timeout=30).topics[topic].partitions) == 3
    resource = ConfigResource("topic", topic)
    configs = admin.describe_configs([resource])[resource].result(30)
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("1234", False)
    assert configs["cleanup.policy"].value == "delete"
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([new])[topic].result(30)
    admin.delete_topics([topic])[topic].result(30)
    assert topic not in admin.list_topics(timeout=30).topics
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics([topic])[topic].result(30)


def test_confluent_kafka_describes_the_cluster(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_cluster().result(30)
    assert [f"{node.host}:{node.port}" for node in described.nodes] == [broker.bootstrap]


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_a_topic_is_created_by_the_first_who_asks_for_it(client: RealClient, broker: BrokerProcess, topic: str) -> None:
    row = Row(b"k", b"v", (), 1_600_000_000_000)
    client.produce(broker.bootstrap, topic, "none", [row], False)
    assert client.consume(broker.bootstrap, topic, 1) == [row]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert topic in admin.list_topics(timeout=30).topics
