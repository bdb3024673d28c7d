"""Admin calls for groups and their committed offsets."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sluice.client.committed_offsets import (
    LAST_BY_NAME,
    OffsetAndMetadata,
    commit_topics,
    committed_offset,
    fetched_offsets,
    offset_fetch,
)
from sluice.client.errors import raise_for
from sluice.client.metadata.cluster import TopicPartition, by_partition
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis import describe_groups
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from sluice.protocol.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sluice.protocol.apis.offset_fetch import OffsetFetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, outcome, raise_error
from .lookups import find_coordinators

M = TypeVar("M", bound=Message)

_COORDINATOR_ERRORS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@checks_arguments
class GroupAdmin:
    _calls: AdminCalls

    async def list_groups(self, *, timeout_ms: Milliseconds | None = None) -> dict[str, ListedGroup]:
        """Return groups by id."""
        request = request_of(ListGroupsRequest())
        responses = await self._calls.call_all_brokers(request, ListGroupsResponse, raise_error, timeout_ms)
        return {group.group_id: group for response in responses for group in response.groups}

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, describe_groups.DescribedGroup]:
        """Return classic groups, with the metadata and assignments of their members."""
        return await self._calls.call_by_key(
            group_ids,
            find_coordinators,
            lambda wanted: request_of(DescribeGroupsRequest(groups=wanted)),
            DescribeGroupsResponse,
            lambda response: {group.group_id: outcome(group, group) for group in response.groups},
            timeout_ms,
        )

    async def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, None]:
        """Delete groups without members, with their offsets."""
        return await self._calls.call_by_key(
            group_ids,
            find_coordinators,
            lambda wanted: request_of(DeleteGroupsRequest(groups_names=wanted)),
            DeleteGroupsResponse,
            lambda response: {group.group_id: outcome(group, None) for group in response.results},
            timeout_ms,
        )

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return committed offsets, of all partitions by default; None for a partition without one."""
        # Version 2 is the first that can request all partitions, version 7 the first with stable offsets.
        oldest = 7 if require_stable else 2 if partitions is None else 0
        request = offset_fetch(group_id, partitions, require_stable=require_stable, oldest=oldest)
        response = await self._call_coordinator(group_id, request, OffsetFetchResponse, _check_offsets, timeout_ms)
        return {partition: committed_offset(found) for partition, found in fetched_offsets(response).items()}

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[TopicPartition, None]:
        """Commit offsets for a group without members."""
        message = OffsetCommitRequest(
            group_id=group_id, topics=commit_topics(offsets, OffsetCommitRequestTopic, OffsetCommitRequestPartition)
        )
        request = request_of(message, latest=LAST_BY_NAME)
        response = await self._call_coordinator(group_id, request, OffsetCommitResponse, _check_commit, timeout_ms)
        return Outcomes(
            {partition: outcome(result, None) for partition, result in by_partition(response.topics).items()}
        )

    async def _call_coordinator(
        self, group_id: str, request: Request, response: type[M], check: Callable[[M], None], timeout_ms: int | None
    ) -> M:
        def checked(response: M) -> Mapping[str, M]:
            check(response)
            return {group_id: response}

        outcomes = await self._calls.call_by_key(
            [group_id], find_coordinators, lambda _: request, response, checked, timeout_ms
        )
        return outcomes[group_id]


def _check_commit(response: OffsetCommitResponse) -> None:
    codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
    for code in codes & _COORDINATOR_ERRORS:
        raise_for(code)


def _check_offsets(response: OffsetFetchResponse) -> None:
    of_groups = (group.error_code for group in response.groups)
    of_partitions = (partition.error_code for partition in fetched_offsets(response).values())
    for code in (response.error_code, *of_groups, *of_partitions):
        raise_for(code)
