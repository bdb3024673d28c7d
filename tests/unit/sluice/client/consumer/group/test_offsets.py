"""Offset commits and committed offsets, at a scripted coordinator in virtual time."""

from collections.abc import Callable

import pytest

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer.group.membership import Generation
from sluice.client.consumer.group.offsets import CommitFailedError, GroupOffsets
from sluice.client.errors import ApiException, RetriableException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.apis import offset_fetch as api
from sluice.protocol.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import ReceivedRequest, ScriptedResponse
from tests.support.consuming import gaps
from tests.support.group_network import GroupStage, Steps, group_stage

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = Generation(3, "member", "instance")
SEVEN = {P0: OffsetAndMetadata(7, "seven", 2)}


class Offsets:
    """The offsets of group g."""

    def __init__(self, stage: GroupStage) -> None:
        self.rejected: list[tuple[Generation, int]] = []
        self.of_group = GroupOffsets(
            stage.coordinator, Steps(), lambda: MEMBER, lambda one, code: self.rejected.append((one, code))
        )


def committed_with(*codes: int) -> Callable[[ReceivedRequest], ScriptedResponse]:
    """Answer commits with these error codes in turn; the last one repeats."""
    left = list(codes)

    def handle(request: ReceivedRequest) -> ScriptedResponse:
        code = left.pop(0) if len(left) > 1 else left[0]
        partitions = [
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in request.message.topics[0].partitions
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])

    return handle


COMMIT_ERRORS = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]


class TestACommit:
    async def test_commit_contains_the_member_identity_and_offsets(self) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(0)
            await Offsets(stage).of_group.commit(SEVEN, stage.deadline())
            (request,) = stage.one.requests("OffsetCommit")
            message, partition = request.message, request.message.topics[0].partitions[0]
            assert (message.group_id, message.generation_id_or_member_epoch) == ("g", 3)
            assert (message.member_id, message.group_instance_id) == ("member", "instance")
            assert (partition.partition_index, partition.committed_offset) == (0, 7)
            assert (partition.committed_metadata, partition.committed_leader_epoch) == ("seven", 2)

    async def test_empty_commit_sends_no_request(self) -> None:
        async with group_stage() as stage:
            await Offsets(stage).of_group.commit({}, stage.deadline())
            assert stage.request_times_ms("OffsetCommit") == []

    @pytest.mark.parametrize("code", COMMIT_ERRORS)
    async def test_retriable_commit_error_is_retried_with_exponential_backoff(self, code: ErrorCode) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(code, code, code, 0)
            await Offsets(stage).of_group.commit(SEVEN, stage.deadline())
            found = gaps(stage.request_times_ms("OffsetCommit"))
            assert all(step <= gap <= step + 10 for gap, step in zip(found, (100, 200, 300), strict=True)), found

    async def test_asynchronous_commit_is_not_retried(self) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            with pytest.raises(RetriableException, match=r"^t-0: "):
                await Offsets(stage).of_group.commit_once(SEVEN, stage.deadline())
            assert len(stage.request_times_ms("OffsetCommit")) == 1

    async def test_commit_ends_at_its_deadline(self) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            began_ms = stage.network.now_ms
            with pytest.raises(TimeoutException):
                await Offsets(stage).of_group.commit(SEVEN, stage.deadline(1000))
            assert stage.network.now_ms - began_ms == pytest.approx(1000, abs=5)

    @pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
    async def test_commit_of_a_fenced_member_fails_permanently(self, code: ErrorCode) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(code)
            offsets = Offsets(stage)
            with pytest.raises(CommitFailedError, match="rebalanced without this member"):
                await offsets.of_group.commit(SEVEN, stage.deadline())
            assert offsets.rejected == [(MEMBER, code)]

    async def test_commit_during_a_rebalance_is_rejected_and_retriable(self) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetCommit"] = committed_with(ErrorCode.REBALANCE_IN_PROGRESS)
            offsets = Offsets(stage)
            with pytest.raises(ApiException):
                await offsets.of_group.commit(SEVEN, stage.deadline())
            assert offsets.rejected == [(MEMBER, ErrorCode.REBALANCE_IN_PROGRESS)]


def committed_offset(offset: int, code: int = 0, group_code: int = 0) -> Callable[[ReceivedRequest], ScriptedResponse]:
    """Answer with the committed offset of partition 0, in the requested version's form."""

    def handle(request: ReceivedRequest) -> ScriptedResponse:
        if request.version < 8:
            old = api.OffsetFetchResponsePartition(committed_offset=offset, metadata="m", error_code=code)
            topic = api.OffsetFetchResponseTopic(name="t", partitions=[old])
            return api.OffsetFetchResponse(topics=[topic], error_code=group_code)
        new = api.OffsetFetchResponsePartition(committed_offset=offset, metadata="m", error_code=code)
        topics = [api.OffsetFetchResponseTopic(name="t", partitions=[new])]
        group = api.OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group_code)
        return api.OffsetFetchResponse(groups=[group])

    return handle


FETCH_FAILURES = {
    "the coordinator is loading": committed_offset(-1, group_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    "not coordinator": committed_offset(-1, group_code=ErrorCode.NOT_COORDINATOR),
    "unstable offset commit (open transaction)": committed_offset(-1, code=ErrorCode.UNSTABLE_OFFSET_COMMIT),
}


class TestCommittedOffsets:
    @pytest.mark.parametrize("version", [1, 7, 8, 9])
    async def test_committed_offsets_are_read_in_every_version(self, version: int) -> None:
        async with group_stage() as stage:
            stage.one.versions["OffsetFetch"] = (0, version)
            stage.one.responses["OffsetFetch"] = committed_offset(7)
            found = await Offsets(stage).of_group.committed([P0, P1], stage.deadline())
            assert found == {P0: OffsetAndMetadata(7, "m"), P1: None}

    async def test_partition_without_a_commit_has_no_committed_offset(self) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetFetch"] = committed_offset(-1)
            assert await Offsets(stage).of_group.committed([P0], stage.deadline()) == {P0: None}

    @pytest.mark.parametrize("fails", FETCH_FAILURES.values(), ids=FETCH_FAILURES)
    async def test_retriable_fetch_error_is_retried(self, fails: Callable[[ReceivedRequest], ScriptedResponse]) -> None:
        async with group_stage() as stage:
            well = committed_offset(7)
            stage.one.responses["OffsetFetch"] = lambda request: (
                fails(request) if len(stage.one.requests("OffsetFetch")) < 3 else well(request)
            )
            found = await Offsets(stage).of_group.committed([P0], stage.deadline())
            assert found == {P0: OffsetAndMetadata(7, "m")}
            waited = gaps(stage.request_times_ms("OffsetFetch"))
            assert all(step <= gap <= step + 10 for gap, step in zip(waited, (100, 200), strict=True)), waited

    @pytest.mark.parametrize(
        "refuses",
        [
            committed_offset(-1, group_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
            committed_offset(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ],
        ids=["the group", "a topic"],
    )
    async def test_fatal_fetch_error_is_raised(self, refuses: Callable[[ReceivedRequest], ScriptedResponse]) -> None:
        async with group_stage() as stage:
            stage.one.responses["OffsetFetch"] = refuses
            with pytest.raises(ApiException):
                await Offsets(stage).of_group.committed([P0], stage.deadline())
