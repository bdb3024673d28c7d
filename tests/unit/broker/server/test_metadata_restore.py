"""What a cluster is after a start: what its metadata log says, with a leader for every partition that can have one."""

from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.metadata_log import open_metadata_log
from sluice.broker.metadata.topic import NO_LEADER, PartitionState
from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.sasl.scram_credentials import ScramMechanism, credential_of
from sluice.errors import SluiceError
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.security import AccessControlEntryRecord, UserScramCredentialRecord
from sluice.protocol.metadata.settings import ClientQuotaRecord, ConfigRecord, EntityData
from sluice.protocol.metadata.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.support.acls import acl, acl_filter
from tests.support.kafka_data import RELEASES, unpack
from tests.unit.broker.controller.metadata_log.cluster_metadata import DIRECTORY_ID, known, led, start
from tests.unit.broker.controller.metadata_log.logs import FEATURES, START_MS, topic_id

T = topic_id(1)
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
    """Puts records into a log as somebody else would."""
    log = open_metadata_log(str(directory), 1, FEATURES, lambda: START_MS)
    assert not log.append(records)
    log.close()


def partition(*, replicas: list[int], isr: list[int], leader: int) -> list[MetadataMessage]:
    record = PartitionRecord(
        topic_id=T, partition_id=0, replicas=replicas, isr=isr, leader=leader, leader_epoch=4, partition_epoch=9
    )
    return [TopicRecord(name="t", topic_id=T), record]


@pytest.mark.parametrize("release", RELEASES)
def test_a_directory_of_a_real_kafka_is_all_there(release: str, tmp_path: Path) -> None:
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
    assert topics["grown"].config.integer("max.message.bytes") == 900000, "of all brokers"
    assert topics["__consumer_offsets"].is_internal
    # 3: given up twice and led again once by that node.
    assert led(broker, "orders") == [PartitionState((1,), (1,), 1, 4, 4)] * 3
    assert broker.cluster.next_producer_id == 1000
    assert broker.cluster.acls.matching(acl_filter()) == ACLS
    credentials = broker.cluster.scram_credentials
    assert list(credentials.users()) == ["alice"]
    for mechanism, iterations in ((ScramMechanism.SCRAM_SHA_256, 4096), (ScramMechanism.SCRAM_SHA_512, 8192)):
        expected = credential_of(mechanism, "alice-secret", b"salt-of-alice", iterations)
        assert credentials.get("alice", mechanism) == expected
    assert known(broker)["client metrics"] == {"all": {"interval.ms": "60000", "metrics": "org.apache.kafka.producer."}}
    again = start(tmp_path / "data")
    assert known(again) == known(broker)
    assert led(again, "orders") == [PartitionState((1,), (1,), 1, 5, 5)] * 3, "each start is a term of its own"


@pytest.mark.parametrize(
    ("stored", "led_by"),
    [
        pytest.param(
            partition(replicas=[1, 2], isr=[1, 2], leader=1),
            PartitionState((1, 2), (1, 2), 1, 5, 10),
            id="as it was, in a new epoch",
        ),
        pytest.param(
            partition(replicas=[2, 1], isr=[1, 2], leader=1),
            PartitionState((2, 1), (1, 2), 2, 5, 10),
            id="by the preferred replica",
        ),
        pytest.param(
            partition(replicas=[2, 1], isr=[1], leader=1),
            PartitionState((2, 1), (1,), 1, 5, 10),
            id="by the one that is in sync",
        ),
        pytest.param(
            partition(replicas=[1], isr=[], leader=-1),
            PartitionState((1,), (1,), 1, 5, 10),
            id="by the one that had given it up",
        ),
        pytest.param(
            partition(replicas=[7, 2], isr=[7], leader=7),
            PartitionState((7, 2), (2,), 2, 5, 10),
            id="by one that was not in sync, where none that was is here: it has the one log there is",
        ),
        pytest.param(
            partition(replicas=[7, 8], isr=[7], leader=7),
            PartitionState((7, 8), (7,), NO_LEADER, 5, 10),
            id="by nobody, where none of its brokers is here",
        ),
    ],
)
def test_a_partition_is_led(stored: list[MetadataMessage], led_by: PartitionState, tmp_path: Path) -> None:
    write(tmp_path, *stored)
    broker = start(tmp_path, "sluice.brokers=2")
    assert led(broker, "t") == [led_by]
    metadata_log = broker.cluster.metadata_log
    assert metadata_log is not None
    (written,) = metadata_log.image.topics[T].partitions.values()
    assert (written.leader, written.leader_epoch, written.partition_epoch) == led_by[2:5], "and the log says so"


def test_eligible_leader_replicas_are_cleared(tmp_path: Path) -> None:
    change = PartitionChangeRecord(topic_id=T, partition_id=0, eligible_leader_replicas=[1], last_known_elr=[1])
    write(tmp_path, *partition(replicas=[1], isr=[], leader=-1), change)
    metadata_log = start(tmp_path).cluster.metadata_log
    assert metadata_log is not None
    (written,) = metadata_log.image.topics[T].partitions.values()
    assert (written.eligible_leader_replicas, written.last_known_elr) == (None, None)


@pytest.mark.parametrize(
    ("record", "named"),
    [
        pytest.param(
            ConfigRecord(resource_type=2, resource_name="t", name="new.in.kafka.5", value="1"),
            "topic t new.in.kafka.5",
            id="a config of a topic that nobody knows",
        ),
        pytest.param(
            ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="forever"),
            "topic t retention.ms",
            id="a value that nobody understands",
        ),
        pytest.param(
            ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
            "broker <default> log.cleaner.threads",
            id="a config of all brokers that cannot be altered here",
        ),
        pytest.param(
            ConfigRecord(resource_type=4, resource_name="1", name="log.cleaner.threads", value="2"),
            "broker 1 log.cleaner.threads",
            id="one of this broker",
        ),
        pytest.param(
            ConfigRecord(resource_type=32, resource_name="g", name="share.isolation.level", value="read_committed"),
            "group g share.isolation.level",
            id="one of a kind of group that is not served",
        ),
        pytest.param(
            ConfigRecord(resource_type=16, resource_name="s", name="what", value="?"),
            "client-metrics s what",
            id="one of a subscription",
        ),
        pytest.param(
            ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name="u")], key="flow_rate", value=1.0),
            "quota user=u flow_rate",
            id="a quota that nobody knows",
        ),
        pytest.param(
            AccessControlEntryRecord(
                id=T, resource_type=9, resource_name="r", pattern_type=3, principal="User:u", operation=3
            ),
            "ACL of User:u on r",
            id="an ACL on a type of resource that nobody knows",
        ),
        pytest.param(
            UserScramCredentialRecord(name="u", mechanism=3),
            "SCRAM credential of u, mechanism 3",
            id="a credential of a mechanism that nobody knows",
        ),
    ],
)
def test_what_has_no_effect_is_named_and_kept(
    record: MetadataMessage, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, *partition(replicas=[1], isr=[1], leader=1), record)
    broker = start(tmp_path)
    (line,) = caplog.records
    assert line.message == "settings in the data directory without effect"
    assert vars(line)["settings"] == named
    metadata_log = broker.cluster.metadata_log
    assert metadata_log is not None
    assert record in list(metadata_log.image.records())
    assert broker.cluster.topics["t"].config.own == {}


def test_configs_of_a_broker_that_is_not_here_stay_with_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = ConfigRecord(resource_type=4, resource_name="7", name="message.max.bytes", value="5")
    write(tmp_path, record)
    broker = start(tmp_path)
    assert not caplog.records
    assert known(broker)["brokers"] == {}


def test_brokers_register_with_each_start(tmp_path: Path) -> None:
    listeners = "listeners=PLAINTEXT://127.0.0.1:0"
    first = start(tmp_path, "sluice.brokers=2", listeners).cluster.metadata_log
    second = start(tmp_path, "sluice.brokers=2", listeners).cluster.metadata_log
    assert first is not None
    assert second is not None
    assert list(second.image.brokers) == [1, 2]
    for node_id, registration in second.image.brokers.items():
        assert not registration.fenced
        assert registration.log_dirs == [DIRECTORY_ID]
        assert [(one.name, one.host, one.port) for one in registration.end_points] == [("PLAINTEXT", "127.0.0.1", 0)]
        assert registration.broker_epoch > first.image.brokers[node_id].broker_epoch


def test_a_log_that_cannot_be_written_is_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.controller.metadata_log.metadata_log.MetadataLog.append", lambda *_: 56)
    with pytest.raises(SluiceError) as caught:
        start(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot write the metadata log; check its permissions and disk space"
