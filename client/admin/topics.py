"""Topics, their partitions and records, as an admin client makes, changes and describes them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice.client.errors import KafkaException, UnsupportedVersionException
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from sluice.protocol.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from sluice.protocol.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from sluice.protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from sluice.protocol.message import Message

from .calls import AdminCalls, NodeProvider, Outcomes, least_loaded, outcome_of

_BY_TOPIC_STATE = 6  # version of DeleteTopics that has them, instead of names


class NewTopic(NamedTuple):
    """A topic to make; -1: the broker's default. `assignments`: the replicas of each partition, instead of numbers."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}
    assignments: Mapping[int, list[int]] = {}


class TopicAdmin:
    """Calls about topics."""

    _calls: AdminCalls

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, CreatableTopicResult]:
        """Makes topics; what became of each by its name. Asked of the controller."""
        by_name = {topic.name: topic for topic in topics}
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(node: NodeProvider, names: list[str]) -> dict[str, CreatableTopicResult | KafkaException]:
            creatable = [_creatable(by_name[name]) for name in names]

            def ask(left_ms: int) -> Request:
                message = CreateTopicsRequest(topics=creatable, timeout_ms=left_ms, validate_only=validate_only)
                return request_of(message, oldest=int(validate_only))

            answer = await self._calls.once(node, ask, CreateTopicsResponse, deadline_ms)
            return {topic.name: outcome_of(topic.error_code, topic.error_message, topic) for topic in answer.topics}

        return await self._calls.of_controller(by_name, fetch, deadline_ms)

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes topics. Asked of the controller."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(node: NodeProvider, wanted: list[str]) -> dict[str, KafkaException | None]:
            def ask(left_ms: int) -> Request:
                def build(version: int) -> Message:
                    if version < _BY_TOPIC_STATE:
                        return DeleteTopicsRequest(topic_names=wanted, timeout_ms=left_ms)
                    topics = [DeleteTopicState(name=name) for name in wanted]
                    return DeleteTopicsRequest(topics=topics, timeout_ms=left_ms)

                return Request(DeleteTopicsRequest.API_KEY, build)

            answer = await self._calls.once(node, ask, DeleteTopicsResponse, deadline_ms)
            return {
                topic.name: outcome_of(topic.error_code, topic.error_message, None)
                for topic in answer.responses
                if topic.name is not None
            }

        return await self._calls.of_controller(names, fetch, deadline_ms)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, list[list[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, None]:
        """Gives topics so many partitions in all. `assignments`: replicas of the new ones. Asked of the controller."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        def topic(name: str) -> CreatePartitionsTopic:
            assigned = (assignments or {}).get(name)
            replicas = None if assigned is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
            return CreatePartitionsTopic(name=name, count=counts[name], assignments=replicas)

        async def fetch(node: NodeProvider, names: list[str]) -> dict[str, KafkaException | None]:
            topics = [topic(name) for name in names]

            def ask(left_ms: int) -> Request:
                message = CreatePartitionsRequest(topics=topics, timeout_ms=left_ms, validate_only=validate_only)
                return request_of(message)

            answer = await self._calls.once(node, ask, CreatePartitionsResponse, deadline_ms)
            return {result.name: outcome_of(result.error_code, result.error_message, None) for result in answer.results}

        return await self._calls.of_controller(counts, fetch, deadline_ms)

    async def list_topics(self, *, timeout_ms: int | None = None) -> dict[str, MetadataResponseTopic]:
        """All topics that we may know of, internal ones too, by name."""
        # Of version 0 an empty array would mean all topics, and null cannot be said.
        request = request_of(MetadataRequest(topics=None), oldest=1)
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(least_loaded, lambda _: request, MetadataResponse, deadline_ms)
        return {topic.name: topic for topic in answer.topics if topic.name is not None}

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, DescribeTopicPartitionsResponseTopic | MetadataResponseTopic]:
        """Partitions, leaders, replicas: by DescribeTopicPartitions (KIP-966), or Metadata where that is not known."""
        wanted = sorted(set(names))
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        try:
            topics = await self._describe_in_pages(wanted, deadline_ms)
        except UnsupportedVersionException:
            return await self._describe_by_metadata(wanted, deadline_ms)
        return Outcomes({name: outcome_of(topic.error_code, None, topic) for name, topic in topics.items()})

    async def _describe_in_pages(
        self, names: list[str], deadline_ms: float
    ) -> dict[str, DescribeTopicPartitionsResponseTopic]:
        topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
        cursor: Cursor | None = None
        while True:
            page = await self._describe_page(names, cursor, deadline_ms)
            for topic in page.topics:
                known = topics.setdefault(topic.name or "", topic)
                if known is not topic:  # a topic may go on on the next page
                    known.partitions += topic.partitions
            cursor = page.next_cursor
            if cursor is None:
                return topics

    async def _describe_page(
        self, names: list[str], cursor: Cursor | None, deadline_ms: float
    ) -> DescribeTopicPartitionsResponse:
        left = [TopicRequest(name=name) for name in names if cursor is None or name >= cursor.topic_name]
        request = request_of(DescribeTopicPartitionsRequest(topics=left, cursor=cursor))
        return await self._calls.call(least_loaded, lambda _: request, DescribeTopicPartitionsResponse, deadline_ms)

    async def _describe_by_metadata(
        self, names: list[str], deadline_ms: float
    ) -> Outcomes[str, DescribeTopicPartitionsResponseTopic | MetadataResponseTopic]:
        message = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        request = request_of(message, oldest=4)
        answer = await self._calls.call(least_loaded, lambda _: request, MetadataResponse, deadline_ms)
        return Outcomes({topic.name or "": outcome_of(topic.error_code, None, topic) for topic in answer.topics})


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in topic.assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
