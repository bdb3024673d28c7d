"""Every call of the admin client against real brokers, in virtual time."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sluice import Broker
from sluice.broker.exchange.registry import HANDLERS
from sluice.client import errors
from sluice.client.admin import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Acl,
    AclFilter,
    AdminClient,
    Alteration,
    AlterOperation,
    ConfigResource,
    FeatureChange,
    NewTopic,
    OffsetAndMetadata,
    ResourceType,
    ScramMechanism,
    TopicPartition,
    quota_entity,
)
from sluice.client.admin import admin as admin_module
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.describe_client_quotas import ComponentData

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@asynccontextmanager
async def cluster(*, brokers: int = 1, **config: str) -> AsyncIterator[tuple[AdminClient, Broker]]:
    """Start brokers with an admin client; config names have underscores in place of dots."""
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    async with (
        Broker(brokers=brokers, config=dotted) as broker,
        AdminClient({"bootstrap.servers": broker.bootstrap}) as admin,
    ):
        yield admin, broker


def test_invalid_config_is_rejected_before_connecting() -> None:
    with pytest.raises(Exception, match=r"admin: linger\.ms: no such property"):
        AdminClient({"bootstrap.servers": "a:9092", "linger.ms": 5})


async def test_describe_cluster() -> None:
    async with cluster(brokers=2) as (admin, broker):
        described = await admin.describe_cluster()
        assert {found.broker_id: f"{found.host}:{found.port}" for found in described.brokers} == broker.brokers
        assert len((await admin.describe_cluster(include_fenced_brokers=True)).brokers) == 2
        assert "transaction.version" in await admin.describe_features()


async def test_features() -> None:
    async with cluster(brokers=2) as (admin, _):
        before = await admin.describe_features()
        off = {"share.version": 0}
        with pytest.raises(errors.InvalidUpdateVersionException):
            await admin.update_features(off)
        await admin.update_features(off, change=FeatureChange.SAFE_DOWNGRADE, validate_only=True)
        assert await admin.describe_features() == before
        await admin.update_features(off, change=FeatureChange.SAFE_DOWNGRADE)
        assert "share.version" not in await admin.describe_features()
        await admin.update_features({"share.version": 1})
        assert await admin.describe_features() == {**before, "share.version": 1}


async def test_quorum_and_unregistered_brokers() -> None:
    async with cluster(brokers=2) as (admin, _):
        quorum = await admin.describe_metadata_quorum()
        assert quorum.leader_id in {voter.replica_id for voter in quorum.current_voters}
        with pytest.raises(errors.BrokerIdNotRegisteredException):
            await admin.unregister_broker(9)
        await admin.unregister_broker(2)
        assert [found.broker_id for found in (await admin.describe_cluster()).brokers] == [1]


async def test_create_describe_and_delete_topics() -> None:
    async with cluster(brokers=2) as (admin, _):
        created = await admin.create_topics(
            [NewTopic("t", 2, 1, {"retention.ms": "1000"}), NewTopic("u", assignments={0: [2, 1]}), NewTopic("no way")]
        )
        assert created["t"].num_partitions == 2
        assert list(created.errors()) == ["no way"]
        assert isinstance(created.errors()["no way"], errors.InvalidTopicException)
        (await admin.create_topics([NewTopic("v", 1, 1)], validate_only=True)).all()
        assert sorted(await admin.list_topics()) == ["t", "u"]
        described = await admin.describe_topics(["u", "t", "nowhere"])
        assert [partition.replica_nodes for partition in described["u"].partitions] == [[2, 1]]
        assert list(described.errors()) == ["nowhere"]
        (await admin.create_partitions({"t": 3})).all()
        assert len((await admin.describe_topics(["t"]))["t"].partitions) == 3
        (await admin.create_partitions({"t": 4}, assignments={"t": [[1]]}, validate_only=True)).all()
        for counts, replicas in ({"t": 1}, None), ({"t": 4}, {"t": [[7]]}):  # fewer, and on an unknown broker
            assert list((await admin.create_partitions(counts, assignments=replicas)).errors()) == ["t"]
        (await admin.delete_topics(["t", "u"])).all()
        assert await admin.list_topics() == {}
        assert list((await admin.delete_topics(["t"])).errors()) == ["t"]


async def test_topics_are_described_in_pages() -> None:
    async with cluster(max_request_partition_size_limit="2") as (admin, _):
        (await admin.create_topics([NewTopic("t", 5, 1), NewTopic("u", 3, 1)])).all()
        described = (await admin.describe_topics(["t", "u"])).all()
        counts = {name: len(topic.partitions) for name, topic in described.items()}
        assert counts == {"t": 5, "u": 3}


async def test_old_brokers_describe_topics_through_metadata() -> None:
    async with cluster(sluice_kafka_release="kafka-2.8") as (admin, _):
        (await admin.create_topics([NewTopic("t", 2, 1)])).all()
        described = await admin.describe_topics(["t", "nowhere"])
        assert len(described["t"].partitions) == 2
        assert list(described.errors()) == ["nowhere"]
        (await admin.delete_topics(["t"])).all()


async def test_create_partitions_and_elect_leaders() -> None:
    async with cluster(brokers=2) as (admin, broker):
        (await admin.create_topics([NewTopic("t", assignments={0: [1, 2], 1: [2, 1]})])).all()
        offsets = await admin.list_offsets({T0: LATEST, T1: EARLIEST})
        assert [offsets[partition].offset for partition in (T0, T1)] == [0, 0]
        assert (await admin.list_offsets({T0: MAX_TIMESTAMP}, read_committed=True))[T0].offset == -1
        assert (await admin.delete_records({T0: -1, T1: 0})).all() == {T0: 0, T1: 0}
        outcomes = await admin.delete_records({T0: 5})
        assert isinstance(outcomes.errors()[T0], errors.OffsetOutOfRangeException)
        await broker.cluster.move_leader("t", 0, 2)
        (await admin.elect_leaders([T0])).all()
        assert broker.cluster.partition("t", 0).leader == 1
        assert isinstance((await admin.elect_leaders([T0])).errors()[T0], errors.ElectionNotNeededException)
        assert len(await admin.elect_leaders()) == 0
        (await admin.alter_partition_reassignments({T0: [2]})).all()
        await asyncio.sleep(5)
        assert await admin.list_partition_reassignments() == {}
        assert await admin.list_partition_reassignments([T0]) == {}
        assert broker.cluster.partition("t", 0).replicas == (2,)
        assert list((await admin.alter_partition_reassignments({T0: None})).errors()) == [T0]


async def test_describe_and_alter_configs() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([NewTopic("t", 1, 1)])).all()
        broker = ConfigResource(ResourceType.BROKER, "2")
        nowhere = ConfigResource(ResourceType.TOPIC, "nowhere")
        changed = await admin.incremental_alter_configs(
            {
                TOPIC: [
                    Alteration("retention.ms", "5000"),
                    Alteration("cleanup.policy", "compact", AlterOperation.APPEND),
                ],
                broker: [Alteration("log.retention.ms", "7000")],
                nowhere: [Alteration("retention.ms", "5000")],
            }
        )
        assert list(changed.errors()) == [nowhere]
        described = await admin.describe_configs([TOPIC, broker], include_synonyms=True, include_documentation=True)
        values = {config.name: config.value for config in described[TOPIC]}
        assert (values["retention.ms"], values["cleanup.policy"]) == ("5000", "delete,compact")
        assert {config.name: config.value for config in described[broker]}["log.retention.ms"] == "7000"
        (await admin.alter_configs({TOPIC: {"retention.bytes": "9"}})).all()
        described = await admin.describe_configs([TOPIC])
        values = {config.name: config.value for config in described[TOPIC]}
        assert (values["retention.ms"], values["retention.bytes"]) != ("5000", "9")
        assert values["retention.bytes"] == "9"
        (await admin.incremental_alter_configs({TOPIC: [Alteration("retention.ms", "1")]}, validate_only=True)).all()
        assert TOPIC in await admin.list_config_resources([ResourceType.TOPIC])
        assert len(await admin.list_config_resources()) > 1


async def test_log_directories() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([NewTopic("t", 2, 2)])).all()
        folders = (await admin.describe_log_dirs([1, 2])).all()
        assert list(folders) == [1, 2]
        found = [topic.name for folder in folders[1] for topic in folder.topics]
        assert found == ["t"]
        path = folders[2][0].log_dir
        (await admin.alter_replica_log_dirs({(2, T0): path})).all()
        outcomes = await admin.alter_replica_log_dirs({(1, T0): "/nowhere"})
        assert list(outcomes.errors()) == [(1, T0)]


async def test_consumer_group_offsets() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([NewTopic("t", 2, 1)])).all()
        committed = OffsetAndMetadata(7, "seven")
        (await admin.alter_consumer_group_offsets("g", {T0: committed})).all()
        assert await admin.list_consumer_group_offsets("g") == {T0: committed}
        some = await admin.list_consumer_group_offsets("g", [T0, T1], require_stable=True)
        assert some == {T0: committed, T1: None}
        groups = await admin.list_groups()
        assert list(groups) == ["g"]
        assert list(await admin.list_groups(states=["Empty"], types=["classic"])) == ["g"]
        assert await admin.list_groups(states=["Stable"]) == {}
        described = (await admin.describe_classic_groups(["g"]))["g"]
        assert (described.group_state, described.members) == ("Empty", [])
        assert isinstance((await admin.describe_consumer_groups(["g"])).errors()["g"], errors.GroupIdNotFoundException)
        (await admin.delete_consumer_group_offsets("g", [T0])).all()
        assert await admin.list_consumer_group_offsets("g") == {}
        (await admin.alter_consumer_group_offsets("g", {T0: committed})).all()
        (await admin.delete_groups(["g"])).all()
        assert list((await admin.delete_groups(["g"])).errors()) == ["g"]
        removed = await admin.remove_members_from_consumer_group("g", ["i"], reason="test")
        assert isinstance(removed.errors()["i"], errors.UnknownMemberIdException)


async def test_share_group_offsets() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([NewTopic("t", 2, 1)])).all()
        altered = await admin.alter_share_group_offsets("g", {T0: 7, TopicPartition("t", 9): 1})
        assert list(altered.errors()) == [TopicPartition("t", 9)]
        assert [one.start_offset for one in (await admin.list_share_group_offsets("g")).all().values()] == [7]
        some = (await admin.list_share_group_offsets("g", [T0, T1])).all()
        assert {at: one.start_offset for at, one in some.items()} == {T0: 7, T1: -1}
        assert (await admin.describe_share_groups(["g"]))["g"].group_state == "Empty"
        assert list(await admin.list_groups(types=["share"])) == ["g"]
        assert list((await admin.delete_share_group_offsets("g", ["t", "u"])).errors()) == ["u"]
        assert (await admin.list_share_group_offsets("g")).all() == {}
        (await admin.delete_groups(["g"])).all()
        assert isinstance((await admin.describe_share_groups(["g"])).errors()["g"], errors.GroupIdNotFoundException)
        assert isinstance((await admin.describe_streams_groups(["g"])).errors()["g"], errors.GroupIdNotFoundException)


async def test_old_brokers_accept_one_group_per_request() -> None:
    async with cluster(sluice_kafka_release="kafka-2.8") as (admin, _):
        (await admin.create_topics([NewTopic("t", 2, 1)])).all()
        committed = OffsetAndMetadata(7, "seven")
        (await admin.alter_consumer_group_offsets("g", {T0: committed})).all()
        assert await admin.list_consumer_group_offsets("g", [T0, T1]) == {T0: committed, T1: None}
        assert await admin.list_consumer_group_offsets("g") == {T0: committed}


async def test_acls() -> None:
    async with cluster(
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer", super_users="User:ANONYMOUS"
    ) as (admin, _):
        read, write = (Acl(2, "t", "User:alice", operation) for operation in (3, 4))
        (await admin.create_acls([read, write])).all()
        (resource,) = await admin.describe_acls(AclFilter(principal="User:alice"))
        assert (resource.resource_name, resource.pattern_type) == ("t", 3), "the default pattern type is literal"
        assert [acl.operation for acl in resource.acls] == [3, 4]
        meant = AclFilter(operation=3)
        deleted = (await admin.delete_acls([meant]))[meant]
        assert [acl.operation for acl in deleted] == [3]
        assert len(await admin.describe_acls()) == 1


async def test_quotas() -> None:
    async with cluster() as (admin, _):
        alice, everyone = quota_entity(user="alice", client_id="shop"), quota_entity(client_id=None)
        limits = {"producer_byte_rate": 1000.0}
        (await admin.alter_client_quotas({alice: limits, everyone: limits})).all()
        (await admin.alter_client_quotas({alice: {"producer_byte_rate": 5.0}}, validate_only=True)).all()
        assert await admin.describe_client_quotas() == {alice: limits, everyone: limits}
        of_users = ComponentData(entity_type="user", match_type=2, match=None)
        assert list(await admin.describe_client_quotas([of_users])) == [alice]
        (await admin.alter_client_quotas({alice: {"producer_byte_rate": None}})).all()
        assert list(await admin.describe_client_quotas()) == [everyone]


async def test_scram_credentials() -> None:
    async with cluster() as (admin, _):
        for mechanism in ScramMechanism:  # a broker accepts one change per user and request
            (await admin.alter_user_scram_credentials({("alice", mechanism): "secret"})).all()
        found = await admin.describe_user_scram_credentials()
        assert [info.mechanism for info in found["alice"]] == [1, 2]
        (await admin.alter_user_scram_credentials({("alice", ScramMechanism.SCRAM_SHA_256): None})).all()
        found = await admin.describe_user_scram_credentials(["alice", "bob"])
        assert [info.iterations for info in found["alice"]] == [4096]
        assert list(found.errors()) == ["bob"]


async def test_transactions() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([NewTopic("t", 1, 1)])).all()
        assert await admin.list_transactions() == {}
        producer_id, epoch = (await admin.fence_producers(["tx"]))["tx"]
        assert (await admin.fence_producers(["tx"]))["tx"] == (producer_id, epoch + 1)
        state = (await admin.describe_transactions(["tx"]))["tx"]
        assert (state.producer_id, state.transaction_state) == (producer_id, "Empty")
        assert list(await admin.list_transactions(states=["Empty"], producer_ids=[producer_id])) == ["tx"]
        assert list(await admin.list_transactions(longer_than_ms=1000, id_pattern="t.*")) == ["tx"]
        assert await admin.list_transactions(id_pattern="u.*") == {}
        assert list((await admin.describe_transactions(["nowhere"])).errors()) == ["nowhere"]
        assert (await admin.describe_producers([T0]))[T0] == []
        await admin.abort_transaction(T0, producer_id=producer_id, producer_epoch=9, coordinator_epoch=-1)
        with pytest.raises(errors.InvalidProducerEpochException):
            await admin.abort_transaction(T0, producer_id=producer_id, producer_epoch=8, coordinator_epoch=-1)


def test_every_served_admin_api_has_a_call() -> None:
    """Compare with the responses that the admin client's modules name."""
    folder = Path(admin_module.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    not_an_admins = {
        "Produce", "Fetch", "JoinGroup", "Heartbeat", "SyncGroup", "SaslHandshake", "SaslAuthenticate",
        "OffsetForLeaderEpoch", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit",
        "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ShareFetch", "ShareAcknowledge",
        "StreamsGroupTopologyDescriptionUpdate", "GetTelemetrySubscriptions", "PushTelemetry",
    }  # fmt: skip
    named = set(re.findall(r"\b(\w+)Response\b", text))
    missing = {API_KEYS[key].name for key in HANDLERS} - named
    assert missing == not_an_admins
