"""Brokers in virtual time whose cluster keeps its metadata in a directory."""

from pathlib import Path

from sluice.broker.metadata.topic import PartitionState
from sluice.broker.server.metadata_restore import open_metadata
from tests.support.virtual_broker import VirtualBroker

DIRECTORY_ID = bytes(range(16))


def start(directory: Path, *overrides: str) -> VirtualBroker:
    """Starts brokers on a data directory, be it new or not."""
    broker = VirtualBroker("node.id=1", *overrides)
    broker.cluster.metadata_log = open_metadata(broker.cluster, str(directory), DIRECTORY_ID)
    return broker


def known(broker: VirtualBroker) -> dict[str, object]:
    """All that is durable, but for who leads since when: that is anew with every start."""
    cluster = broker.cluster
    return {
        "topics": {name: (topic.topic_id, dict(topic.config.own)) for name, topic in cluster.topics.items()},
        "partitions": {
            name: [(partition.replicas, partition.isr) for partition in topic.partitions]
            for name, topic in cluster.topics.items()
        },
        "brokers": {name: dict(own) for name, own in cluster.broker_configs.items() if own},
        "groups": {name: dict(cluster.group_configs.own(name)) for name in cluster.group_configs.names()},
        "client metrics": {
            name: dict(cluster.client_metrics_configs.own(name)) for name in cluster.client_metrics_configs.names()
        },
        "quotas": {
            frozenset(entity.items()): dict(quotas)
            for entity, quotas in cluster.client_quotas.matching({}, (), strict=False)
        },
        "ACLs": dict(cluster.acls.items()),
        "credentials": {user: cluster.scram_credentials.of_user(user) for user in cluster.scram_credentials.users()},
        "producer ids": cluster.next_producer_id,
    }


def led(broker: VirtualBroker, topic: str) -> list[PartitionState]:
    """Where each partition of a topic is, and who leads it."""
    return [partition.state for partition in broker.cluster.topics[topic].partitions]
