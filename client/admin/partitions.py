"""Partitions: their records, offsets, leaders and replicas, as an admin client sees to them."""

from collections.abc import Iterable, Mapping

from sluice.client.errors import KafkaException, raise_for
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from sluice.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from sluice.protocol.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from sluice.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)

from .calls import AdminCalls, NodeProvider, Outcomes, controller, outcome_of
from .lookups import leaders

# What `list_offsets` takes beside a timestamp, and the version of ListOffsets that has it.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
_OFFSETS_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


class PartitionAdmin:
    """Calls about partitions."""

    _calls: AdminCalls

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, int]:
        """Deletes records below an offset (-1: all); the new first offsets. Asked of the leaders."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(
            node: NodeProvider, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, int | KafkaException]:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=index, offset=before[TopicPartition(topic, index)])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]

            def ask(left_ms: int) -> Request:
                return request_of(DeleteRecordsRequest(topics=topics, timeout_ms=left_ms))

            answer = await self._calls.once(node, ask, DeleteRecordsResponse, deadline_ms)
            return {
                TopicPartition(topic.name, partition.partition_index): outcome_of(
                    partition.error_code, None, partition.low_watermark
                )
                for topic in answer.topics
                for partition in topic.partitions
            }

        return await self._calls.of_keys(before, leaders(self._calls, deadline_ms), fetch, deadline_ms)

    async def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[TopicPartition, ListOffsetsPartitionResponse]:
        """The first offsets at or after timestamps, or LATEST, EARLIEST, MAX_TIMESTAMP, ... Asked of the leaders."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        oldest = max([1, *(_OFFSETS_SINCE.get(timestamp, 1) for timestamp in timestamps.values())])

        async def fetch(
            node: NodeProvider, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, ListOffsetsPartitionResponse | KafkaException]:
            topics = [
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=timestamps[TopicPartition(topic, index)])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]

            def ask(left_ms: int) -> Request:
                message = ListOffsetsRequest(
                    replica_id=-1, isolation_level=int(read_committed), topics=topics, timeout_ms=left_ms
                )
                return request_of(message, oldest=max(oldest, 2 * read_committed))

            answer = await self._calls.once(node, ask, ListOffsetsResponse, deadline_ms)
            return {
                TopicPartition(topic.name, partition.partition_index): outcome_of(partition.error_code, None, partition)
                for topic in answer.topics
                for partition in topic.partitions
            }

        return await self._calls.of_keys(timestamps, leaders(self._calls, deadline_ms), fetch, deadline_ms)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[TopicPartition, None]:
        """Makes preferred replicas leaders, or any where none is in sync; of all partitions without `partitions`."""
        asked = None if partitions is None else by_topic(partitions)
        wanted = None if asked is None else [TopicPartitions(topic=name, partitions=asked[name]) for name in asked]

        def ask(left_ms: int) -> Request:
            message = ElectLeadersRequest(election_type=int(unclean), topic_partitions=wanted, timeout_ms=left_ms)
            return request_of(message, oldest=int(unclean))

        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(
            controller, ask, ElectLeadersResponse, deadline_ms, lambda answer: raise_for(answer.error_code)
        )
        return Outcomes(
            {
                TopicPartition(topic.topic, result.partition_id): outcome_of(
                    result.error_code, result.error_message, None
                )
                for topic in answer.replica_election_results
                for result in topic.partition_result
            }
        )

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, list[int] | None], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Moves partitions to other replicas; None calls a move off. Asked of the controller."""
        topics = [
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas[TopicPartition(topic, index)])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(replicas).items()
        ]

        def ask(left_ms: int) -> Request:
            return request_of(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=left_ms))

        answer = await self._calls.call(
            controller,
            ask,
            AlterPartitionReassignmentsResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )
        return Outcomes(
            {
                TopicPartition(topic.name, partition.partition_index): outcome_of(
                    partition.error_code, partition.error_message, None
                )
                for topic in answer.responses
                for partition in topic.partitions
            }
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OngoingPartitionReassignment]:
        """Moves that are under way, of these partitions or of all. Asked of the controller."""
        asked = None if partitions is None else by_topic(partitions)
        wanted = None
        if asked is not None:
            wanted = [ListPartitionReassignmentsTopics(name=name, partition_indexes=asked[name]) for name in asked]

        def ask(left_ms: int) -> Request:
            return request_of(ListPartitionReassignmentsRequest(topics=wanted, timeout_ms=left_ms))

        answer = await self._calls.call(
            controller,
            ask,
            ListPartitionReassignmentsResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in answer.topics
            for partition in topic.partitions
        }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Indexes by topic."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics
