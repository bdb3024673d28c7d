"""Topic and offset queries of an application, at scripted brokers in virtual time."""

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.consumer.fetch.completed_fetch import FetchSettings
from sluice.client.consumer.fetch.fetcher import Fetcher, FetcherSettings
from sluice.client.consumer.fetch.offset_fetcher import OffsetFetcher
from sluice.client.consumer.topic_offsets import TopicOffsets
from sluice.client.errors import ApiException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedResponse
from tests.support.consuming import gaps
from tests.support.fetching import offsets
from tests.support.group_network import GroupStage, Steps, group_stage

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def topic_offsets(stage: GroupStage) -> TopicOffsets:
    client = stage.client.client
    reading = FetchSettings(checks_crcs=True, read_committed=False)
    fetcher = Fetcher(FetcherSettings(1, 1, 1, 1, reading), stage.subscriptions, stage.metadata, client)
    offset_fetcher = OffsetFetcher(
        stage.subscriptions,
        stage.metadata,
        client,
        fetcher,
        stage.client.clock,
        StaticBackoff(100),
        read_committed=False,
    )
    stage.one.responses["ListOffsets"] = lambda request: offsets(request, 5)
    stage.two.responses["ListOffsets"] = lambda request: offsets(request, 9)
    return TopicOffsets(stage.client, stage.metadata, offset_fetcher, Steps())


async def test_each_leader_is_queried_for_its_partitions() -> None:
    async with group_stage() as stage:
        listed = await topic_offsets(stage).list_offsets({P0: -1, P1: -2}, stage.deadline())
        assert {partition: one.offset for partition, one in listed.items()} == {P0: 5, P1: 9}
        (request,) = stage.two.requests("ListOffsets")
        assert request.message.topics[0].partitions[0].timestamp == -2
        assert not stage.metadata.retains_topic("t", False, 0.0), "no query is pending"


FAILING_LEADERS = {"an error": ErrorCode.NOT_LEADER_OR_FOLLOWER, "a lost connection": DISCONNECT}


@pytest.mark.parametrize("response", FAILING_LEADERS.values(), ids=FAILING_LEADERS)
async def test_failing_leader_is_retried_with_backoff_without_repeating_others(
    response: ScriptedResponse | ErrorCode,
) -> None:
    async with group_stage() as stage:
        offset_fetcher = topic_offsets(stage)

        def fails(request: ReceivedRequest) -> ScriptedResponse:
            if len(stage.one.requests("ListOffsets")) > 3:
                return offsets(request, 5)
            return offsets(request, -1, response) if isinstance(response, ErrorCode) else response

        stage.one.responses["ListOffsets"] = fails
        listed = await offset_fetcher.list_offsets({P0: -1, P1: -1}, stage.deadline())
        assert {partition: one.offset for partition, one in listed.items()} == {P0: 5, P1: 9}
        assert len(stage.two.requests("ListOffsets")) == 1
        found = gaps(stage.one.request_times_ms("ListOffsets"))
        assert all(step <= gap <= step + 20 for gap, step in zip(found, (100, 200, 300), strict=True)), found


async def test_authorization_error_is_raised() -> None:
    async with group_stage() as stage:
        offset_fetcher = topic_offsets(stage)
        stage.one.responses["ListOffsets"] = lambda request: offsets(request, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(ApiException, match=r"^t-0: "):
            await offset_fetcher.list_offsets({P0: -1}, stage.deadline())


@pytest.mark.parametrize("topic", ["t", "nowhere"], ids=["a failing leader", "an unknown topic"])
async def test_query_ends_at_the_deadline(topic: str) -> None:
    async with group_stage() as stage:
        offset_fetcher = topic_offsets(stage)
        stage.one.responses["ListOffsets"] = lambda request: offsets(request, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        began_ms = stage.network.now_ms
        with pytest.raises(TimeoutException):
            await offset_fetcher.list_offsets({TopicPartition(topic, 0): -1}, stage.deadline(3000))
        assert stage.network.now_ms - began_ms <= 3010


async def test_query_waits_for_a_new_topic() -> None:
    async with group_stage() as stage:
        offset_fetcher = topic_offsets(stage)
        assert list(await offset_fetcher.partitions_of("t", stage.deadline())) == [0, 1]
        stage.one.topics["later"] = stage.two.topics["later"] = [1]
        assert list(await offset_fetcher.partitions_of("later", stage.deadline())) == [0]
