"""Admin calls for share groups and their start offsets (KIP-932)."""

from collections.abc import Iterable, Mapping

from sluice.client.errors import raise_for
from sluice.client.metadata.cluster import TopicPartition, by_topic
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis import share_group_describe
from sluice.protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from sluice.protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from sluice.protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponsePartition,
)
from sluice.protocol.apis.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import Outcomes, outcome, raise_error
from .groups import GroupAdmin
from .lookups import find_group_coordinators

ShareOffset = DescribeShareGroupOffsetsResponsePartition  # start offset, leader epoch and lag; -1: none


@checks_arguments
class ShareGroupAdmin(GroupAdmin):
    async def describe_share_groups(
        self, group_ids: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, share_group_describe.DescribedGroup]:
        """Return share groups with their members; GROUP_ID_NOT_FOUND for other groups."""
        return await self._calls.call_by_key(
            group_ids,
            find_group_coordinators,
            lambda wanted: request_of(ShareGroupDescribeRequest(group_ids=wanted)),
            ShareGroupDescribeResponse,
            lambda response, _: {group.group_id: outcome(group, group) for group in response.groups},
            timeout_ms,
        )

    async def list_share_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[TopicPartition, ShareOffset]:
        """Return start offsets and lags, of all partitions by default."""
        topics = None if partitions is None else by_topic(partitions)
        wanted = DescribeShareGroupOffsetsRequestGroup(
            group_id=group_id,
            topics=None
            if topics is None
            else [
                DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=indexes)
                for topic, indexes in topics.items()
            ],
        )
        response = await self._call_coordinator(
            group_id,
            request_of(DescribeShareGroupOffsetsRequest(groups=[wanted])),
            DescribeShareGroupOffsetsResponse,
            _check_group,
            timeout_ms,
        )
        return Outcomes(
            {
                TopicPartition(topic.topic_name, one.partition_index): outcome(one, one)
                for topic in response.groups[0].topics
                for one in topic.partitions
            }
        )

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Set the start offsets of a group without members."""
        message = AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=offsets[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        response = await self._call_coordinator(
            group_id, request_of(message), AlterShareGroupOffsetsResponse, raise_error, timeout_ms
        )
        return Outcomes(
            {
                TopicPartition(topic.topic_name, one.partition_index): outcome(one, None)
                for topic in response.responses
                for one in topic.partitions
            }
        )

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, None]:
        """Delete the start offsets of topics in a group without members."""
        named = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
        request = request_of(DeleteShareGroupOffsetsRequest(group_id=group_id, topics=named))
        response = await self._call_coordinator(
            group_id, request, DeleteShareGroupOffsetsResponse, raise_error, timeout_ms
        )
        return Outcomes({topic.topic_name: outcome(topic, None) for topic in response.responses})


def _check_group(response: DescribeShareGroupOffsetsResponse) -> None:
    raise_for(response.groups[0].error_code)
