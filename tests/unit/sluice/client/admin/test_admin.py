"""Every call of the admin client against real brokers, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sluice import Broker
from sluice.client import admin as api
from sluice.client import errors
from sluice.protocol.apis.describe_client_quotas import ComponentData

T0, T1 = api.TopicPartition("t", 0), api.TopicPartition("t", 1)
TOPIC = api.ConfigResource(api.ResourceType.TOPIC, "t")


@asynccontextmanager
async def cluster(*, brokers: int = 1, **config: str) -> AsyncIterator[tuple[api.AdminClient, Broker]]:
    """Start brokers with an admin client; config names have underscores in place of dots."""
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    async with (
        Broker(brokers=brokers, config=dotted) as broker,
        api.AdminClient({"bootstrap.servers": broker.bootstrap}) as admin,
    ):
        yield admin, broker


def test_invalid_config_is_rejected_before_connecting() -> None:
    with pytest.raises(Exception, match=r"admin: linger\.ms: no such property"):
        api.AdminClient({"bootstrap.servers": "a:9092", "linger.ms": 5})


async def test_describe_cluster() -> None:
    async with cluster(brokers=2) as (admin, broker):
        described = await admin.describe_cluster()
        assert {found.broker_id: f"{found.host}:{found.port}" for found in described.brokers} == broker.brokers
        assert len((await admin.describe_cluster(include_fenced_brokers=True)).brokers) == 2


async def test_create_describe_and_delete_topics() -> None:
    async with cluster(brokers=2) as (admin, _):
        created = await admin.create_topics(
            [
                api.NewTopic("t", 2, 1, {"retention.ms": "1000"}),
                api.NewTopic("u", assignments={0: [2, 1]}),
                api.NewTopic("no way"),
            ]
        )
        assert created["t"].num_partitions == 2
        assert list(created.errors()) == ["no way"]
        assert isinstance(created.errors()["no way"], errors.InvalidTopicException)
        (await admin.create_topics([api.NewTopic("v", 1, 1)], validate_only=True)).all()
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
        (await admin.create_topics([api.NewTopic("t", 5, 1), api.NewTopic("u", 3, 1)])).all()
        described = (await admin.describe_topics(["t", "u"])).all()
        counts = {name: len(topic.partitions) for name, topic in described.items()}
        assert counts == {"t": 5, "u": 3}


async def test_old_brokers_describe_topics_through_metadata() -> None:
    async with cluster(sluice_kafka_release="kafka-2.8") as (admin, _):
        (await admin.create_topics([api.NewTopic("t", 2, 1)])).all()
        described = await admin.describe_topics(["t", "nowhere"])
        assert len(described["t"].partitions) == 2
        assert list(described.errors()) == ["nowhere"]
        (await admin.delete_topics(["t"])).all()


async def test_offsets_and_deleted_records() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([api.NewTopic("t", assignments={0: [1, 2], 1: [2, 1]})])).all()
        offsets = await admin.list_offsets({T0: api.LATEST, T1: api.EARLIEST})
        assert [offsets[partition].offset for partition in (T0, T1)] == [0, 0]
        assert (await admin.list_offsets({T0: api.MAX_TIMESTAMP}, read_committed=True))[T0].offset == -1
        assert (await admin.delete_records({T0: -1, T1: 0})).all() == {T0: 0, T1: 0}
        outcomes = await admin.delete_records({T0: 5})
        assert isinstance(outcomes.errors()[T0], errors.OffsetOutOfRangeException)


async def test_describe_and_alter_configs() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([api.NewTopic("t", 1, 1)])).all()
        broker = api.ConfigResource(api.ResourceType.BROKER, "2")
        nowhere = api.ConfigResource(api.ResourceType.TOPIC, "nowhere")
        changed = await admin.incremental_alter_configs(
            {
                TOPIC: [
                    api.Alteration("retention.ms", "5000"),
                    api.Alteration("cleanup.policy", "compact", api.AlterOperation.APPEND),
                ],
                broker: [api.Alteration("log.retention.ms", "7000")],
                nowhere: [api.Alteration("retention.ms", "5000")],
            }
        )
        assert list(changed.errors()) == [nowhere]
        described = await admin.describe_configs([TOPIC, broker], include_synonyms=True, include_documentation=True)
        values = {config.name: config.value for config in described[TOPIC]}
        assert (values["retention.ms"], values["cleanup.policy"]) == ("5000", "delete,compact")
        assert {config.name: config.value for config in described[broker]}["log.retention.ms"] == "7000"
        (
            await admin.incremental_alter_configs({TOPIC: [api.Alteration("retention.ms", "1")]}, validate_only=True)
        ).all()


async def test_consumer_group_offsets() -> None:
    async with cluster(brokers=2) as (admin, _):
        (await admin.create_topics([api.NewTopic("t", 2, 1)])).all()
        committed = api.OffsetAndMetadata(7, "seven")
        (await admin.alter_consumer_group_offsets("g", {T0: committed})).all()
        assert await admin.list_consumer_group_offsets("g") == {T0: committed}
        some = await admin.list_consumer_group_offsets("g", [T0, T1], require_stable=True)
        assert some == {T0: committed, T1: None}
        groups = await admin.list_groups()
        assert list(groups) == ["g"]
        described = (await admin.describe_classic_groups(["g"]))["g"]
        assert (described.group_state, described.members) == ("Empty", [])
        (await admin.delete_groups(["g"])).all()
        assert list((await admin.delete_groups(["g"])).errors()) == ["g"]


async def test_old_brokers_accept_one_group_per_request() -> None:
    async with cluster(sluice_kafka_release="kafka-2.8") as (admin, _):
        (await admin.create_topics([api.NewTopic("t", 2, 1)])).all()
        committed = api.OffsetAndMetadata(7, "seven")
        (await admin.alter_consumer_group_offsets("g", {T0: committed})).all()
        assert await admin.list_consumer_group_offsets("g", [T0, T1]) == {T0: committed, T1: None}
        assert await admin.list_consumer_group_offsets("g") == {T0: committed}


async def test_quotas() -> None:
    async with cluster() as (admin, _):
        alice, everyone = api.quota_entity(user="alice", client_id="shop"), api.quota_entity(client_id=None)
        limits = {"producer_byte_rate": 1000.0}
        (await admin.alter_client_quotas({alice: limits, everyone: limits})).all()
        (await admin.alter_client_quotas({alice: {"producer_byte_rate": 5.0}}, validate_only=True)).all()
        assert await admin.describe_client_quotas() == {alice: limits, everyone: limits}
        of_users = ComponentData(entity_type="user", match_type=2, match=None)
        assert list(await admin.describe_client_quotas([of_users])) == [alice]
        (await admin.alter_client_quotas({alice: {"producer_byte_rate": None}})).all()
        assert list(await admin.describe_client_quotas()) == [everyone]
