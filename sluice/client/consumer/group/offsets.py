"""OffsetCommit and OffsetFetch of a consumer (that part of Kafka's ConsumerCoordinator).

`commit` and `committed` retry with a growing backoff per call (KIP-580).
"""

import logging
from collections.abc import Callable, Iterable, Mapping

from sluice.client.backoff import Backoff
from sluice.client.committed_offsets import (
    LAST_BY_NAME,
    OffsetAndMetadata,
    commit_topics,
    committed_offset,
    fetched_offsets,
    offset_fetch,
)
from sluice.client.errors import KafkaException, RetriableException, error_name, exception_of
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from sluice.protocol.apis.offset_fetch import OffsetFetchResponse
from sluice.protocol.errors import ErrorCode

from .abstract_coordinator import MOVED, GroupCoordinator
from .membership import Generation

log = logging.getLogger("sluice.client")

_FIRST_OF_MEMBERS = 2
_RETRIED = frozenset(
    {*MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class CommitFailedError(KafkaException):
    """A commit of a consumer that the group has removed."""


class GroupOffsets:
    def __init__(
        self,
        coordinator: GroupCoordinator,
        backoff: Backoff,
        generation: Callable[[], Generation],
        rejected: Callable[[Generation, int], None],
    ) -> None:
        """Store callbacks: `generation` (raises if no commits are allowed), `rejected` for an invalid generation."""
        self._coordinator = coordinator
        self._backoff = backoff
        self._generation = generation
        self._rejected = rejected

    async def commit(self, offsets: Offsets, deadline_ms: float) -> None:
        """Commit, with retries until the deadline; raise CommitFailedError, TimeoutException, or a fatal error."""
        attempts = 0
        while offsets:
            try:
                await self.commit_once(offsets, deadline_ms)
            except RetriableException as error:
                log.info("commit is retried", extra={"error": str(error)})
                await self._coordinator.pause(self._backoff.backoff(attempts), deadline_ms)
                attempts += 1
            else:
                return

    async def commit_once(self, offsets: Offsets, deadline_ms: float) -> None:
        """Commit without retries; raises RetriableException too."""
        generation = self._generation()
        request = request_of(self._commit(offsets, generation), oldest=_FIRST_OF_MEMBERS, latest=LAST_BY_NAME)
        response = await self._coordinator.send(request, deadline_ms)
        assert isinstance(response, OffsetCommitResponse), type(response).__name__
        for topic in response.topics:
            for partition in topic.partitions:
                self._check_commit(partition.error_code, generation, f"{topic.name}-{partition.partition_index}")

    async def committed(
        self, partitions: Iterable[TopicPartition], deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        wanted = list(partitions)
        attempts = 0
        while True:
            try:
                return await self._committed(wanted, deadline_ms)
            except RetriableException as error:
                log.info("lookup of committed offsets is retried", extra={"error": str(error)})
                await self._coordinator.pause(self._backoff.backoff(attempts), deadline_ms)
                attempts += 1

    def _commit(self, offsets: Offsets, generation: Generation) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=self._coordinator.group_id,
            generation_id_or_member_epoch=generation.id,
            member_id=generation.member_id,
            group_instance_id=generation.instance_id,
            topics=commit_topics(offsets, OffsetCommitRequestTopic, OffsetCommitRequestPartition),
        )

    def _check_commit(self, code: int, generation: Generation, partition: str) -> None:
        if not code:
            return
        if code in MOVED or code == ErrorCode.REQUEST_TIMED_OUT:
            self._coordinator.forget(error_name(code))
        if code in _RETRIED:
            raise RetriableException(f"{partition}: {exception_of(code)}")
        if code in _NOT_A_MEMBER or code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejected(generation, code)
        if code in _NOT_A_MEMBER:
            raise CommitFailedError("the group has rebalanced without this member, which took too long between polls")
        raise exception_of(code, f"{partition}: {exception_of(code)}")

    async def _committed(
        self, partitions: list[TopicPartition], deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        request = offset_fetch(self._coordinator.group_id, partitions, require_stable=True, oldest=1)
        response = await self._coordinator.send(request, deadline_ms)
        assert isinstance(response, OffsetFetchResponse), type(response).__name__
        group = response.groups[0] if response.groups else response
        if group.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *MOVED):
            self._coordinator.check(group.error_code)
        if group.error_code:
            raise exception_of(group.error_code)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        for partition, one in fetched_offsets(response).items():
            if one.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise RetriableException(f"{partition}: a transaction may still change its offset")
            if one.error_code:
                raise exception_of(one.error_code, f"{partition}: {exception_of(one.error_code)}")
            found[partition] = committed_offset(one)
        return {partition: found.get(partition) for partition in partitions}
