"""Brokers in virtual time with a metadata log on disk."""

from pathlib import Path

from sluice.broker.controller.metadata_log.durable_metadata import DurableMetadata
from sluice.broker.metadata.topic import PartitionState
from sluice.broker.server.metadata_restore import open_metadata
from tests.support.virtual_broker import VirtualBroker

DIRECTORY_ID = bytes(range(16))


def start(directory: Path, *overrides: str) -> VirtualBroker:
    """Start brokers on a new or existing data directory."""
    broker = VirtualBroker("node.id=1", *overrides)
    broker.cluster.metadata_log = open_metadata(broker.cluster, str(directory), DIRECTORY_ID)
    return broker


def log_of(broker: VirtualBroker) -> DurableMetadata:
    log = broker.cluster.metadata_log
    assert log is not None
    return log


def durable_state(broker: VirtualBroker) -> dict[str, object]:
    """Return all durable state except leaders and leader epochs, which change with every start."""
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
        "features": {name: feature.finalized_level for name, feature in cluster.features.by_name.items()},
    }


def partition_states(broker: VirtualBroker, topic: str) -> list[PartitionState]:
    return [partition.state for partition in broker.cluster.topics[topic].partitions]
