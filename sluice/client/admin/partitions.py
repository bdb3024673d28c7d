"""Admin calls for partitions: records, offsets, leaders and replicas."""

from collections.abc import Iterable, Mapping

from sluice.client.metadata.cluster import TopicPartition, by_partition, by_topic, values_by_topic
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
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, RequestSource, controller, outcome, raise_error
from .lookups import find_leaders

# Special timestamps of `list_offsets`, and the first versions with them.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
_OFFSETS_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


@checks_arguments
class PartitionAdmin:
    _calls: AdminCalls

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[TopicPartition, int]:
        """Delete records below an offset (-1: all); return the new log start offsets. Sent to the leaders."""

        def build(partitions: list[TopicPartition]) -> RequestSource:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in pairs
                    ],
                )
                for topic, pairs in values_by_topic({one: before[one] for one in partitions}).items()
            ]
            return lambda left_ms: request_of(DeleteRecordsRequest(topics=topics, timeout_ms=left_ms))

        return await self._calls.call_by_key(
            before,
            find_leaders,
            build,
            DeleteRecordsResponse,
            lambda response, _: {
                partition: outcome(result, result.low_watermark)
                for partition, result in by_partition(response.topics).items()
            },
            timeout_ms,
        )

    async def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[TopicPartition, ListOffsetsPartitionResponse]:
        """Return the first offset at or after a timestamp in ms, or at LATEST, EARLIEST, ... Sent to the leaders."""
        oldest = max([1 + read_committed, *(_OFFSETS_SINCE.get(timestamp, 1) for timestamp in timestamps.values())])

        def build(partitions: list[TopicPartition]) -> RequestSource:
            topics = [
                ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsPartition(partition_index=index, timestamp=at) for index, at in pairs],
                )
                for topic, pairs in values_by_topic({one: timestamps[one] for one in partitions}).items()
            ]

            def request(left_ms: int) -> Request:
                message = ListOffsetsRequest(
                    replica_id=-1, isolation_level=int(read_committed), topics=topics, timeout_ms=left_ms
                )
                return request_of(message, oldest=oldest)

            return request

        return await self._calls.call_by_key(
            timestamps,
            find_leaders,
            build,
            ListOffsetsResponse,
            lambda response, _: {
                partition: outcome(result, result) for partition, result in by_partition(response.topics).items()
            },
            timeout_ms,
        )

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[TopicPartition, None]:
        """Elect preferred replicas; `unclean`: any replica if none is in sync. All partitions by default."""
        topics = None if partitions is None else by_topic(partitions).items()
        wanted = None if topics is None else [TopicPartitions(topic=name, partitions=found) for name, found in topics]

        def request(left_ms: int) -> Request:
            message = ElectLeadersRequest(election_type=int(unclean), topic_partitions=wanted, timeout_ms=left_ms)
            return request_of(message, oldest=int(unclean))

        response = await self._calls.call(controller, request, ElectLeadersResponse, timeout_ms, raise_error)
        return Outcomes(
            {
                TopicPartition(topic.topic, result.partition_id): outcome(result, None)
                for topic in response.replica_election_results
                for result in topic.partition_result
            }
        )

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, list[int] | None], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Move partitions to other replicas; None cancels a reassignment. Sent to the controller."""
        topics = [
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=index, replicas=ids) for index, ids in pairs],
            )
            for topic, pairs in values_by_topic(replicas).items()
        ]
        response = await self._calls.call(
            controller,
            lambda left_ms: request_of(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=left_ms)),
            AlterPartitionReassignmentsResponse,
            timeout_ms,
            raise_error,
        )
        return Outcomes(
            {partition: outcome(result, None) for partition, result in by_partition(response.responses).items()}
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: Milliseconds | None = None
    ) -> dict[TopicPartition, OngoingPartitionReassignment]:
        """Return ongoing reassignments, of all partitions by default. Sent to the controller."""
        wanted = None
        if partitions is not None:
            wanted = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(partitions).items()
            ]
        response = await self._calls.call(
            controller,
            lambda left_ms: request_of(ListPartitionReassignmentsRequest(topics=wanted, timeout_ms=left_ms)),
            ListPartitionReassignmentsResponse,
            timeout_ms,
            raise_error,
        )
        return by_partition(response.topics)
