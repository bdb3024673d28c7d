"""Metadata changes are appended to the metadata log before they are applied; a failed append fails the change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice.broker.metadata.topic import PartitionState
from sluice.broker.security.acl.acl import AclOperation
from sluice.broker.security.sasl.scram_credentials import ScramMechanism, credential
from sluice.broker.server.metadata_restore import _state
from sluice.protocol.apis import alter_user_scram_credentials as api
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.alter_configs import AlterableConfig as OldConfig
from sluice.protocol.apis.alter_configs import AlterConfigsRequest
from sluice.protocol.apis.alter_configs import AlterConfigsResource as OldResource
from sluice.protocol.apis.create_acls import AclCreation, CreateAclsRequest
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sluice.protocol.apis.delete_acls import DeleteAclsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.metadata import security
from sluice.protocol.metadata.log import ProducerIdsRecord
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.settings import ClientQuotaRecord, FeatureLevelRecord
from sluice.protocol.metadata.settings import EntityData as QuotaEntityData
from sluice.protocol.metadata.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.support.acls import ANONYMOUS_MAY_ALL, AUTHORIZER_ON, acl
from tests.support.configs import config_changes
from tests.support.virtual_broker import VirtualBroker
from tests.unit.broker.controller.metadata_log.cluster_metadata import (
    DIRECTORY_ID,
    durable_state,
    log_of,
    partition_states,
    start,
)
from tests.unit.broker.controller.metadata_log.logs import config

BuildRecords = Callable[[VirtualBroker], MetadataMessage | list[MetadataMessage]]


ACL_ID = b"0123456789abcdef"
SALTED_PASSWORD = bytes(32)
CREDENTIAL = credential(ScramMechanism.SCRAM_SHA_256, b"salt", SALTED_PASSWORD, 4096)


def set_config(kind: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    return config_changes(kind, name, {key: value})


def partition(broker: VirtualBroker, topic: str, index: int, replicas: list[int]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=broker.cluster.topics[topic].topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[DIRECTORY_ID] * len(replicas),
    )


def new_topic(name: str, partitions: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


# The version of each request, and the field of the response with the error codes; empty if the response has one.
RESPONSES: dict[type[Message], tuple[int, str]] = {
    AlterClientQuotasRequest: (1, "entries"),
    AlterConfigsRequest: (2, "responses"),
    api.AlterUserScramCredentialsRequest: (0, "results"),
    CreateAclsRequest: (3, "results"),
    CreatePartitionsRequest: (3, "results"),
    CreateTopicsRequest: (7, "topics"),
    DeleteAclsRequest: (3, "filter_results"),
    DeleteTopicsRequest: (5, "responses"),
    IncrementalAlterConfigsRequest: (1, "responses"),
    InitProducerIdRequest: (4, ""),
    MetadataRequest: (9, "topics"),
    UpdateFeaturesRequest: (2, ""),
}


def recorded(*setting: Any) -> BuildRecords:
    return lambda _: config(*setting)


# Request, and the expected records.
CHANGES: dict[str, tuple[Message, BuildRecords]] = {
    "a topic is created": (
        CreateTopicsRequest(topics=[new_topic("n", 2, retention_ms="5", cleanup_policy="compact")]),
        lambda broker: [
            TopicRecord(name="n", topic_id=broker.cluster.topics["n"].topic_id),
            config(2, "n", "cleanup.policy", "compact"),
            config(2, "n", "retention.ms", "5"),
            partition(broker, "n", 0, [1]),
            partition(broker, "n", 1, [1]),
        ],
    ),
    "a topic is created automatically for a metadata request": (
        MetadataRequest(topics=[MetadataRequestTopic(name="n")], allow_auto_topic_creation=True),
        lambda broker: [
            TopicRecord(name="n", topic_id=broker.cluster.topics["n"].topic_id),
            partition(broker, "n", 0, [1]),
        ],
    ),
    "partitions are added to a topic": (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1000),
        lambda broker: [partition(broker, "t", 1, [1]), partition(broker, "t", 2, [1])],
    ),
    "a topic is deleted": (DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), lambda broker: RemoveTopicRecord()),
    "configs are replaced: one set, one removed": (
        AlterConfigsRequest(
            resources=[
                OldResource(resource_type=2, resource_name="t", configs=[OldConfig(name="retention.ms", value="8")])
            ]
        ),
        lambda _: [config(2, "t", "cleanup.policy", None), config(2, "t", "retention.ms", "8")],
    ),
    **{
        f"a {title} is set": (set_config(*setting), recorded(*setting))
        for title, setting in (
            ("config of a topic", (2, "t", "retention.ms", "7")),
            ("config of all brokers", (4, "", "message.max.bytes", "70000")),
            ("config of one broker", (4, "1", "message.max.bytes", "70000")),
            ("config of a group", (32, "g", "consumer.session.timeout.ms", "50000")),
            ("client metrics subscription", (16, "s", "interval.ms", "60000")),
        )
    },
    "quotas of an entity are set and removed": (
        AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        EntityData(entity_type="user", entity_name="u"),
                        EntityData(entity_type="client-id", entity_name=None),
                    ],
                    ops=[OpData(key="producer_byte_rate", value=5.0), OpData(key="request_percentage", remove=True)],
                )
            ]
        ),
        lambda _: ClientQuotaRecord(
            entity=[
                QuotaEntityData(entity_type="client-id", entity_name=None),
                QuotaEntityData(entity_type="user", entity_name="u"),
            ],
            key="producer_byte_rate",
            value=5.0,
        ),
    ),
    "an ACL is created": (
        CreateAclsRequest(creations=[AclCreation(2, "t", 4, "User:alice", "*", 3, 3)]),
        lambda broker: security.AccessControlEntryRecord(
            id=next(acl_id for acl_id, acl in broker.cluster.acls.items() if acl.resource_name == "t"),
            resource_type=2,
            resource_name="t",
            pattern_type=4,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
    ),
    "ACLs are deleted": (
        DeleteAclsRequest(filters=[DescribeAclsRequest(1, "gone", 1, None, None, 1, 1)]),
        lambda _: security.RemoveAccessControlEntryRecord(id=ACL_ID),
    ),
    "a SCRAM credential is created": (
        api.AlterUserScramCredentialsRequest(
            upsertions=[
                api.ScramCredentialUpsertion(
                    name="u", mechanism=1, iterations=4096, salt=b"salt", salted_password=SALTED_PASSWORD
                )
            ]
        ),
        lambda _: security.UserScramCredentialRecord(
            name="u",
            mechanism=1,
            salt=b"salt",
            stored_key=CREDENTIAL.stored_key,
            server_key=CREDENTIAL.server_key,
            iterations=4096,
        ),
    ),
    "a SCRAM credential is deleted": (
        api.AlterUserScramCredentialsRequest(deletions=[api.ScramCredentialDeletion(name="loser", mechanism=1)]),
        lambda _: security.RemoveUserScramCredentialRecord(name="loser", mechanism=1),
    ),
    "a feature is disabled": (
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)]
        ),
        lambda _: FeatureLevelRecord(name="group.version", feature_level=0),
    ),
    "a block of producer ids is allocated": (
        InitProducerIdRequest(transactional_id=None),
        lambda broker: ProducerIdsRecord(broker_id=1, broker_epoch=epoch_of(broker), next_producer_id=1000),
    ),
}
each_change = pytest.mark.parametrize(("request_", "build_records"), CHANGES.values(), ids=CHANGES)


@pytest.fixture
def broker(tmp_path: Path) -> VirtualBroker:
    """Return a broker with a topic, an ACL on another topic, and a SCRAM user."""
    broker = start(tmp_path, AUTHORIZER_ON, ANONYMOUS_MAY_ALL)
    broker.topic(cleanup_policy="compact")
    metadata_log = log_of(broker)
    entry = acl(AclOperation.READ, name="gone")
    assert not metadata_log.acls_changed([(ACL_ID, entry)], ())
    broker.cluster.acls.add(ACL_ID, entry)
    assert not metadata_log.scram_credential_set("loser", ScramMechanism.SCRAM_SHA_256, CREDENTIAL)
    broker.cluster.scram_credentials.put("loser", ScramMechanism.SCRAM_SHA_256, CREDENTIAL)
    return broker


def epoch_of(broker: VirtualBroker) -> int:
    return log_of(broker).image.brokers[1].broker_epoch


def errors(broker: VirtualBroker, request: Message) -> list[int]:
    version, results = RESPONSES[type(request)]
    response = broker.client().call(request, version)
    return [one.error_code for one in (getattr(response, results) if results else [response])]


def code_of(request: Message, code: ErrorCode = ErrorCode.NONE) -> ErrorCode:
    """Return the expected error code; a Metadata response never contains the outcome of a creation."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(request, MetadataRequest) else code


@contextmanager
def appended(broker: VirtualBroker, error: ErrorCode | None = None) -> Iterator[list[list[MetadataMessage]]]:
    """Collect the appended batches; if `error` is set, fail the appends with it."""
    log = log_of(broker)
    collected: list[list[MetadataMessage]] = []
    append = log._log.append

    def watched(messages: list[MetadataMessage]) -> ErrorCode:
        collected.append(list(messages))
        return append(messages) if error is None else error

    log._log.append = watched  # type: ignore[method-assign,assignment]  # for the duration of a request
    yield collected
    log._log.append = append  # type: ignore[method-assign]


@each_change
def test_change_is_written_with_kafkas_records(
    broker: VirtualBroker, tmp_path: Path, request_: Message, build_records: BuildRecords
) -> None:
    deleted = broker.cluster.topics["t"].topic_id
    with appended(broker) as batches:
        assert errors(broker, request_) == [code_of(request_)]
    expected = build_records(broker)
    if isinstance(expected, RemoveTopicRecord):
        expected.topic_id = deleted
    assert batches == [expected if isinstance(expected, list) else [expected]]
    assert durable_state(start(tmp_path)) == durable_state(broker), "the change is durable"


@each_change
def test_change_that_cannot_be_written_fails_and_is_not_applied(
    broker: VirtualBroker, tmp_path: Path, request_: Message, build_records: BuildRecords
) -> None:
    before = durable_state(broker)
    with appended(broker, ErrorCode.KAFKA_STORAGE_ERROR):
        assert errors(broker, request_) == [code_of(request_, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert durable_state(broker) == before
    assert durable_state(start(tmp_path)) == before
    assert errors(broker, request_) == [code_of(request_)], "the change succeeds once the log is writable"


WITHOUT_EFFECT = {
    "validate only": CreateTopicsRequest(topics=[new_topic("n")], validate_only=True),
    "rejected": CreateTopicsRequest(topics=[new_topic("t")]),
    "unchanged config value": set_config(2, "t", "cleanup.policy", "compact"),
}


@pytest.mark.parametrize("request_", WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_request_without_effect_is_not_written(broker: VirtualBroker, request_: Message) -> None:
    with appended(broker) as batches:
        errors(broker, request_)
    assert batches == []


def test_producer_id_block_is_not_reused_after_a_restart(broker: VirtualBroker, tmp_path: Path) -> None:
    with appended(broker) as batches:
        ids = [broker.client().call(InitProducerIdRequest(transactional_id=None), 4).producer_id for _ in range(3)]
    assert ids == [0, 1, 2]
    assert [len(batch) for batch in batches] == [1]
    again = start(tmp_path)
    assert again.client().call(InitProducerIdRequest(transactional_id=None), 4).producer_id == 1000, (
        "allocated producer ids are not reused"
    )


def test_replicated_partitions_are_written_with_their_replicas(tmp_path: Path) -> None:
    broker = start(tmp_path, "sluice.brokers=3")
    with appended(broker) as batches:
        broker.topic("n", 3, 2)
    (batch,) = batches
    partitions = [record for record in batch if isinstance(record, PartitionRecord)]
    assert [record.leader for record in partitions] == [record.replicas[0] for record in partitions]
    assert all(len(record.replicas) == len(record.directories) == 2 for record in partitions)
    assert durable_state(start(tmp_path, "sluice.brokers=3")) == durable_state(broker)


class TestPartitionsOfAStoppedBroker:
    """All changes are one batch, and the log agrees with memory."""

    @pytest.fixture
    def broker(self, tmp_path: Path) -> VirtualBroker:
        """Return three brokers with a topic of five partitions."""
        broker = start(tmp_path, "sluice.brokers=3", "sluice.election.delay.ms=0")
        broker.topic("n", 5, 2)
        return broker

    def test_leaders_change_in_one_batch(self, broker: VirtualBroker) -> None:
        before = partition_states(broker, "n")
        with appended(broker) as batches:
            broker.cluster_server.stop_broker(2)
            broker.advance(1)
        after = partition_states(broker, "n")
        of_broker_2 = [state for state in before if 2 in state.replicas]
        assert [len(batch) for batch in batches] == [len(of_broker_2)]
        assert all(state.leader != 2 for state in after)
        assert written(broker, "n") == after

    def test_changes_precede_later_records(self, broker: VirtualBroker) -> None:
        with appended(broker) as batches:
            broker.cluster_server.stop_broker(2)
            broker.topic("later")
        changes, later = batches
        assert {type(record) for record in changes} == {PartitionChangeRecord}
        assert isinstance(later[0], TopicRecord)

    def test_deleted_partitions_are_not_written(self, broker: VirtualBroker) -> None:
        broker.cluster_server.stop_broker(2)
        assert not broker.broker.delete_topic(broker.cluster.topics["n"])
        with appended(broker) as batches:
            broker.advance(1)
        assert batches == []

    def test_leaders_change_though_the_log_fails_and_are_written_later(self, broker: VirtualBroker) -> None:
        with appended(broker, ErrorCode.KAFKA_STORAGE_ERROR):
            broker.cluster_server.stop_broker(2)
            broker.advance(1)
        assert all(state.leader != 2 for state in partition_states(broker, "n"))
        assert written(broker, "n") != partition_states(broker, "n")
        broker.run(broker.cluster_server.start_broker(2))
        broker.cluster_server.stop_broker(3)
        broker.advance(60_000)
        assert written(broker, "n") == partition_states(broker, "n")

    def test_replicas_are_kept_and_leader_epochs_rise_after_a_restart(
        self, broker: VirtualBroker, tmp_path: Path
    ) -> None:
        broker.cluster_server.stop_broker(2)
        broker.advance(1)
        before = partition_states(broker, "n")
        after = partition_states(start(tmp_path, "sluice.brokers=3"), "n")
        assert [state.replicas for state in after] == [state.replicas for state in before]
        assert [state.leader_epoch for state in after] == [state.leader_epoch + 1 for state in before]


def written(broker: VirtualBroker, topic: str) -> list[PartitionState]:
    partitions = log_of(broker).image.topics[broker.cluster.topics[topic].topic_id].partitions
    return [_state(partitions[index]) for index in sorted(partitions)]
