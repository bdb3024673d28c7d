"""Groups and the offsets they committed, as an admin client sees to them. Each group's coordinator is asked, and all
brokers for the list of groups.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from sluice.client.errors import KafkaException, raise_for
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis import consumer_group_describe, describe_groups
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from sluice.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from sluice.protocol.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .calls import AdminCalls, NodeProvider, Outcomes, broker, outcome_of
from .lookups import GROUP, coordinators
from .partitions import by_topic

V = TypeVar("V")
M = TypeVar("M", bound=Message)

_LAST_BY_NAME = 9  # version of OffsetFetch and OffsetCommit; later ones have topic ids
_FIRST_OF_MANY_GROUPS = 8  # version of OffsetFetch
_FIRST_OF_MANY_MEMBERS = 3  # version of LeaveGroup
_OF_THE_COORDINATOR = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class OffsetAndMetadata(NamedTuple):
    """What was committed for a partition: the next offset to read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH


class GroupAdmin:
    """Calls about groups."""

    _calls: AdminCalls

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout_ms: int | None = None
    ) -> dict[str, ListedGroup]:
        """All groups by their ids, those in some states and of some types where these are given."""
        message = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        oldest = 5 if message.types_filter else 4 if message.states_filter else 0
        request = request_of(message, oldest=oldest)
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def of_broker(node_id: int) -> ListGroupsResponse:
            return await self._calls.call(
                broker(node_id),
                lambda _: request,
                ListGroupsResponse,
                deadline_ms,
                lambda answer: raise_for(answer.error_code),
            )

        answers = await asyncio.gather(*map(of_broker, await self._calls.broker_ids(deadline_ms)))
        return {group.group_id: group for answer in answers for group in answer.groups}

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, describe_groups.DescribedGroup]:
        """Groups of the classic protocol, with the bytes that their members gave and got."""

        def found(answer: DescribeGroupsResponse) -> dict[str, describe_groups.DescribedGroup | KafkaException]:
            return {group.group_id: outcome_of(group.error_code, group.error_message, group) for group in answer.groups}

        def message(wanted: list[str]) -> Message:
            return DescribeGroupsRequest(groups=wanted)

        return await self._of_groups(group_ids, message, DescribeGroupsResponse, found, timeout_ms)

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, consumer_group_describe.DescribedGroup]:
        """Groups of KIP-848's protocol; another is GROUP_ID_NOT_FOUND."""

        def found(
            answer: ConsumerGroupDescribeResponse,
        ) -> dict[str, consumer_group_describe.DescribedGroup | KafkaException]:
            return {group.group_id: outcome_of(group.error_code, group.error_message, group) for group in answer.groups}

        def message(wanted: list[str]) -> Message:
            return ConsumerGroupDescribeRequest(group_ids=wanted)

        return await self._of_groups(group_ids, message, ConsumerGroupDescribeResponse, found, timeout_ms)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes groups without members, with their offsets."""

        def found(answer: DeleteGroupsResponse) -> dict[str, KafkaException | None]:
            return {group.group_id: outcome_of(group.error_code, group.error_message, None) for group in answer.results}

        def message(wanted: list[str]) -> Message:
            return DeleteGroupsRequest(groups_names=wanted)

        return await self._of_groups(group_ids, message, DeleteGroupsResponse, found, timeout_ms)

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What a group committed, of these partitions or of all; None where it has committed nothing."""
        asked = None if partitions is None else by_topic(partitions)

        def build(version: int) -> Message:
            return _offset_fetch(version, group_id, asked, require_stable=require_stable)

        # Before version 2 all partitions cannot be asked for; before 7 nothing is known of transactions' offsets.
        oldest = 7 if require_stable else 2 if asked is None else 0
        request = Request(OffsetFetchRequest.API_KEY, build, oldest=oldest, latest=_LAST_BY_NAME)
        answer = await self._of_group(group_id, request, OffsetFetchResponse, _check_offsets, timeout_ms)
        return dict(_committed(answer))

    async def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Commits offsets for a group that has no members."""
        message = OffsetCommitRequest(
            group_id=group_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[_commit(index, offsets[TopicPartition(topic, index)]) for index in indexes],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        request = request_of(message, latest=_LAST_BY_NAME)
        answer = await self._of_group(group_id, request, OffsetCommitResponse, _check_commit, timeout_ms)
        return Outcomes(
            {
                TopicPartition(topic.name, partition.partition_index): outcome_of(partition.error_code, None, None)
                for topic in answer.topics
                for partition in topic.partitions
            }
        )

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Forgets what a group committed."""
        message = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        answer = await self._of_group(
            group_id,
            request_of(message),
            OffsetDeleteResponse,
            lambda answer: raise_for(answer.error_code),
            timeout_ms,
        )
        return Outcomes(
            {
                TopicPartition(topic.name, partition.partition_index): outcome_of(partition.error_code, None, None)
                for topic in answer.topics
                for partition in topic.partitions
            }
        )

    async def remove_members_from_consumer_group(
        self,
        group_id: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, None]:
        """Removes static members by their instance ids, or all members, by member id where they have no other."""
        if instance_ids is None:
            group = (await self.describe_classic_groups([group_id], timeout_ms=timeout_ms))[group_id]
            members = [
                MemberIdentity(
                    member_id="" if member.group_instance_id else member.member_id,
                    group_instance_id=member.group_instance_id,
                    reason=reason,
                )
                for member in group.members
            ]
        else:
            members = [MemberIdentity(group_instance_id=name, reason=reason) for name in instance_ids]
        message = LeaveGroupRequest(group_id=group_id, members=members)
        request = request_of(message, oldest=_FIRST_OF_MANY_MEMBERS)
        answer = await self._of_group(
            group_id, request, LeaveGroupResponse, lambda answer: raise_for(answer.error_code), timeout_ms
        )
        return Outcomes(
            {
                member.group_instance_id or member.member_id: outcome_of(member.error_code, None, None)
                for member in answer.members
            }
        )

    async def _of_groups(
        self,
        group_ids: Iterable[str],
        message: Callable[[list[str]], Message],
        response: type[M],
        found: Callable[[M], Mapping[str, V | KafkaException]],
        timeout_ms: int | None,
    ) -> Outcomes[str, V]:
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(node: NodeProvider, wanted: list[str]) -> Mapping[str, V | KafkaException]:
            return found(await self._calls.once(node, lambda _: request_of(message(wanted)), response, deadline_ms))

        return await self._calls.of_keys(group_ids, coordinators(self._calls, GROUP, deadline_ms), fetch, deadline_ms)

    async def _of_group(
        self,
        group_id: str,
        request: Request,
        response: type[M],
        check: Callable[[M], None],
        timeout_ms: int | None,
    ) -> M:
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(node: NodeProvider, wanted: list[str]) -> Mapping[str, M | KafkaException]:
            answer = await self._calls.once(node, lambda _: request, response, deadline_ms)
            check(answer)
            return dict.fromkeys(wanted, answer)

        found = await self._calls.of_keys([group_id], coordinators(self._calls, GROUP, deadline_ms), fetch, deadline_ms)
        return found[group_id]


def _commit(index: int, committed: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


def _check_commit(answer: OffsetCommitResponse) -> None:
    # What is wrong with the coordinator is told of each partition.
    codes = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    for code in codes & _OF_THE_COORDINATOR:
        raise_for(code)


def _offset_fetch(
    version: int, group_id: str, asked: Mapping[str, list[int]] | None, *, require_stable: bool
) -> OffsetFetchRequest:
    if version < _FIRST_OF_MANY_GROUPS:
        topics = None
        if asked is not None:
            topics = [OffsetFetchRequestTopic(name=name, partition_indexes=asked[name]) for name in asked]
        return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)
    wanted = None
    if asked is not None:
        wanted = [OffsetFetchRequestTopics(name=name, partition_indexes=asked[name]) for name in asked]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=wanted)
    return OffsetFetchRequest(groups=[group], require_stable=require_stable)


def _check_offsets(answer: OffsetFetchResponse) -> None:
    raise_for(answer.error_code)
    for group in answer.groups:
        raise_for(group.error_code)
    for _, partition in _partitions(answer):
        raise_for(partition.error_code)


def _partitions(
    answer: OffsetFetchResponse,
) -> list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]:
    old = [(topic.name, partition) for topic in answer.topics for partition in topic.partitions]
    new = [
        (topic.name, partition) for group in answer.groups for topic in group.topics for partition in topic.partitions
    ]
    return [*old, *new]


def _committed(answer: OffsetFetchResponse) -> Iterable[tuple[TopicPartition, OffsetAndMetadata | None]]:
    for topic, partition in _partitions(answer):
        committed = None
        if partition.committed_offset >= 0:
            committed = OffsetAndMetadata(
                partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
            )
        yield TopicPartition(topic, partition.partition_index), committed
