"""sluice.Proxy in virtual time, in front of our own brokers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from typing import Any

import pytest
from msgspec import structs

from sluice import Broker, ClusterError, ConfigError, Proxy, ProxyError, SluiceError
from sluice.client.admin import AdminClient, ConfigResource, NewTopic, TopicPartition
from sluice.client.admin.calls import least_loaded
from sluice.client.admin.configs import Alteration, ResourceType
from sluice.client.consumer import Consumer, OffsetAndMetadata
from sluice.client.errors import GroupAuthorizationException, TopicAuthorizationException, TopicExistsException
from sluice.client.network.in_flight import request_of
from sluice.client.producer import Producer
from sluice.clock import LoopClock
from sluice.errors import NotRunningError
from sluice.faults import Close, Delay, Error
from sluice.journal_events import Request
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, TopicInfo, Topology
from sluice.protocol.message import Message
from sluice.proxy.upstream.cluster import UpstreamCluster

BEFORE = "before"


@asynccontextmanager
async def in_front_of_a_broker(*, protect: bool = False) -> AsyncIterator[tuple[Broker, Proxy]]:
    """Run a broker that has a topic and a group, and a proxy; in the end, the broker has nothing else."""
    async with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        await broker.client().send(BEFORE, b"kept")
        await join(broker.bootstrap, BEFORE, BEFORE)
        async with Proxy(broker.bootstrap, protect_existing=protect) as proxy:
            yield broker, proxy
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            assert (await topics_of(admin), sorted(await admin.list_groups())) == ([BEFORE], [BEFORE])


async def topics_of(admin: AdminClient) -> list[str]:
    return sorted(name for name, topic in (await admin.list_topics()).items() if not topic.is_internal)


async def join(bootstrap: str, group: str, topic: str, **config: str) -> None:
    """Read a record of a topic in a group, commit, and leave."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    async with Consumer({**settings, **config}) as consumer:
        consumer.subscribe([topic])
        while not await consumer.poll(100):
            pass
        await consumer.commit()


async def test_faults_journal_and_assertions_work_on_the_way_to_the_broker() -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        fault = proxy.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=2)
        await proxy.client("shop").send("orders", b"one pizza")
        assert fault.hits == 2
        proxy.assert_requests("Produce", client_id="shop", exactly=3)
        (_,) = await proxy.wait_for(
            Request, api="Produce", client_id="shop", where=lambda request: not request.error_codes
        )
        (order,) = await broker.client().receive("orders")
        assert order.value == b"one pizza"


async def test_a_quota_is_enforced_by_the_proxy() -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        with proxy.quota(client_id="shop", produce=1000):
            await proxy.client("shop").send("orders", b"x" * 20_000)
            await proxy.client("shop").send("orders", b"x")
        proxy.assert_throttled("shop")
        assert broker.quotas == []


CREATORS = {
    "by CreateTopics": lambda proxy: create(proxy, "made"),
    "by its control": lambda proxy: proxy.cluster.create_topic("made", 2, config={"retention.ms": 1000}),
    "by automatic creation": lambda proxy: proxy.client().send("made", b"x"),
}


async def create(proxy: Proxy, topic: str) -> None:
    async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.create_topics([NewTopic(topic, 1)])).all()


@pytest.mark.parametrize("make", CREATORS.values(), ids=CREATORS)
async def test_a_topic_is_deleted_that_was_made(make: Callable[[Proxy], Awaitable[object]]) -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        await make(proxy)
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            assert await topics_of(admin) == [BEFORE, "made"]


async def test_a_topic_is_deleted_whose_creation_had_no_response() -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        broker.faults.add(Close(when="after"), api="CreateTopics", times=1)
        with pytest.raises(TopicExistsException):  # the retry
            await create(proxy, "made")


async def test_internal_topics_of_a_streams_group_are_deleted() -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        (request,) = JOINS["streams"]
        assert isinstance(request, StreamsGroupHeartbeatRequest)
        changelog = TopicInfo(name="made-counts-changelog", replication_factor=1)
        subtopology = Subtopology(subtopology_id="0", source_topics=[BEFORE], state_changelog_topics=[changelog])
        request = structs.replace(request, topology=Topology(subtopologies=[subtopology]))
        assert (await send(proxy, request)).error_code == 0
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            while "made-counts-changelog" not in await topics_of(admin):  # noqa: ASYNC110  (the cluster has no event)
                await asyncio.sleep(0.1)


async def test_topics_that_others_make_meanwhile_remain() -> None:
    async with Broker() as broker:
        async with Proxy(broker.bootstrap) as proxy:
            await broker.client().send("theirs", b"x")
            await proxy.client().receive("theirs")
            async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
                await admin.list_topics()
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            assert await topics_of(admin) == ["theirs"]


JOINS: dict[str, tuple[Message, ...]] = {
    "classic": (
        JoinGroupRequest(
            group_id="made",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range")],
        ),
    ),
    "consumer": (
        ConsumerGroupHeartbeatRequest(
            group_id="made",
            member_id="m",
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["o"],
            topic_partitions=[],
        ),
    ),
    "share": (ShareGroupHeartbeatRequest(group_id="made", member_id="m", subscribed_topic_names=["o"]),),
    "streams": (
        StreamsGroupHeartbeatRequest(
            group_id="made",
            member_id="m",
            rebalance_timeout_ms=10_000,
            topology=Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=[BEFORE])]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="p",
        ),
    ),
}


@pytest.mark.parametrize("requests", JOINS.values(), ids=JOINS)
async def test_a_group_is_deleted_whose_member_has_not_left(requests: tuple[Message, ...]) -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        (request,) = requests
        response = await send(proxy, request)
        if isinstance(request, JoinGroupRequest):  # KIP-394
            request = copy(request)
            request.member_id = response.member_id
            response = await send(proxy, request)
        assert response.error_code == 0
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            assert sorted(await admin.list_groups()) == [BEFORE, "made"]


async def send(proxy: Proxy, request: Message) -> Any:
    upstream = UpstreamCluster({"bootstrap.servers": proxy.bootstrap}, LoopClock(asyncio.get_running_loop()))
    sent = request_of(request)
    response = await upstream.calls.call(least_loaded, sent, sent.api.response, None)
    await upstream.close()
    return response


async def test_a_group_is_deleted_whose_members_have_left() -> None:
    async with in_front_of_a_broker() as (_, proxy):
        await proxy.client().send("orders", b"x")
        await join(proxy.bootstrap, "made", "orders")


async def test_a_group_is_deleted_that_only_has_offsets() -> None:
    async with in_front_of_a_broker() as (_, proxy), AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.alter_consumer_group_offsets("made", {TopicPartition(BEFORE, 0): OffsetAndMetadata(0)})).all()


async def test_reset_deletes_what_was_made_and_keeps_the_address() -> None:
    async with in_front_of_a_broker() as (broker, proxy):
        bootstrap = proxy.bootstrap
        proxy.faults.add(Delay("1ms"), api="Produce")
        proxy.quota(client_id="shop", produce=1000)
        await proxy.client().send("orders", b"x")
        await proxy.reset()
        async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
            assert await topics_of(admin) == [BEFORE]
        assert proxy.bootstrap == bootstrap
        assert (proxy.faults.list(), proxy.quotas) == ([], [])
        assert [event for event in proxy.journal.events() if isinstance(event, Request)] == []
        await proxy.client().send("orders", b"x")


async def produce_to_it(proxy: Proxy) -> None:
    await proxy.client().send(BEFORE, b"x", timeout_s=5)


async def delete_it(proxy: Proxy) -> None:
    async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.delete_topics([BEFORE])).all()


async def add_partitions(proxy: Proxy) -> None:
    async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.create_partitions({BEFORE: 3})).all()


async def alter_its_config(proxy: Proxy) -> None:
    wanted = {ConfigResource(ResourceType.TOPIC, BEFORE): [Alteration("retention.ms", "1")]}
    async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.incremental_alter_configs(wanted)).all()


async def delete_its_group(proxy: Proxy) -> None:
    async with AdminClient({"bootstrap.servers": proxy.bootstrap}) as admin:
        (await admin.delete_groups([BEFORE])).all()


REFUSED = {
    "Produce": (produce_to_it, TopicAuthorizationException, f"Produce: topic {BEFORE}"),
    "DeleteTopics": (delete_it, TopicAuthorizationException, f"DeleteTopics: topic {BEFORE}"),
    "CreatePartitions": (add_partitions, TopicAuthorizationException, f"CreatePartitions: topic {BEFORE}"),
    "IncrementalAlterConfigs": (
        alter_its_config,
        TopicAuthorizationException,
        f"IncrementalAlterConfigs: topic {BEFORE}",
    ),
    "DeleteGroups": (delete_its_group, GroupAuthorizationException, f"DeleteGroups: group {BEFORE}"),
    "JoinGroup": (
        lambda proxy: join(proxy.bootstrap, BEFORE, BEFORE),
        GroupAuthorizationException,
        f"JoinGroup: group {BEFORE}",
    ),
}


@pytest.mark.parametrize(("change", "error", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_change_of_what_existed_is_refused(
    change: Callable[[Proxy], Awaitable[object]], error: type[Exception], reason: str
) -> None:
    async with in_front_of_a_broker(protect=True) as (_, proxy):
        with pytest.raises(error):
            await change(proxy)
        assert proxy.refused == [f"{reason} existed before the test"]
        (kept,) = await proxy.client().receive(BEFORE)  # reading is no change
        assert kept.value == b"kept"


async def test_without_acks_a_refused_record_is_dropped() -> None:
    async with in_front_of_a_broker(protect=True) as (broker, proxy):
        async with Producer({"bootstrap.servers": proxy.bootstrap, "acks": "0"}) as producer:
            await producer.send(BEFORE, b"x")
            await producer.flush()
            await proxy.wait_for(lambda: proxy.refused)
        assert [record.value for record in await broker.client().receive(BEFORE)] == [b"kept"]


async def partition_of(proxy: Proxy) -> None:
    proxy.cluster.partition(BEFORE, 0)


IMPOSSIBLE: dict[str, tuple[Callable[[Proxy], Awaitable[None]], str]] = {
    "moving a leader": (lambda proxy: proxy.cluster.move_leader(BEFORE, 0, 1), "move_leader: a proxy does not choose"),
    "an election": (lambda proxy: proxy.cluster.elect(BEFORE, 0), "elect: a proxy does not choose leaders"),
    "a partition's state": (partition_of, f"partition {BEFORE}-0: the brokers"),
}


@pytest.mark.parametrize(("act", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
async def test_what_needs_a_broker_of_sluice_is_refused(act: Callable[[Proxy], Awaitable[None]], reason: str) -> None:
    async with in_front_of_a_broker() as (_, proxy):
        with pytest.raises(ProxyError, match=reason):
            await act(proxy)


async def test_a_topic_that_exists_cannot_be_created() -> None:
    async with in_front_of_a_broker() as (_, proxy):
        with pytest.raises(ClusterError, match=f"topic {BEFORE}: "):
            await proxy.cluster.create_topic(BEFORE)


async def test_a_stopped_listener_refuses_clients_until_it_starts() -> None:
    async with in_front_of_a_broker() as (_, proxy):
        await proxy.cluster.stop(1, controlled=False)
        with pytest.raises(SluiceError):
            await proxy.client().send("orders", b"x", timeout_s=1)
        await proxy.cluster.start(1)
        await proxy.client().send("orders", b"x")


def test_a_property_of_brokers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^num\.partitions: no effect in a proxy; set it on the brokers behind it"):
        Proxy("127.0.0.1:9092", config={"num.partitions": 3})


async def test_an_upstream_that_does_not_respond_is_named() -> None:
    expected = r"^upstream 127\.0\.0\.1:9092: expected a Kafka broker, got no response within 10\.0 s$"
    with pytest.raises(SluiceError, match=expected):
        async with Proxy("127.0.0.1:9092"):
            pass


def test_it_is_available_only_within_its_block() -> None:
    with pytest.raises(NotRunningError):
        Proxy("127.0.0.1:9092").bootstrap  # noqa: B018  (it raises)
