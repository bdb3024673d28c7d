"""What records add up to, record by record as Kafka's MetadataImage has it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.image import InconsistentRecordError, MetadataImage
from sluice.broker.controller.metadata_log.recovery import recover
from sluice.protocol.metadata import RECORD_TYPES
from sluice.protocol.metadata.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from sluice.protocol.metadata.log import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
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
BROKER = RegisterBrokerRecord(broker_id=1, broker_epoch=7, fenced=True, log_dirs=[T])
TOPIC = topic(1)
SCRAM = UserScramCredentialRecord(name="alice", mechanism=1, salt=b"salt", iterations=4096)
ACL = AccessControlEntryRecord(id=T, principal="User:alice")


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
    record = partition()
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def change(**fields: object) -> PartitionChangeRecord:
    record = PartitionChangeRecord(partition_id=0, topic_id=T)
    for name, value in fields.items():
        setattr(record, name, value)
    return record


REPLAYS: list[tuple[str, list[MetadataMessage], list[MetadataMessage]]] = [
    ("a topic is there with its partitions", topic(1, 2), topic(1, 2)),
    ("a topic gets more partitions", [*topic(1, 1), partition(1, 1)], topic(1, 2)),
    ("a topic goes, and its partitions", [*topic(1), *topic(2), RemoveTopicRecord(topic_id=T)], topic(2)),
    ("a topic goes, and its configs", [*TOPIC, config("retention.ms", "1"), RemoveTopicRecord(topic_id=T)], []),
    (
        "a leader changes: both epochs rise",
        [*TOPIC, change(leader=2)],
        [TOPIC[0], changed(leader=2, leader_epoch=1, partition_epoch=1)],
    ),
    (
        "there is no leader any more: the leader's epoch rises too",
        [*TOPIC, change(leader=-1, isr=[])],
        [TOPIC[0], changed(leader=-1, isr=[], leader_epoch=1, partition_epoch=1)],
    ),
    (
        "the leader is elected again: the epoch rises all the same",
        [*TOPIC, change(leader=1)],
        [TOPIC[0], changed(leader_epoch=1, partition_epoch=1)],
    ),
    (
        "the in-sync replicas change: the leader's epoch stays",
        [*TOPIC, change(isr=[1, 2])],
        [TOPIC[0], changed(isr=[1, 2], partition_epoch=1)],
    ),
    (
        "replicas are being moved",
        [*TOPIC, change(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1], directories=[T, T])],
        [
            TOPIC[0],
            changed(replicas=[2, 1], adding_replicas=[2], removing_replicas=[1], directories=[T, T], partition_epoch=1),
        ],
    ),
    (
        "an unclean leader recovers, and has recovered",
        [*TOPIC, change(leader_recovery_state=1), change(isr=[1]), change(leader_recovery_state=0)],
        [TOPIC[0], changed(partition_epoch=3)],
    ),
    (
        "eligible leader replicas come",
        [*TOPIC, change(eligible_leader_replicas=[1], last_known_elr=[1])],
        [TOPIC[0], changed(eligible_leader_replicas=[1], last_known_elr=[1], partition_epoch=1)],
    ),
    (
        "and go with an empty list",
        [
            *TOPIC,
            change(eligible_leader_replicas=[1], last_known_elr=[1]),
            change(eligible_leader_replicas=[], last_known_elr=[]),
        ],
        [TOPIC[0], changed(partition_epoch=2)],
    ),
    (
        "or are cleared for a topic",
        [*TOPIC, change(eligible_leader_replicas=[1]), ClearElrRecord(topic_name="topic-1")],
        [TOPIC[0], changed(partition_epoch=1)],
    ),
    (
        "or for all topics",
        [*TOPIC, change(eligible_leader_replicas=[1]), ClearElrRecord()],
        [TOPIC[0], changed(partition_epoch=1)],
    ),
    ("those of a topic that is gone are nobody's", [ClearElrRecord(topic_name="gone")], []),
    (
        "configs are set, changed and removed",
        [config("a", "1"), config("b", "1"), config("a", "2"), config("b", None)],
        [config("a", "2")],
    ),
    ("what was not set can be removed", [config("a", None)], []),
    (
        "resources of one name and two types are two",
        [config("a", "1", kind=2, resource="x"), config("a", "2", kind=32, resource="x")],
        [config("a", "1", kind=2, resource="x"), config("a", "2", kind=32, resource="x")],
    ),
    (
        "quotas are set, changed and removed",
        [quota("a", 1.0), quota("b", 1.0), quota("a", 2.0), quota("b", None)],
        [quota("a", 2.0)],
    ),
    (
        "the parts of an entity have no order",
        [quota("a", 1.0, APP), quota("a", 2.0, APP[::-1])],
        [quota("a", 2.0, APP)],
    ),
    (
        "a feature of level 0 is none",
        [FeatureLevelRecord(name="x", feature_level=1), FeatureLevelRecord(name="x", feature_level=0)],
        [],
    ),
    (
        "the level of the metadata stands first",
        [FeatureLevelRecord(name=name, feature_level=1) for name in ("a", "metadata.version", "b")],
        [FeatureLevelRecord(name=name, feature_level=1) for name in ("metadata.version", "a", "b")],
    ),
    (
        "producer ids were given out",
        [ProducerIdsRecord(broker_id=1, next_producer_id=1000), ProducerIdsRecord(broker_id=2, next_producer_id=2000)],
        [ProducerIdsRecord(broker_id=-1, next_producer_id=2000)],
    ),
    ("a broker registers", [BROKER], [BROKER]),
    ("and goes", [BROKER, UnregisterBrokerRecord(broker_id=1, broker_epoch=7)], []),
    (
        "a broker is unfenced",
        [BROKER, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1)],
        [RegisterBrokerRecord(broker_id=1, broker_epoch=7, fenced=False, log_dirs=[T])],
    ),
    (
        "a broker is in controlled shutdown, and has other directories",
        [
            BROKER,
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1),
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, log_dirs=[T, T], cordoned_log_dirs=[T]),
        ],
        [
            RegisterBrokerRecord(
                broker_id=1, broker_epoch=7, in_controlled_shutdown=True, log_dirs=[T, T], cordoned_log_dirs=[T]
            )
        ],
    ),
    (
        "a broker is unfenced and fenced in the old way",
        [BROKER, UnfenceBrokerRecord(id=1, epoch=7), FenceBrokerRecord(id=1, epoch=7)],
        [BROKER],
    ),
    (
        "what is said of an earlier run of a broker means nothing",
        [BROKER, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=-1)],
        [BROKER],
    ),
    (
        "controllers come and go",
        [
            RegisterControllerRecord(controller_id=1),
            RegisterControllerRecord(controller_id=2),
            UnregisterControllerRecord(controller_id=1),
        ],
        [RegisterControllerRecord(controller_id=2)],
    ),
    ("an ACL is there", [ACL], [ACL]),
    ("an ACL goes", [ACL, RemoveAccessControlEntryRecord(id=T)], []),
    ("a credential is there", [SCRAM], [SCRAM]),
    (
        "a credential of another mechanism stays",
        [SCRAM, RemoveUserScramCredentialRecord(name="alice", mechanism=2)],
        [SCRAM],
    ),
    ("a credential goes", [SCRAM, RemoveUserScramCredentialRecord(name="alice", mechanism=1)], []),
    (
        "tokens come and go",
        [
            DelegationTokenRecord(token_id="a"),
            DelegationTokenRecord(token_id="b"),
            RemoveDelegationTokenRecord(token_id="a"),
        ],
        [DelegationTokenRecord(token_id="b")],
    ),
    ("some say nothing", [NoOpRecord(), ZkMigrationStateRecord(zk_migration_state=2)], []),
    ("a transaction counts when it has ended", [BeginTransactionRecord(), *TOPIC, EndTransactionRecord()], TOPIC),
    ("one that has not ended does not", [*TOPIC, BeginTransactionRecord(), *topic(2)], TOPIC),
    ("one that was aborted does not", [*TOPIC, BeginTransactionRecord(), *topic(2), AbortTransactionRecord()], TOPIC),
    ("what follows it does", [BeginTransactionRecord(), *topic(2), AbortTransactionRecord(), *TOPIC], TOPIC),
]


@pytest.mark.parametrize(("records", "adds_up_to"), [row[1:] for row in REPLAYS], ids=[row[0] for row in REPLAYS])
def test_records_add_up(records: list[MetadataMessage], adds_up_to: list[MetadataMessage]) -> None:
    image = image_of(records)
    assert state(image) == adds_up_to
    assert state(image_of(adds_up_to)) == adds_up_to, "and a snapshot says the same"


def test_every_record_is_met_here() -> None:
    met = {type(record) for _, records, _ in REPLAYS for record in records}
    assert met == set(RECORD_TYPES.values())


@pytest.mark.parametrize(
    ("records", "refusal"),
    [
        pytest.param([partition()], f"unknown topic id {T.hex()}", id="a partition of no topic"),
        pytest.param(
            [TopicRecord(name="topic-1", topic_id=T), change(leader=1)],
            "unknown partition topic-1-0",
            id="a change of no partition",
        ),
        pytest.param([RemoveTopicRecord(topic_id=T)], f"unknown topic id {T.hex()}", id="the end of no topic"),
        pytest.param([RemoveAccessControlEntryRecord(id=T)], f"unknown ACL id {T.hex()}", id="no such ACL"),
    ],
)
def test_what_cannot_follow_is_named(records: list[MetadataMessage], refusal: str) -> None:
    with pytest.raises(InconsistentRecordError) as caught:
        image_of(records)
    assert str(caught.value) == refusal


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_real_node_wrote_adds_up(release: str, tmp_path: Path) -> None:
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
