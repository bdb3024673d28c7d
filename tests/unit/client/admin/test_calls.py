"""How calls find their brokers and are tried again: over scripted brokers, in virtual time, to the millisecond."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from sluice import testing
from sluice.client.admin.calls import AdminCalls, Outcomes
from sluice.client.admin.groups import GroupAdmin
from sluice.client.admin.partitions import PartitionAdmin
from sluice.client.admin.topics import NewTopic, TopicAdmin
from sluice.client.config import admin_config
from sluice.client.errors import (
    ApiException,
    KafkaException,
    TimeoutException,
    UnsupportedVersionException,
)
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
from tests.support.client_network import DISCONNECT, Asked, ScriptedBroker, VirtualNetwork


class Middle(Random):
    """Chance that always takes the middle: a factor of 1, and the first of the nodes."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


class Admin(TopicAdmin, PartitionAdmin, GroupAdmin):
    """What is called here, over a network of scripted brokers 1 and 2. The controller is 1."""

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
        """Makes a broker the controller, as both tell."""
        for broker in self.brokers:
            broker.controller_id = node_id

    def script(self, api: str, answer: Callable[[Asked], Any]) -> None:
        """Has both brokers answer an API so."""
        for broker in self.brokers:
            broker.answers[api] = answer

    async def error(self, call: Awaitable[Outcomes[Any, Any]]) -> KafkaException:
        """The one error of a call."""
        (error,) = (await call).errors().values()
        return error


def live(scenario: Callable[[Admin], Awaitable[None]], **given: str | int) -> None:
    """Runs a scenario in virtual time."""

    async def main() -> None:
        await scenario(Admin(**given))

    testing.run(main())


def created(*codes: int) -> Callable[[Asked], Message]:
    """Answers CreateTopics with these error codes in turn, the last again and again."""
    left = list(codes)

    def answer(asked: Asked) -> Message:
        code = left.pop(0) if len(left) > 1 else left[0]
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=topic.name, error_code=code) for topic in asked.message.topics]
        )

    return answer


def first_gaps(broker: ScriptedBroker, api: str, count: int) -> list[int]:
    """How long it took from each request to the next."""
    times = broker.asked_at_ms(api)
    return [round(later - earlier) for earlier, later in pairwise(times)][:count]


NEW = [NewTopic("t", 1, 1)]


class TestRetries:
    def test_the_controller_is_asked(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.lead(2)
            admin.script("CreateTopics", created(0))
            (await admin.create_topics(NEW)).all()
            assert len(admin.two.asked("CreateTopics")) == 1
            assert admin.one.asked("CreateTopics") == []

        live(scenario)

    def test_one_that_is_it_no_more_is_left_for_the_new_one(self) -> None:
        async def scenario(admin: Admin) -> None:
            def moved(asked: Asked) -> Message:
                admin.lead(2)
                return created(ErrorCode.NOT_CONTROLLER)(asked)

            admin.one.answers["CreateTopics"] = moved
            admin.two.answers["CreateTopics"] = created(0)
            (await admin.create_topics(NEW)).all()
            assert len(admin.one.asked("CreateTopics")) == 1
            assert len(admin.two.asked("CreateTopics")) == 1

        live(scenario)

    def test_waits_double_with_each_attempt(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", created(ErrorCode.THROTTLING_QUOTA_EXCEEDED))
            error = await admin.error(admin.create_topics(NEW, timeout_ms=5000))
            assert isinstance(error, TimeoutException)
            assert first_gaps(admin.one, "CreateTopics", 6) == [100, 200, 400, 800, 1000, 1000]

        live(scenario)

    def test_no_more_often_than_retries_says(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", created(ErrorCode.THROTTLING_QUOTA_EXCEEDED))
            error = await admin.error(admin.create_topics(NEW))
            assert str(error).startswith("gave up after 3 attempts: ")
            assert len(admin.one.asked("CreateTopics")) == 3

        live(scenario, retries=2)

    def test_what_cannot_be_mended_is_not_tried_again(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", created(ErrorCode.TOPIC_ALREADY_EXISTS))
            error = await admin.error(admin.create_topics(NEW))
            assert isinstance(error, ApiException)
            assert error.code == ErrorCode.TOPIC_ALREADY_EXISTS
            assert len(admin.one.asked("CreateTopics")) == 1

        live(scenario)

    def test_nor_what_could_be_but_kafka_does_not(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", created(ErrorCode.REQUEST_TIMED_OUT))
            assert isinstance(await admin.error(admin.create_topics(NEW)), TimeoutException)
            assert len(admin.one.asked("CreateTopics")) == 1

        live(scenario)

    def test_a_lost_connection_is(self) -> None:
        async def scenario(admin: Admin) -> None:
            answers = iter([lambda _: DISCONNECT, created(0)])
            admin.script("CreateTopics", lambda asked: next(answers)(asked))
            (await admin.create_topics(NEW)).all()
            assert len(admin.one.asked("CreateTopics")) == 2

        live(scenario)

    def test_a_request_that_is_not_answered_takes_its_timeout_alone(self) -> None:
        async def scenario(admin: Admin) -> None:
            answers = iter([lambda _: None, created(0)])
            admin.script("CreateTopics", lambda asked: next(answers)(asked))
            (await admin.create_topics(NEW)).all()
            (gap,) = first_gaps(admin.one, "CreateTopics", 1)
            assert 1000 < gap < 1300

        live(scenario, request_timeout_ms=1000)

    def test_the_broker_is_told_how_long_it_may_take(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", created(0))
            (await admin.create_topics(NEW, timeout_ms=700)).all()
            assert admin.one.asked("CreateTopics")[0].message.timeout_ms <= 700

        live(scenario)

    def test_a_call_ends_at_its_time_whatever_it_waits_for(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.refuses = True
            error = await admin.error(admin.create_topics(NEW, timeout_ms=3000))
            assert isinstance(error, TimeoutException)
            reason = "a:9092 (id -1): could not connect: refused by ('a', 9092)"
            assert str(error).endswith(f"no node was ready in time; last connection failure: {reason}")
            assert round(admin.network.now_ms) == 3000

        live(scenario)

    def test_a_call_of_one_answer_is_tried_again_too(self) -> None:
        async def scenario(admin: Admin) -> None:
            answers = iter([lambda _: DISCONNECT, lambda asked: admin.one.metadata(asked)])
            await admin.list_topics()
            admin.script("Metadata", lambda asked: next(answers, admin.one.metadata)(asked))
            assert await admin.list_topics() == {}

        live(scenario)


class TestKeys:
    def test_each_partition_is_asked_of_its_leader_and_all_of_one_together(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.topics["t"] = [1, 2, 1]
            admin.script("DeleteRecords", deleted({}))
            partitions = {TopicPartition("t", index): 5 for index in range(3)}
            assert (await admin.delete_records(partitions)).all() == dict.fromkeys(partitions, 7)
            assert [_indexes(asked) for asked in admin.one.asked("DeleteRecords")] == [[0, 2]]
            assert [_indexes(asked) for asked in admin.two.asked("DeleteRecords")] == [[1]]

        live(scenario)

    def test_a_leader_that_moved_is_looked_for_and_others_are_not_asked_again(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.topics["t"] = [1, 1]

            def moved(asked: Asked) -> Message:
                for broker in admin.brokers:
                    broker.topics["t"] = [1, 2]
                return deleted({1: ErrorCode.NOT_LEADER_OR_FOLLOWER})(asked)

            admin.one.answers["DeleteRecords"] = moved
            admin.two.answers["DeleteRecords"] = deleted({})
            (await admin.delete_records({TopicPartition("t", 0): 5, TopicPartition("t", 1): 5})).all()
            assert [_indexes(asked) for asked in admin.one.asked("DeleteRecords")] == [[0, 1]]
            assert [_indexes(asked) for asked in admin.two.asked("DeleteRecords")] == [[1]]

        live(scenario)

    def test_each_key_has_an_outcome_of_its_own(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.topics["t"] = [1, 1, -1]
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

        live(scenario)

    def test_a_key_that_the_broker_forgets_is_an_error(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("CreateTopics", lambda _: CreateTopicsResponse())
            assert str(await admin.error(admin.create_topics(NEW))) == "the broker returned nothing for t"

        live(scenario)

    def test_a_partition_that_is_not_there_is_waited_for(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.topics["t"] = [1]
            error = await admin.error(admin.delete_records({TopicPartition("t", 9): 0}, timeout_ms=500))
            assert isinstance(error, TimeoutException)

        live(scenario)


class TestCoordinators:
    def test_are_found_together(self) -> None:
        async def scenario(admin: Admin) -> None:
            admin.script("FindCoordinator", found)
            admin.script("DeleteGroups", groups_deleted)
            (await admin.delete_groups(["g1", "g2", "h1"])).all()
            assert len([*admin.one.asked("FindCoordinator"), *admin.two.asked("FindCoordinator")]) == 1
            assert admin.one.asked("DeleteGroups")[0].message.groups_names == ["g1", "h1"]
            assert admin.two.asked("DeleteGroups")[0].message.groups_names == ["g2"]

        live(scenario)

    def test_one_by_one_where_the_broker_knows_no_other_way(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.versions["FindCoordinator"] = (0, 3)
            admin.script("FindCoordinator", lambda asked: FindCoordinatorResponse(node_id=int(asked.message.key[-1])))
            admin.script("DeleteGroups", groups_deleted)
            (await admin.delete_groups(["g1", "g2"])).all()
            assert [asked.message.key for asked in admin.one.asked("FindCoordinator")] == ["g1", "g2"]

        live(scenario)

    def test_waits_double_while_there_is_none(self) -> None:
        async def scenario(admin: Admin) -> None:
            def none(asked: Asked) -> Message:
                keys = asked.message.coordinator_keys
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                return FindCoordinatorResponse(coordinators=[Coordinator(key=key, error_code=code) for key in keys])

            admin.script("FindCoordinator", none)
            assert isinstance(await admin.error(admin.delete_groups(["g1"], timeout_ms=2000)), TimeoutException)
            assert first_gaps(admin.one, "FindCoordinator", 4) == [100, 200, 400, 800]

        live(scenario)

    def test_what_no_broker_can_do_is_told_at_once(self) -> None:
        async def scenario(admin: Admin) -> None:
            for broker in admin.brokers:
                broker.versions["DeleteGroups"] = (0, -1)
            admin.script("FindCoordinator", found)
            assert isinstance(await admin.error(admin.delete_groups(["g1"])), UnsupportedVersionException)
            assert admin.network.now_ms < 100

        live(scenario)


def test_closing_ends_calls() -> None:
    async def scenario(admin: Admin) -> None:
        admin.script("CreateTopics", lambda _: None)
        waiting = asyncio.ensure_future(admin.create_topics(NEW, timeout_ms=1000))
        await asyncio.sleep(0.1)
        await admin._calls.network.close()
        assert str(await admin.error(waiting)) == "the client is closed"

    live(scenario)


def deleted(codes: dict[int, int]) -> Callable[[Asked], Message]:
    """Answers DeleteRecords with these error codes by partition, or 7."""

    def answer(asked: Asked) -> Message:
        (topic,) = asked.message.topics
        results = [
            DeleteRecordsPartitionResult(
                partition_index=partition.partition_index,
                low_watermark=7,
                error_code=codes.get(partition.partition_index, 0),
            )
            for partition in topic.partitions
        ]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name=topic.name, partitions=results)])

    return answer


def _indexes(asked: Asked) -> list[int]:
    return [partition.partition_index for partition in asked.message.topics[0].partitions]


def found(asked: Asked) -> Message:
    """The coordinator's node id is the last digit of the key."""
    keys = asked.message.coordinator_keys
    return FindCoordinatorResponse(coordinators=[Coordinator(key=key, node_id=int(key[-1])) for key in keys])


def groups_deleted(asked: Asked) -> Message:
    """All of them."""
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in asked.message.groups_names])
