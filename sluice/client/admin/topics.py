"""Admin calls for topics."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from sluice.client.errors import UnsupportedVersionException
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis import ApiKey
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
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from sluice.protocol.message import Message
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import CONTROLLER_RETRIES, AdminCalls, Outcomes, RequestSource, find_controller, least_loaded, outcome

_FIRST_WITH_TOPIC_STATES = 6  # version of DeleteTopics with topic states instead of names


class NewTopic(NamedTuple):
    """A topic to create. -1: the broker's default. `assignments`: replicas by partition, in place of both numbers."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}
    assignments: Mapping[int, list[int]] = {}


@checks_arguments
class TopicAdmin:
    _calls: AdminCalls

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, CreatableTopicResult]:
        """Create topics; the outcomes are by name. Sent to the controller."""
        by_name = {topic.name: topic for topic in topics}

        def build(names: list[str]) -> RequestSource:
            creatable = [_creatable(by_name[name]) for name in names]

            def request(left_ms: int) -> Request:
                message = CreateTopicsRequest(topics=creatable, timeout_ms=left_ms, validate_only=validate_only)
                return request_of(message, oldest=int(validate_only))

            return request

        return await self._calls.call_by_key(
            by_name,
            find_controller,
            build,
            CreateTopicsResponse,
            lambda response: {topic.name: outcome(topic, topic) for topic in response.topics},
            timeout_ms,
            CONTROLLER_RETRIES,
        )

    async def delete_topics(
        self, names: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, None]:
        """Delete topics. Sent to the controller."""

        def build(wanted: list[str]) -> RequestSource:
            states = [DeleteTopicState(name=name) for name in wanted]

            def message(left_ms: int, version: int) -> Message:
                if version < _FIRST_WITH_TOPIC_STATES:
                    return DeleteTopicsRequest(topic_names=wanted, timeout_ms=left_ms)
                return DeleteTopicsRequest(topics=states, timeout_ms=left_ms)

            return lambda left_ms: Request(ApiKey.DELETE_TOPICS, partial(message, left_ms))

        return await self._calls.call_by_key(
            names,
            find_controller,
            build,
            DeleteTopicsResponse,
            lambda response: {
                topic.name: outcome(topic, None) for topic in response.responses if topic.name is not None
            },
            timeout_ms,
            CONTROLLER_RETRIES,
        )

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, list[list[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[str, None]:
        """Increase partition counts; `assignments`: replicas of new partitions. Sent to the controller."""

        def topic(name: str) -> CreatePartitionsTopic:
            assigned = (assignments or {}).get(name)
            replicas = None if assigned is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
            return CreatePartitionsTopic(name=name, count=counts[name], assignments=replicas)

        def build(names: list[str]) -> RequestSource:
            topics = [topic(name) for name in names]
            return lambda left_ms: request_of(
                CreatePartitionsRequest(topics=topics, timeout_ms=left_ms, validate_only=validate_only)
            )

        return await self._calls.call_by_key(
            counts,
            find_controller,
            build,
            CreatePartitionsResponse,
            lambda response: {result.name: outcome(result, None) for result in response.results},
            timeout_ms,
            CONTROLLER_RETRIES,
        )

    async def list_topics(self, *, timeout_ms: Milliseconds | None = None) -> dict[str, MetadataResponseTopic]:
        """Return all topics, including internal ones, that the client may describe."""
        # In version 0, an empty array requests all topics instead of null.
        request = request_of(MetadataRequest(topics=None), oldest=1)
        response = await self._calls.call(least_loaded, request, MetadataResponse, timeout_ms)
        return {topic.name: topic for topic in response.topics if topic.name is not None}

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, DescribeTopicPartitionsResponseTopic | MetadataResponseTopic]:
        """Return partitions, leaders and replicas, from DescribeTopicPartitions (KIP-966) or an older Metadata."""
        wanted = sorted(set(names))
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        try:
            topics = await self._describe_in_pages(wanted, deadline_ms)
        except UnsupportedVersionException:
            return await self._describe_by_metadata(wanted, deadline_ms)
        return Outcomes({name: outcome(topic, topic) for name, topic in topics.items()})

    async def _describe_in_pages(
        self, names: list[str], deadline_ms: float
    ) -> dict[str, DescribeTopicPartitionsResponseTopic]:
        topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
        cursor: Cursor | None = None
        while True:
            left = [TopicRequest(name=name) for name in names if cursor is None or name >= cursor.topic_name]
            request = request_of(DescribeTopicPartitionsRequest(topics=left, cursor=cursor))
            page = await self._calls.call_until(deadline_ms, least_loaded, request, DescribeTopicPartitionsResponse)
            for topic in page.topics:
                known = topics.setdefault(topic.name or "", topic)
                if known is not topic:  # a topic can continue on the next page
                    known.partitions += topic.partitions
            cursor = page.next_cursor
            if cursor is None:
                return topics

    async def _describe_by_metadata(
        self, names: list[str], deadline_ms: float
    ) -> Outcomes[str, DescribeTopicPartitionsResponseTopic | MetadataResponseTopic]:
        message = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        response = await self._calls.call_until(
            deadline_ms, least_loaded, request_of(message, oldest=4), MetadataResponse
        )
        return Outcomes({topic.name or "": outcome(topic, topic) for topic in response.topics})


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
