"""The aiokafka driver: admin calls, and the table of verbs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError

from tests.clients.aiokafka_driver import (
    GROUP,
    admin_of,
    fence,
    in_loop,
    oversize,
    produce,
    read,
    resume,
    transactional_offsets,
    transactions,
    until_true,
    with_members,
)
from tests.clients.driver import Given, InProcess, Step, rebalance, restart_static_member, verbs
from tests.clients.login import of_python
from tests.clients.scenarios import CLASSIC_ONLY, WITHOUT_SHARE_CONSUMER, without_admin_calls


async def topics(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:

        async def create() -> int:
            response = await admin.create_topics([NewTopic(given.topic, given.partitions, 1)])
            return int(response.topic_errors[0][1])

        async def delete() -> int:
            return int((await admin.delete_topics([given.topic])).topic_error_codes[0][1])

        async def listed() -> bool:
            return given.topic in await admin.list_topics()

        return [
            {"created": await create()},
            {"created again": await create()},
            {"listed": await until_true(listed, True)},
            {"partitions": len((await admin.describe_topics([given.topic]))[0]["partitions"])},
            {"deleted": await delete()},
            {"listed": await until_true(listed, False)},
            {"deleted again": await delete()},
        ]


async def create_partitions(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:

        async def grow() -> int:
            try:
                await admin.create_partitions({given.topic: NewPartitions(given.partitions)})
            except InvalidPartitionsError as error:
                return int(error.errno)
            return 0

        async def count() -> int:
            return len((await admin.describe_topics([given.topic]))[0]["partitions"])

        async def grown() -> bool:
            return await count() == given.partitions

        error = await grow()
        await until_true(grown, True)
        return [{"error": error}, {"partitions": await count()}, {"error": await grow()}]


async def configs(admin: AIOKafkaAdminClient, kind: ConfigResourceType, name: str, *keys: str) -> Step:
    (response,) = await admin.describe_configs([ConfigResource(kind, name)])
    values = {entry[0]: entry[1] for entry in response.resources[0][4]}
    return {key: values[key] for key in keys}


async def topic_configs(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:
        return [await configs(admin, ConfigResourceType.TOPIC, given.topic, "retention.ms", "cleanup.policy")]


async def broker_configs(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:
        node_id = (await admin.describe_cluster())["brokers"][0]["node_id"]
        return [await configs(admin, ConfigResourceType.BROKER, str(node_id), "message.max.bytes")]


async def alter_configs(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, given.topic, {"retention.ms": "5000"})])

        async def described() -> Step:
            return await configs(admin, ConfigResourceType.TOPIC, given.topic, "retention.ms")

        async def altered() -> bool:
            return (await described())["retention.ms"] == "5000"

        await until_true(altered, True)
        return [await described()]


async def delete_records(bootstrap: str, given: Given) -> list[Step]:
    partition = TopicPartition(given.topic, 0)
    async with admin_of(bootstrap) as admin, AIOKafkaConsumer(**of_python(bootstrap)) as consumer:
        low = await admin.delete_records({partition: RecordsToDelete(given.count)})
        earliest = await consumer.beginning_offsets([partition])
        return [{"low_watermark": low[partition]}, {"earliest": earliest[partition]}]


async def list_offsets(bootstrap: str, given: Given) -> list[Step]:
    partition = TopicPartition(given.topic, 0)
    async with AIOKafkaConsumer(**of_python(bootstrap)) as consumer:
        earliest = await consumer.beginning_offsets([partition])
        latest = await consumer.end_offsets([partition])
        found = await consumer.offsets_for_times({partition: given.count})
        step: Step = {"earliest": earliest[partition], "latest": latest[partition]}
        return [step | {"by_timestamp": found[partition].offset}]


@asynccontextmanager
async def live_group(bootstrap: str, given: Given) -> AsyncIterator[AIOKafkaConsumer]:
    """A group with one member that has committed offset 3."""
    consumer = AIOKafkaConsumer(given.topic, **of_python(bootstrap), group_id=given.group, **GROUP)
    async with consumer:
        await consumer.commit({TopicPartition(given.topic, 0): 3})
        yield consumer


async def list_groups(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        return [{"listed": (given.group, "consumer") in await admin.list_consumer_groups()}]


async def describe_group(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:

        async def described() -> Step:
            (response,) = await admin.describe_consumer_groups([given.group])
            _, _, state, _, _, members, *_ = response.groups[0]
            return {"state": state, "members": len(members)}

        async with live_group(bootstrap, given):
            live = await described()
        return [live, await described()]


async def list_group_offsets(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin, live_group(bootstrap, given):
        offsets = await admin.list_consumer_group_offsets(given.group)
        return [{"offset": offsets[TopicPartition(given.topic, 0)].offset}]


async def cluster(bootstrap: str, given: Given) -> list[Step]:
    async with admin_of(bootstrap) as admin:
        response = await admin.describe_cluster()
        nodes = [node["node_id"] for node in response["brokers"]]
        controller = response["controller_id"] in nodes
        return [{"nodes": len(nodes), "controller": controller, "id": bool(response["cluster_id"])}]


AIOKAFKA = InProcess(
    "aiokafka",
    lambda: version("aiokafka"),
    verbs(*map(in_loop, (produce, read, oversize, transactions, fence, transactional_offsets, resume)))
    | verbs(*map(in_loop, (topics, create_partitions, topic_configs, broker_configs, alter_configs, delete_records)))
    | verbs(*map(in_loop, (list_offsets, list_groups, describe_group, list_group_offsets, cluster)))
    | {"rebalance": with_members(rebalance), "static": with_members(restart_static_member)},
    {
        **WITHOUT_SHARE_CONSUMER,
        "null-record": "refuses to send it",
        "group-cooperative": "has no cooperative assignor",
        **CLASSIC_ONLY,
        "max-timestamp": "requests only timestamps of 0 and later",
        **without_admin_calls(
            "incremental-alter-configs",
            "delete-groups",
            "alter-group-offsets",
            "delete-group-offsets",
            "client-quotas",
            "log-dirs",
        ),
    },
)
