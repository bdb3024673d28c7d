"""What leaders are asked about offsets: to reset positions, and to validate them. At scripted brokers."""

import pytest

from sluice.client.consumer.fetch.offset_fetcher import LogTruncationError
from sluice.client.consumer.offset_reset import EARLIEST, LATEST, NONE, OffsetReset, offset_reset
from sluice.client.consumer.subscription_state import FetchState
from sluice.client.errors import KafkaException
from sluice.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, Answer, Asked
from tests.support.consuming import gaps
from tests.support.fetching import BACKOFF_MS, P0, P1, Reading, offsets


def resetting(reset: OffsetReset = EARLIEST, *, read_committed: bool = False) -> Reading:
    """Both partitions wait for the leaders to tell an offset."""
    stage = Reading(reset=reset, read_committed=read_committed)
    stage.assign(P0, P1)
    for partition in (P0, P1):
        stage.subscriptions.state_of(partition).reset_by(reset)
    return stage


class TestResets:
    def test_ask_each_leader_once_and_begin_where_it_says(self) -> None:
        stage = resetting()
        stage.two.answers["ListOffsets"] = lambda asked: offsets(asked, 9)
        for _ in range(3):
            stage.look()
        assert [len(broker.asked("ListOffsets")) for broker in (stage.one, stage.two)] == [1, 1]
        assert (stage.position(P0), stage.position(P1)) == (5, 9)
        assert stage.subscriptions.has_all_positions

    @pytest.mark.parametrize(
        ("reset", "timestamp"),
        [(EARLIEST, -2), (LATEST, -1), (offset_reset("by_duration:PT10S"), 1_700_000_000_000 - 10_000)],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_ask_by_the_policy(self, reset: OffsetReset, timestamp: int) -> None:
        stage = resetting(reset)
        passed_ms = stage.network.now_ms
        stage.look()
        (asked,) = stage.one.asked("ListOffsets")
        found = asked.message.topics[0].partitions[0].timestamp
        assert found == timestamp + (passed_ms if reset.duration_ms else 0)

    def test_of_committed_records_ask_for_the_last_stable_offset(self) -> None:
        stage = resetting(LATEST, read_committed=True)
        stage.look()
        assert stage.one.asked("ListOffsets")[0].message.isolation_level == 1

    def test_by_a_duration_without_a_record_begin_at_the_end(self) -> None:
        stage = resetting(offset_reset("by_duration:PT10S"))
        stage.one.answers["ListOffsets"] = lambda asked: offsets(asked, -1)
        stage.look()
        assert stage.subscriptions.state_of(P0).reset == LATEST

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(ErrorCode.NOT_LEADER_OR_FOLLOWER, id="an error that passes"),
            pytest.param(ErrorCode.UNKNOWN_SERVER_ERROR, id="any other error"),
            pytest.param(DISCONNECT, id="a connection that was lost"),
        ],
    )
    def test_that_fail_are_tried_again_after_the_same_backoff_with_metadata_in_between(
        self, answer: Answer | int
    ) -> None:
        stage = resetting()

        def fails(asked: Asked) -> Answer:
            return offsets(asked, -1, answer) if isinstance(answer, int) else answer

        stage.one.answers["ListOffsets"] = fails
        for _ in range(4 * BACKOFF_MS):
            stage.look()
        found = gaps(stage.one.asked_at_ms("ListOffsets"))
        assert len(found) >= 3
        assert all(BACKOFF_MS <= gap <= BACKOFF_MS + 5 for gap in found), found
        assert len(stage.one.asked("Metadata") + stage.two.asked("Metadata")) >= 3
        assert stage.position(P1) == 5, "the other leader's partition does not wait"

    def test_that_are_not_answered_are_not_asked_again_before_the_request_timeout(self) -> None:
        stage = resetting()
        stage.one.answers["ListOffsets"] = lambda _: None
        for _ in range(20):
            stage.look()
            stage.network.advance(1000)
        assert len(stage.one.asked("ListOffsets")) == 1

    def test_that_may_not_be_are_told_to_the_application(self) -> None:
        stage = resetting()
        stage.one.answers["ListOffsets"] = lambda asked: offsets(asked, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        stage.look()
        with pytest.raises(KafkaException, match=r"^t-0: "):
            stage.look()

    def test_that_a_seek_overtook_change_nothing(self) -> None:
        stage = resetting()
        stage.offsets.run_once(stage.now_ms)
        stage.seek(P0, 77)
        stage.network.advance(1)
        assert stage.position(P0) == 77


def validating(reset: OffsetReset, end_offset: int, epoch: int, code: int = 0) -> Reading:
    """Partition 0 at offset 7, read under epoch 3; its leader, now of epoch 4, says where that ended."""
    stage = Reading(reset=reset)
    for broker in (stage.one, stage.two):
        broker.epochs["t", 0] = 4
    stage.assign(P0)

    def ended(_: Asked) -> Answer:
        told = EpochEndOffset(partition=0, error_code=code, end_offset=end_offset, leader_epoch=epoch)
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="t", partitions=[told])])

    stage.one.answers["OffsetForLeaderEpoch"] = ended
    stage.seek(P0, 7, epoch=3)
    stage.look()
    return stage


class TestValidations:
    def test_ask_the_leader_where_the_epoch_ended(self) -> None:
        stage = validating(EARLIEST, 9, 3)
        (asked,) = stage.one.asked("OffsetForLeaderEpoch")
        partition = asked.message.topics[0].partitions[0]
        assert (partition.leader_epoch, partition.current_leader_epoch, asked.message.replica_id) == (3, 4, -1)
        assert (stage.position(P0), stage.subscriptions.state_of(P0).state) == (7, FetchState.FETCHING)

    def test_go_back_to_where_the_log_was_truncated(self) -> None:
        assert validating(EARLIEST, 5, 3).position(P0) == 5

    def test_tell_of_it_where_no_policy_resets(self) -> None:
        stage = validating(NONE, 5, 3)
        with pytest.raises(LogTruncationError, match=r"^truncated, and auto\.offset\.reset=none: t-0 at 7$") as raised:
            stage.look()
        (truncation,) = raised.value.truncations
        assert truncation.divergent is not None
        assert truncation.divergent.offset == 5

    def test_that_fail_are_tried_again(self) -> None:
        stage = validating(EARLIEST, -1, -1, ErrorCode.FENCED_LEADER_EPOCH)
        for _ in range(2 * BACKOFF_MS):
            stage.look()
        assert len(stage.one.asked("OffsetForLeaderEpoch")) >= 2
        assert stage.subscriptions.state_of(P0).state is FetchState.AWAIT_VALIDATION

    def test_are_left_out_where_the_leader_cannot_tell(self) -> None:
        stage = Reading()
        stage.one.versions["OffsetForLeaderEpoch"] = (0, 2)
        stage.one.epochs["t", 0] = stage.two.epochs["t", 0] = 4
        stage.assign(P0)
        stage.seek(P0, 7, epoch=3)
        stage.look()
        assert stage.one.asked("OffsetForLeaderEpoch") == []
        assert stage.subscriptions.state_of(P0).state is FetchState.FETCHING
