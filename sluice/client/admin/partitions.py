"""Admin calls for partitions: records and offsets."""

from collections.abc import Mapping

from sluice.client.metadata.cluster import TopicPartition, by_partition, values_by_topic
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from sluice.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, RequestSource, outcome
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
            lambda response: {
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
            lambda response: {
                partition: outcome(result, result) for partition, result in by_partition(response.topics).items()
            },
            timeout_ms,
        )
