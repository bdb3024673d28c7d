"""Routing and retries of admin calls, over scripted brokers in virtual time, exact to the millisecond."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from sluice.client.admin.calls import AdminCalls, Outcomes
from sluice.client.admin.groups import GroupAdmin
from sluice.client.admin.partitions import PartitionAdmin
from sluice.client.admin.topics import NewTopic, TopicAdmin
from sluice.client.config import admin_config
from sluice.client.errors import ApiException, KafkaException, TimeoutException, UnsupportedVersionException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import LoopClock
from sluice.protocol.apis.create_topics import CreatableTopicResult, CreateTopicsResponse
from sluice.protocol.apis.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from sluice.protocol.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.client_network import DISCONNECT, Middle, ReceivedRequest, ScriptedBroker, VirtualNetwork


class Admin(TopicAdmin, PartitionAdmin, GroupAdmin):
    """An admin client over a network of scripted brokers 1 and 2. The controller is 1."""

    def __init__(self, **given: str | int) -> None:
        loop = asyncio.get_running_loop()
        self.network = VirtualNetwork(LoopClock(loop))
        self.one = self.network.broker(1, "a:9092")
        self.two = self.network.broker(2, "b:9092")
        self.brokers = (self.one, self.two)
        self.lead(1)
        config = admin_config(
            {"bootstrap.servers": "a:9092", **{name.replace("_", "."): value for name, value in given.items()}}
        )
        random = Middle()
        metadata = Metadata(
            backoff_at(RetrySite.ADMIN_METADATA, config, random.uniform), 300_000, equivalent_backoff=None
        )
        client = self.network.client(config, metadata, max_in_flight=1, seed=random)
        self._calls = AdminCalls(AsyncNetwork(client, loop, self.network), config, random)

    def lead(self, node_id: int) -> None:
        """Make a broker the controller in both brokers' metadata."""
        for broker in self.brokers:
            broker.controller_id = node_id

    def lead_partitions(self, *leaders: int) -> None:
        """Set the leaders of topic t in both brokers' metadata."""
        for broker in self.brokers:
            broker.topics["t"] = list(leaders)

    def script(self, api: str, *responses: Callable[[ReceivedRequest], Any]) -> None:
        """Set the responses of both brokers to an API, in turn; the last one repeats."""
        left = list(responses)
        for broker in self.brokers:
            broker.responses[api] = lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)

    async def error(self, call: Awaitable[Outcomes[Any, Any]]) -> KafkaException:
        """Return the only error of a call."""
        (error,) = (await call).errors().values()
        return error


def created(code: int) -> Callable[[ReceivedRequest], Message]:
    """Answer CreateTopics with this error code."""
    return lambda request: CreateTopicsResponse(
        topics=[CreatableTopicResult(name=topic.name, error_code=code) for topic in request.message.topics]
    )


def first_gaps(broker: ScriptedBroker, api: str, count: int) -> list[int]:
    times = broker.request_times_ms(api)
    return [round(later - earlier) for earlier, later in pairwise(times)][:count]


NEW = [NewTopic("t", 1, 1)]


class TestRetries:
    async def test_request_goes_to_the_controller(self) -> None:
        admin = Admin()
        admin.lead(2)
        admin.script("CreateTopics", created(0))
        (await admin.create_topics(NEW)).all()
        assert len(admin.two.requests("CreateTopics")) == 1
        assert admin.one.requests("CreateTopics") == []

    async def test_former_controller_is_replaced_by_the_new_one(self) -> None:
        admin = Admin()

        def moved(request: ReceivedRequest) -> Message:
            admin.lead(2)
            return created(ErrorCode.NOT_CONTROLLER)(request)

        admin.one.responses["CreateTopics"] = moved
        admin.two.responses["CreateTopics"] = created(0)
        (await admin.create_topics(NEW)).all()
        assert len(admin.one.requests("CreateTopics")) == 1
        assert len(admin.two.requests("CreateTopics")) == 1

    async def test_attempts_are_limited_by_retries(self) -> None:
        admin = Admin(retries=2)
        admin.script("CreateTopics", created(ErrorCode.THROTTLING_QUOTA_EXCEEDED))
        error = await admin.error(admin.create_topics(NEW))
        assert str(error).startswith("gave up after 3 attempts: ")
        assert len(admin.one.requests("CreateTopics")) == 3

    async def test_fatal_error_is_not_retried(self) -> None:
        admin = Admin()
        admin.script("CreateTopics", created(ErrorCode.TOPIC_ALREADY_EXISTS))
        error = await admin.error(admin.create_topics(NEW))
        assert isinstance(error, ApiException)
        assert error.code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert len(admin.one.requests("CreateTopics")) == 1

    async def test_retriable_error_that_kafka_does_not_retry_is_not_retried(self) -> None:
        admin = Admin()
        admin.script("CreateTopics", created(ErrorCode.REQUEST_TIMED_OUT))
        assert isinstance(await admin.error(admin.create_topics(NEW)), TimeoutException)
        assert len(admin.one.requests("CreateTopics")) == 1

    async def test_lost_connection_is_retried(self) -> None:
        admin = Admin()
        admin.script("CreateTopics", lambda _: DISCONNECT, created(0))
        (await admin.create_topics(NEW)).all()
        assert len(admin.one.requests("CreateTopics")) == 2

    async def test_unanswered_request_ends_after_its_own_timeout(self) -> None:
        admin = Admin(request_timeout_ms=1000)
        admin.script("CreateTopics", lambda _: None, created(0))
        (await admin.create_topics(NEW)).all()
        (gap,) = first_gaps(admin.one, "CreateTopics", 1)
        assert 1000 < gap < 1300

    async def test_timeout_is_sent_to_the_broker(self) -> None:
        admin = Admin()
        admin.script("CreateTopics", created(0))
        (await admin.create_topics(NEW, timeout_ms=700)).all()
        assert admin.one.requests("CreateTopics")[0].message.timeout_ms <= 700

    async def test_call_ends_at_its_deadline_in_any_state(self) -> None:
        admin = Admin()
        for broker in admin.brokers:
            broker.refuses = True
        error = await admin.error(admin.create_topics(NEW, timeout_ms=3000))
        assert isinstance(error, TimeoutException)
        reason = "a:9092 (id -1): could not connect: refused by ('a', 9092)"
        assert str(error).endswith(f"no node was ready in time; last connection failure: {reason}")
        assert round(admin.network.now_ms) == 3000

    async def test_call_with_one_response_is_retried(self) -> None:
        admin = Admin()
        await admin.list_topics()
        admin.script("Metadata", lambda _: DISCONNECT, admin.one.metadata)
        assert await admin.list_topics() == {}


class TestKeys:
    async def test_partitions_are_grouped_by_leader_into_one_request_each(self) -> None:
        admin = Admin()
        admin.lead_partitions(1, 2, 1)
        admin.script("DeleteRecords", deleted({}))
        partitions = {TopicPartition("t", index): 5 for index in range(3)}
        assert (await admin.delete_records(partitions)).all() == dict.fromkeys(partitions, 7)
        assert [_indexes(request) for request in admin.one.requests("DeleteRecords")] == [[0, 2]]
        assert [_indexes(request) for request in admin.two.requests("DeleteRecords")] == [[1]]

    async def test_moved_leader_is_looked_up_without_repeating_other_requests(self) -> None:
        admin = Admin()
        admin.lead_partitions(1, 1)

        def moved(request: ReceivedRequest) -> Message:
            admin.lead_partitions(1, 2)
            return deleted({1: ErrorCode.NOT_LEADER_OR_FOLLOWER})(request)

        admin.one.responses["DeleteRecords"] = moved
        admin.two.responses["DeleteRecords"] = deleted({})
        (await admin.delete_records({TopicPartition("t", 0): 5, TopicPartition("t", 1): 5})).all()
        assert [_indexes(request) for request in admin.one.requests("DeleteRecords")] == [[0, 1]]
        assert [_indexes(request) for request in admin.two.requests("DeleteRecords")] == [[1]]

    async def test_each_key_has_its_own_outcome(self) -> None:
        admin = Admin()
        admin.lead_partitions(1, 1, -1)
        admin.script("DeleteRecords", deleted({1: ErrorCode.OFFSET_OUT_OF_RANGE}))
        before = {TopicPartition("t", index): 5 for index in range(3)}
        outcomes = await admin.delete_records(before, timeout_ms=2000)
        assert len(outcomes) == 3
        assert outcomes[TopicPartition("t", 0)] == 7
        assert list(outcomes.errors()) == [TopicPartition("t", 1), TopicPartition("t", 2)]
        with pytest.raises(ApiException) as caught:
            outcomes.all()
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        with pytest.raises(TimeoutException):
            outcomes[TopicPartition("t", 2)]

    async def test_key_missing_from_the_response_is_an_error(self) -> None:
        admin = Admin()
        admin.script("CreateTopics", lambda _: CreateTopicsResponse())
        assert str(await admin.error(admin.create_topics(NEW))) == "the broker returned nothing for t"

    async def test_unknown_partition_is_retried(self) -> None:
        admin = Admin()
        admin.lead_partitions(1)
        error = await admin.error(admin.delete_records({TopicPartition("t", 9): 0}, timeout_ms=500))
        assert isinstance(error, TimeoutException)


class TestCoordinators:
    async def test_coordinators_are_found_in_one_request(self) -> None:
        admin = Admin()
        admin.script("FindCoordinator", found)
        admin.script("DeleteGroups", groups_deleted)
        (await admin.delete_groups(["g1", "g2", "h1"])).all()
        assert len([*admin.one.requests("FindCoordinator"), *admin.two.requests("FindCoordinator")]) == 1
        assert admin.one.requests("DeleteGroups")[0].message.groups_names == ["g1", "h1"]
        assert admin.two.requests("DeleteGroups")[0].message.groups_names == ["g2"]

    async def test_coordinators_are_found_one_by_one_on_old_brokers(self) -> None:
        admin = Admin()
        for broker in admin.brokers:
            broker.versions["FindCoordinator"] = (0, 3)
        admin.script("FindCoordinator", lambda request: FindCoordinatorResponse(node_id=int(request.message.key[-1])))
        admin.script("DeleteGroups", groups_deleted)
        (await admin.delete_groups(["g1", "g2"])).all()
        assert [request.message.key for request in admin.one.requests("FindCoordinator")] == ["g1", "g2"]

    async def test_backoff_doubles_without_a_coordinator(self) -> None:
        admin = Admin()

        def none(request: ReceivedRequest) -> Message:
            keys = request.message.coordinator_keys
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return FindCoordinatorResponse(coordinators=[Coordinator(key=key, error_code=code) for key in keys])

        admin.script("FindCoordinator", none)
        assert isinstance(await admin.error(admin.delete_groups(["g1"], timeout_ms=2000)), TimeoutException)
        assert first_gaps(admin.one, "FindCoordinator", 4) == [100, 200, 400, 800]

    async def test_unsupported_request_fails_at_once(self) -> None:
        admin = Admin()
        for broker in admin.brokers:
            broker.versions["DeleteGroups"] = (0, -1)
        admin.script("FindCoordinator", found)
        assert isinstance(await admin.error(admin.delete_groups(["g1"])), UnsupportedVersionException)
        assert admin.network.now_ms < 100


async def test_closing_fails_pending_calls() -> None:
    admin = Admin()
    admin.script("CreateTopics", lambda _: None)
    waiting = asyncio.ensure_future(admin.create_topics(NEW, timeout_ms=1000))
    await asyncio.sleep(0.1)
    await admin._calls.network.close()
    assert str(await admin.error(waiting)) == "the client is closed"


def deleted(codes: dict[int, int]) -> Callable[[ReceivedRequest], Message]:
    """Answer DeleteRecords with these error codes by partition; 7 for other partitions."""

    def respond(request: ReceivedRequest) -> Message:
        (topic,) = request.message.topics
        results = [
            DeleteRecordsPartitionResult(partition_index=index, low_watermark=7, error_code=codes.get(index, 0))
            for index in _indexes(request)
        ]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name=topic.name, partitions=results)])

    return respond


def _indexes(request: ReceivedRequest) -> list[int]:
    return [partition.partition_index for partition in request.message.topics[0].partitions]


def found(request: ReceivedRequest) -> Message:
    """Answer with a coordinator whose node id is the last digit of the key."""
    keys = request.message.coordinator_keys
    return FindCoordinatorResponse(coordinators=[Coordinator(key=key, node_id=int(key[-1])) for key in keys])


def groups_deleted(request: ReceivedRequest) -> Message:
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.message.groups_names])
