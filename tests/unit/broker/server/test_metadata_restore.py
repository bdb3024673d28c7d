"""The cluster after a start: the state in its metadata log, and the elected leaders."""

from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.metadata_log import open_metadata_log
from sluice.broker.metadata.topic import NO_LEADER, PartitionState
from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.sasl.scram_credentials import ScramMechanism, credential_of
from sluice.errors import SluiceError
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.security import AccessControlEntryRecord, UserScramCredentialRecord
from sluice.protocol.metadata.settings import ClientQuotaRecord, EntityData
from sluice.protocol.metadata.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.support.acls import acl, acl_filter
from tests.support.kafka_data import RELEASES, unpack
from tests.unit.broker.controller.metadata_log.cluster_metadata import (
    DIRECTORY_ID,
    durable_state,
    log_of,
    partition_states,
    start,
)
from tests.unit.broker.controller.metadata_log.logs import FEATURES, START_MS, config, topic_id

T = topic_id(1)
NEWEST = {"group.version": 1, "share.version": 2, "streams.version": 1, "transaction.version": 2}
ACLS = [
    acl(
        AclOperation.WRITE,
        name="or",
        pattern_type=PatternType.PREFIXED,
        principal="User:bob",
        host="127.0.0.1",
        permission_type=AclPermissionType.DENY,
    ),
    acl(AclOperation.READ, name="orders"),
    acl(AclOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster", principal="User:*"),
]


def write(directory: Path, *records: MetadataMessage) -> None:
    """Append records to the metadata log of a directory."""
    log = open_metadata_log(str(directory), 1, FEATURES, lambda: START_MS)
    assert not log.append(records)
    log.close()


def partition(replicas: list[int], isr: list[int], leader: int) -> list[MetadataMessage]:
    record = PartitionRecord(
        topic_id=T, partition_id=0, replicas=replicas, isr=isr, leader=leader, leader_epoch=4, partition_epoch=9
    )
    return [TopicRecord(name="t", topic_id=T), record]


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_of_a_kafka_directory_is_restored(release: str, tmp_path: Path) -> None:
    broker = start(unpack(release, tmp_path))
    topics = broker.cluster.topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {
        "orders": 3,
        "grown": 4,
        "table": 1,
        "__consumer_offsets": 1,
        "__transaction_state": 1,
    }
    assert topics["table"].config.own == {"cleanup.policy": "compact,delete"}
    assert topics["orders"].config.integer("max.message.bytes") == 65536
    assert topics["grown"].config.integer("max.message.bytes") == 900000, "the config of all brokers applies"
    assert topics["__consumer_offsets"].is_internal
    # Epoch 3 in the log: two resignations and one election of that node.
    assert partition_states(broker, "orders") == [PartitionState((1,), (1,), 1, 4, 4)] * 3
    assert broker.cluster.next_producer_id == 1000
    assert broker.cluster.acls.matching(acl_filter()) == ACLS
    credentials = broker.cluster.scram_credentials
    assert list(credentials.users()) == ["alice"]
    for mechanism, iterations in ((ScramMechanism.SCRAM_SHA_256, 4096), (ScramMechanism.SCRAM_SHA_512, 8192)):
        expected = credential_of(mechanism, "alice-secret", b"salt-of-alice", iterations)
        assert credentials.get("alice", mechanism) == expected
    assert durable_state(broker)["client metrics"] == {
        "all": {"interval.ms": "60000", "metrics": "org.apache.kafka.producer."}
    }
    restarted = start(tmp_path / "data")
    assert durable_state(restarted) == durable_state(broker)
    assert partition_states(restarted, "orders") == [PartitionState((1,), (1,), 1, 5, 5)] * 3, (
        "each start begins a new leader epoch"
    )


ELECTED = {
    "the same leader, in a new epoch": ([1, 2], [1, 2], 1, (1, 2), 1),
    "the preferred replica is elected": ([2, 1], [1, 2], 1, (1, 2), 2),
    "the in-sync replica is elected": ([2, 1], [1], 1, (1,), 1),
    "the only replica is elected after its resignation": ([1], [], -1, (1,), 1),
    "a replica that was not in sync is elected if no in-sync replica is in the cluster": ([7, 2], [7], 7, (2,), 2),
    "no leader if no replica is in the cluster": ([7, 8], [7], 7, (7,), NO_LEADER),
}


@pytest.mark.parametrize(("replicas", "isr", "leader", "new_isr", "new_leader"), ELECTED.values(), ids=ELECTED)
def test_leader_is_elected_at_start(
    replicas: list[int], isr: list[int], leader: int, new_isr: tuple[int, ...], new_leader: int, tmp_path: Path
) -> None:
    write(tmp_path, *partition(replicas, isr, leader))
    broker = start(tmp_path, "sluice.brokers=2")
    assert partition_states(broker, "t") == [PartitionState(tuple(replicas), new_isr, new_leader, 5, 10)]
    (written,) = log_of(broker).image.topics[T].partitions.values()
    assert (written.leader, written.leader_epoch, written.partition_epoch) == (new_leader, 5, 10), (
        "the metadata log records the leader"
    )


def test_eligible_leader_replicas_are_cleared(tmp_path: Path) -> None:
    change = PartitionChangeRecord(topic_id=T, partition_id=0, eligible_leader_replicas=[1], last_known_elr=[1])
    write(tmp_path, *partition([1], [], -1), change)
    (written,) = log_of(start(tmp_path)).image.topics[T].partitions.values()
    assert (written.eligible_leader_replicas, written.last_known_elr) == (None, None)


SETTINGS_WITHOUT_EFFECT = {
    "an unknown config of a topic": (config(2, "t", "new.in.kafka.5", "1"), "topic t new.in.kafka.5"),
    "an invalid config value": (config(2, "t", "retention.ms", "forever"), "topic t retention.ms"),
    "a config of all brokers that cannot be altered": (
        config(4, "", "num.partitions", "2"),
        "broker <default> num.partitions",
    ),
    "a config of this broker that cannot be altered": (
        config(4, "1", "num.partitions", "2"),
        "broker 1 num.partitions",
    ),
    "an unknown config of a group": (config(32, "g", "unknown.timeout.ms", "1"), "group g unknown.timeout.ms"),
    "a config of a client metrics subscription": (config(16, "s", "what", "?"), "client-metrics s what"),
    "an unknown quota": (
        ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name="u")], key="flow_rate", value=1.0),
        "quota user=u flow_rate",
    ),
    "an ACL on an unknown resource type": (
        AccessControlEntryRecord(
            id=T, resource_type=9, resource_name="r", pattern_type=3, principal="User:u", operation=3
        ),
        "ACL of User:u on r",
    ),
    "a credential of an unknown mechanism": (
        UserScramCredentialRecord(name="u", mechanism=3),
        "SCRAM credential of u, mechanism 3",
    ),
}


@pytest.mark.parametrize(("record", "setting"), SETTINGS_WITHOUT_EFFECT.values(), ids=SETTINGS_WITHOUT_EFFECT)
def test_settings_without_effect_are_logged_and_kept(
    record: MetadataMessage, setting: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, *partition([1], [1], 1), record)
    broker = start(tmp_path)
    (line,) = caplog.records
    assert line.message == "settings in the data directory without effect"
    assert vars(line)["settings"] == setting
    assert record in list(log_of(broker).image.records())
    assert broker.cluster.topics["t"].config.own == {}


def test_configs_of_a_broker_outside_the_cluster_do_not_apply_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, config(4, "7", "message.max.bytes", "5"))
    broker = start(tmp_path)
    assert not caplog.records
    assert durable_state(broker)["brokers"] == {}


def test_brokers_register_with_each_start(tmp_path: Path) -> None:
    listeners = "listeners=PLAINTEXT://127.0.0.1:0"
    first, second = (log_of(start(tmp_path, "sluice.brokers=2", listeners)) for _ in range(2))
    assert list(second.image.brokers) == [1, 2]
    for node_id, registration in second.image.brokers.items():
        assert not registration.fenced
        assert registration.log_dirs == [DIRECTORY_ID]
        assert [(end_point.name, end_point.host, end_point.port) for end_point in registration.end_points] == [
            ("PLAINTEXT", "127.0.0.1", 0)
        ]
        assert registration.broker_epoch > first.image.brokers[node_id].broker_epoch


def test_unwritable_metadata_log_fails_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.controller.metadata_log.metadata_log.MetadataLog.append", lambda *_: 56)
    with pytest.raises(SluiceError) as raised:
        start(tmp_path)
    assert str(raised.value) == f"{tmp_path}: cannot write the metadata log; check its permissions and disk space"


RESTORED_FEATURES = {
    "metadata.version alone: features that are newer are disabled": ("metadata.version=20", "", {}),
    "levels of a new cluster do not change an old one": ("", "metadata.version=20", NEWEST),
    "a disabled feature stays disabled": ("group.version=0", "", {**NEWEST, "group.version": 0}),
}


@pytest.mark.parametrize(("features", "restarted_with", "expected"), RESTORED_FEATURES.values(), ids=RESTORED_FEATURES)
def test_feature_levels_are_restored(
    features: str, restarted_with: str, expected: dict[str, int], tmp_path: Path
) -> None:
    start(tmp_path, f"sluice.features={features}")
    restarted = start(tmp_path, f"sluice.features={restarted_with}").cluster.features
    assert {name: restarted.level(name) for name in NEWEST} == {name: expected.get(name, 0) for name in NEWEST}
    metadata_version = 20 if "metadata.version" in features else 33
    assert restarted.level("metadata.version") == metadata_version
    assert log_of(start(tmp_path)).image.features["metadata.version"] == metadata_version


def test_release_keeps_its_metadata_version_if_that_of_the_directory_is_newer(tmp_path: Path) -> None:
    start(tmp_path)
    assert start(tmp_path, "sluice.kafka.release=kafka-3.9").cluster.features.level("metadata.version") == 21
