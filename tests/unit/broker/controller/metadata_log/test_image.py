"""Replay of metadata records into an image, record by record as in Kafka's MetadataImage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.controller.metadata_log.image import InconsistentRecordError, MetadataImage
from sluice.broker.controller.metadata_log.recovery import recover
from sluice.protocol.metadata import RECORD_TYPES, brokers, security
from sluice.protocol.metadata.log import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.settings import ClientQuotaRecord, ConfigRecord, EntityData, FeatureLevelRecord
from sluice.protocol.metadata.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.kafka_data import RELEASES, unpack
from tests.unit.broker.controller.metadata_log.logs import partition, state, topic, topic_id

T = topic_id(1)
ALICE = [EntityData(entity_type="user", entity_name="alice")]
APP = [EntityData(entity_type="client-id", entity_name="app"), *ALICE]
BROKER = brokers.RegisterBrokerRecord(broker_id=1, broker_epoch=7, fenced=True, log_dirs=[T])
TOPIC = topic(1)
SCRAM = security.UserScramCredentialRecord(name="alice", mechanism=1, salt=b"salt", iterations=4096)
ACL = security.AccessControlEntryRecord(id=T, principal="User:alice")


def image_of(records: Sequence[MetadataMessage]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def config(name: str, value: str | None, kind: int = 2, resource: str = "topic-1") -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def quota(key: str, value: float | None, entity: list[EntityData] = ALICE) -> ClientQuotaRecord:
    return ClientQuotaRecord(entity=entity, key=key, value=value or 0.0, remove=value is None)


def changed(**fields: object) -> PartitionRecord:
    return replace(partition(), **fields)


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=T, **fields)


def broker_change(broker_epoch: int = 7, **fields: Any) -> brokers.BrokerRegistrationChangeRecord:
    return brokers.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=broker_epoch, **fields)


# Name, changes of the partition of topic 1, and the partition after them.
PARTITION_CHANGES: dict[str, tuple[list[MetadataMessage], PartitionRecord]] = {
    "leader change raises both epochs": ([change(leader=2)], changed(leader=2, leader_epoch=1, partition_epoch=1)),
    "loss of the leader raises the leader epoch": (
        [change(leader=-1, isr=[])],
        changed(leader=-1, isr=[], leader_epoch=1, partition_epoch=1),
    ),
    "reelection of the leader raises the leader epoch": (
        [change(leader=1)],
        changed(leader_epoch=1, partition_epoch=1),
    ),
    "ISR change keeps the leader epoch": ([change(isr=[1, 2])], changed(isr=[1, 2], partition_epoch=1)),
    "reassignment in progress": (
        [change(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1], directories=[T, T])],
        changed(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1], directories=[T, T], partition_epoch=1),
    ),
    "leader recovery state set and cleared": (
        [change(leader_recovery_state=1), change(isr=[1]), change(leader_recovery_state=0)],
        changed(partition_epoch=3),
    ),
    "eligible leader replicas set": (
        [change(eligible_leader_replicas=[1], last_known_elr=[1])],
        changed(eligible_leader_replicas=[1], last_known_elr=[1], partition_epoch=1),
    ),
    "eligible leader replicas cleared by an empty list": (
        [
            change(eligible_leader_replicas=[1], last_known_elr=[1]),
            change(eligible_leader_replicas=[], last_known_elr=[]),
        ],
        changed(partition_epoch=2),
    ),
    "eligible leader replicas cleared for a topic": (
        [change(eligible_leader_replicas=[1]), ClearElrRecord(topic_name="topic-1")],
        changed(partition_epoch=1),
    ),
    "eligible leader replicas cleared for all topics": (
        [change(eligible_leader_replicas=[1]), ClearElrRecord()],
        changed(partition_epoch=1),
    ),
}
REPLAYS: dict[str, tuple[list[MetadataMessage], list[MetadataMessage]]] = {
    "topic with partitions": (topic(1, 2), topic(1, 2)),
    "partitions added to a topic": ([*topic(1, 1), partition(1, 1)], topic(1, 2)),
    "topic removed with its partitions": ([*topic(1), *topic(2), RemoveTopicRecord(topic_id=T)], topic(2)),
    "topic removed with its configs": ([*TOPIC, config("retention.ms", "1"), RemoveTopicRecord(topic_id=T)], []),
    **{name: ([*TOPIC, *changes], [TOPIC[0], after]) for name, (changes, after) in PARTITION_CHANGES.items()},
    "eligible leader replicas cleared for an unknown topic": ([ClearElrRecord(topic_name="gone")], []),
    "configs set, changed and removed": (
        [config("a", "1"), config("b", "1"), config("a", "2"), config("b", None)],
        [config("a", "2")],
    ),
    "unset config removed": ([config("a", None)], []),
    "configs of two resource types with one name are separate": (
        [config("a", "1", kind=2, resource="x"), config("a", "2", kind=32, resource="x")],
        [config("a", "1", kind=2, resource="x"), config("a", "2", kind=32, resource="x")],
    ),
    "quotas set, changed and removed": (
        [quota("a", 1.0), quota("b", 1.0), quota("a", 2.0), quota("b", None)],
        [quota("a", 2.0)],
    ),
    "order of the parts of a quota entity is irrelevant": (
        [quota("a", 1.0, APP), quota("a", 2.0, APP[::-1])],
        [quota("a", 2.0, APP)],
    ),
    "feature level 0 removes the feature": (
        [FeatureLevelRecord(name="x", feature_level=1), FeatureLevelRecord(name="x", feature_level=0)],
        [],
    ),
    "metadata.version is the first feature record": (
        [FeatureLevelRecord(name=name, feature_level=1) for name in ("a", "metadata.version", "b")],
        [FeatureLevelRecord(name=name, feature_level=1) for name in ("metadata.version", "a", "b")],
    ),
    "last block of producer ids counts": (
        [ProducerIdsRecord(broker_id=1, next_producer_id=1000), ProducerIdsRecord(broker_id=2, next_producer_id=2000)],
        [ProducerIdsRecord(broker_id=-1, next_producer_id=2000)],
    ),
    "broker registered": ([BROKER], [BROKER]),
    "broker unregistered": ([BROKER, brokers.UnregisterBrokerRecord(broker_id=1, broker_epoch=7)], []),
    "broker unfenced": ([BROKER, broker_change(fenced=-1)], [replace(BROKER, fenced=False)]),
    "controlled shutdown and changed log directories": (
        [BROKER, broker_change(in_controlled_shutdown=1), broker_change(log_dirs=[T, T], cordoned_log_dirs=[T])],
        [replace(BROKER, in_controlled_shutdown=True, log_dirs=[T, T], cordoned_log_dirs=[T])],
    ),
    "UnfenceBrokerRecord and FenceBrokerRecord": (
        [BROKER, brokers.UnfenceBrokerRecord(id=1, epoch=7), brokers.FenceBrokerRecord(id=1, epoch=7)],
        [BROKER],
    ),
    "change for an earlier broker epoch is ignored": ([BROKER, broker_change(6, fenced=-1)], [BROKER]),
    "controllers registered and unregistered": (
        [
            brokers.RegisterControllerRecord(controller_id=1),
            brokers.RegisterControllerRecord(controller_id=2),
            brokers.UnregisterControllerRecord(controller_id=1),
        ],
        [brokers.RegisterControllerRecord(controller_id=2)],
    ),
    "ACL created": ([ACL], [ACL]),
    "ACL removed": ([ACL, security.RemoveAccessControlEntryRecord(id=T)], []),
    "SCRAM credential set": ([SCRAM], [SCRAM]),
    "SCRAM credential removed for another mechanism": (
        [SCRAM, security.RemoveUserScramCredentialRecord(name="alice", mechanism=2)],
        [SCRAM],
    ),
    "SCRAM credential removed": ([SCRAM, security.RemoveUserScramCredentialRecord(name="alice", mechanism=1)], []),
    "delegation tokens created and removed": (
        [
            security.DelegationTokenRecord(token_id="a"),
            security.DelegationTokenRecord(token_id="b"),
            security.RemoveDelegationTokenRecord(token_id="a"),
        ],
        [security.DelegationTokenRecord(token_id="b")],
    ),
    "records without effect": ([NoOpRecord(), ZkMigrationStateRecord(zk_migration_state=2)], []),
    "committed transaction is applied": ([BeginTransactionRecord(), *TOPIC, EndTransactionRecord()], TOPIC),
    "open transaction is ignored": ([*TOPIC, BeginTransactionRecord(), *topic(2)], TOPIC),
    "aborted transaction is ignored": ([*TOPIC, BeginTransactionRecord(), *topic(2), AbortTransactionRecord()], TOPIC),
    "records after an aborted transaction are applied": (
        [BeginTransactionRecord(), *topic(2), AbortTransactionRecord(), *TOPIC],
        TOPIC,
    ),
}


@pytest.mark.parametrize(("records", "expected"), REPLAYS.values(), ids=REPLAYS)
def test_records_replay_to_the_expected_image(records: list[MetadataMessage], expected: list[MetadataMessage]) -> None:
    image = image_of(records)
    assert state(image) == expected
    assert state(image_of(expected)) == expected, "a snapshot restores the image"


def test_every_record_type_is_replayed() -> None:
    replayed = {type(record) for records, _ in REPLAYS.values() for record in records}
    assert replayed == set(RECORD_TYPES.values())


INCONSISTENT = {
    "partition of an unknown topic": ([partition()], f"unknown topic id {T.hex()}"),
    "change of an unknown partition": (
        [TopicRecord(name="topic-1", topic_id=T), change(leader=1)],
        "unknown partition topic-1-0",
    ),
    "removal of an unknown topic": ([RemoveTopicRecord(topic_id=T)], f"unknown topic id {T.hex()}"),
    "removal of an unknown ACL": ([security.RemoveAccessControlEntryRecord(id=T)], f"unknown ACL id {T.hex()}"),
}


@pytest.mark.parametrize(("records", "error"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent_record_is_rejected_with_its_reason(records: list[MetadataMessage], error: str) -> None:
    with pytest.raises(InconsistentRecordError) as caught:
        image_of(records)
    assert str(caught.value) == error


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_log_written_by_kafka_is_replayed(release: str, tmp_path: Path) -> None:
    image = recover(unpack(release, tmp_path) / "__cluster_metadata-0").image
    topics = {topic.name: topic for topic in image.topics.values()}
    internal = {"__consumer_offsets", "__transaction_state"}
    assert {name: len(topic.partitions) for name, topic in topics.items() if name not in internal} == {
        "orders": 3,
        "grown": 4,
        "table": 1,
    }
    assert image.configs[2, "orders"] | {"min.insync.replicas": "1"} == {
        "max.message.bytes": "65536",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "1048576",
    }
    assert image.configs[2, "table"] == {"cleanup.policy": "compact,delete"}
    assert (2, "gone") not in image.configs
    assert image.configs[4, "1"] == {"log.cleaner.threads": "2"}
    assert image.client_quotas[frozenset({("user", "alice"), ("client-id", "app")})] == {
        "controller_mutation_rate": 5.0,
        "producer_byte_rate": 5000.0,
    }
    assert frozenset({("user", "bob")}) not in image.client_quotas
    assert sorted((acl.principal, acl.resource_name) for acl in image.acls.values()) == [
        ("User:*", "kafka-cluster"),
        ("User:alice", "orders"),
        ("User:bob", "or"),
    ]
    assert sorted(image.scram_credentials) == [(1, "alice"), (2, "alice")]
    assert image.next_producer_id == 1000
    assert image.features["metadata.version"] == {"3.9.1": 21, "4.4.0": 33}[release]
    assert state(image_of(state(image))) == state(image)
