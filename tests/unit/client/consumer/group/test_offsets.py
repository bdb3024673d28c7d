"""Commits and committed offsets of a group, at a scripted coordinator, in virtual time."""

from collections.abc import Callable

import pytest

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer.group.membership import Generation
from sluice.client.consumer.group.offsets import CommitFailedError, GroupOffsets
from sluice.client.errors import ApiException, RetriableException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import Answer, Asked
from tests.support.consuming import gaps
from tests.support.group_network import GroupStage, Steps, at_group

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = Generation(3, "member", "instance")
SEVEN = {P0: OffsetAndMetadata(7, "seven", 2)}


class Offsets:
    """Those of group g, and what it is told about its generation."""

    def __init__(self, stage: GroupStage, generation: Generation | None = MEMBER) -> None:
        self.rejected: list[tuple[Generation, int]] = []
        self.of_group = GroupOffsets(
            stage.coordinator, Steps(), lambda: generation, lambda one, code: self.rejected.append((one, code))
        )


def committed_with(*codes: int) -> Callable[[Asked], Answer]:
    """Answers to one commit after the other; the last is the answer to all others."""
    left = list(codes)

    def handle(asked: Asked) -> Answer:
        code = left.pop(0) if len(left) > 1 else left[0]
        partitions = [
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in asked.message.topics[0].partitions
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])

    return handle


class TestACommit:
    def test_says_as_whom_and_what(self) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(0)
            await Offsets(stage).of_group.commit(SEVEN, stage.deadline())
            (asked,) = stage.one.asked("OffsetCommit")
            message, partition = asked.message, asked.message.topics[0].partitions[0]
            assert (message.group_id, message.generation_id_or_member_epoch) == ("g", 3)
            assert (message.member_id, message.group_instance_id) == ("member", "instance")
            assert (partition.partition_index, partition.committed_offset) == (0, 7)
            assert (partition.committed_metadata, partition.committed_leader_epoch) == ("seven", 2)

        at_group(test)

    def test_of_nothing_asks_nobody(self) -> None:
        async def test(stage: GroupStage) -> None:
            await Offsets(stage).of_group.commit({}, stage.deadline())
            assert stage.asked_at_ms("OffsetCommit") == []

        at_group(test)

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ],
    )
    def test_that_fails_for_a_while_is_sent_again_ever_later(self, code: ErrorCode) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(code, code, code, 0)
            await Offsets(stage).of_group.commit(SEVEN, stage.deadline())
            found = gaps(stage.asked_at_ms("OffsetCommit"))
            assert all(step <= gap <= step + 10 for gap, step in zip(found, (100, 200, 300), strict=True)), found

        at_group(test)

    def test_that_nobody_waits_for_is_sent_once(self) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            with pytest.raises(RetriableException, match=r"^t-0: "):
                await Offsets(stage).of_group.commit_once(SEVEN, stage.deadline())
            assert len(stage.asked_at_ms("OffsetCommit")) == 1

        at_group(test)

    def test_ends_with_its_deadline(self) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            began_ms = stage.network.now_ms
            with pytest.raises(TimeoutException):
                await Offsets(stage).of_group.commit(SEVEN, stage.deadline(1000))
            assert stage.network.now_ms - began_ms == pytest.approx(1000, abs=5)

        at_group(test)

    @pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
    def test_of_one_that_is_out_fails_for_good(self, code: ErrorCode) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(code)
            offsets = Offsets(stage)
            with pytest.raises(CommitFailedError, match="rebalanced without this member"):
                await offsets.of_group.commit(SEVEN, stage.deadline())
            assert offsets.rejected == [(MEMBER, code)]

        at_group(test)

    def test_while_others_join_is_rejected_and_may_be_made_again(self) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetCommit"] = committed_with(ErrorCode.REBALANCE_IN_PROGRESS)
            offsets = Offsets(stage)
            with pytest.raises(ApiException):
                await offsets.of_group.commit(SEVEN, stage.deadline())
            assert offsets.rejected == [(MEMBER, ErrorCode.REBALANCE_IN_PROGRESS)]

        at_group(test)

    def test_of_nobody_is_not_sent(self) -> None:
        async def test(stage: GroupStage) -> None:
            with pytest.raises(CommitFailedError, match="not a member of the group"):
                await Offsets(stage, None).of_group.commit(SEVEN, stage.deadline())
            assert stage.asked_at_ms("OffsetCommit") == []

        at_group(test)


def told(offset: int, code: int = 0, group_code: int = 0) -> Callable[[Asked], Answer]:
    """What a coordinator has for partition 0, in the words of the version that was asked in."""

    def handle(asked: Asked) -> Answer:
        if asked.version < 8:
            old = OffsetFetchResponsePartition(committed_offset=offset, metadata="m", error_code=code)
            topic = OffsetFetchResponseTopic(name="t", partitions=[old])
            return OffsetFetchResponse(topics=[topic], error_code=group_code)
        new = OffsetFetchResponsePartitions(committed_offset=offset, metadata="m", error_code=code)
        topics = [OffsetFetchResponseTopics(name="t", partitions=[new])]
        group = OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group_code)
        return OffsetFetchResponse(groups=[group])

    return handle


class TestCommittedOffsets:
    @pytest.mark.parametrize("version", [1, 7, 8, 9])
    def test_are_told_in_every_version(self, version: int) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.versions["OffsetFetch"] = (0, version)
            stage.one.answers["OffsetFetch"] = told(7)
            found = await Offsets(stage).of_group.committed([P0, P1], stage.deadline())
            assert found == {P0: OffsetAndMetadata(7, "m"), P1: None}

        at_group(test)

    def test_are_none_where_nothing_was_committed(self) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetFetch"] = told(-1)
            assert await Offsets(stage).of_group.committed([P0], stage.deadline()) == {P0: None}

        at_group(test)

    @pytest.mark.parametrize(
        "fails",
        [
            pytest.param(told(-1, group_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), id="the coordinator is loading"),
            pytest.param(told(-1, group_code=ErrorCode.NOT_COORDINATOR), id="it is another"),
            pytest.param(told(-1, code=ErrorCode.UNSTABLE_OFFSET_COMMIT), id="a transaction may change it"),
        ],
    )
    def test_are_asked_for_again_where_that_helps(self, fails: Callable[[Asked], Answer]) -> None:
        async def test(stage: GroupStage) -> None:
            well = told(7)
            stage.one.answers["OffsetFetch"] = lambda asked: (
                fails(asked) if len(stage.one.asked("OffsetFetch")) < 3 else well(asked)
            )
            found = await Offsets(stage).of_group.committed([P0], stage.deadline())
            assert found == {P0: OffsetAndMetadata(7, "m")}
            waited = gaps(stage.asked_at_ms("OffsetFetch"))
            assert all(step <= gap <= step + 10 for gap, step in zip(waited, (100, 200), strict=True)), waited

        at_group(test)

    @pytest.mark.parametrize(
        "refuses",
        [told(-1, group_code=ErrorCode.GROUP_AUTHORIZATION_FAILED), told(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)],
        ids=["the group", "a topic"],
    )
    def test_that_are_not_for_this_client_are_an_error(self, refuses: Callable[[Asked], Answer]) -> None:
        async def test(stage: GroupStage) -> None:
            stage.one.answers["OffsetFetch"] = refuses
            with pytest.raises(ApiException):
                await Offsets(stage).of_group.committed([P0], stage.deadline())

        at_group(test)
