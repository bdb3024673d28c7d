"""Offset requests to leaders, for position resets and validation, at scripted brokers."""

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
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedResponse
from tests.support.consuming import gaps
from tests.support.fetching import BACKOFF_MS, P0, P1, Reading, offsets


def resetting(reset: OffsetReset = EARLIEST, *, read_committed: bool = False) -> Reading:
    """Start resetting both partitions."""
    stage = Reading(reset=reset, read_committed=read_committed)
    stage.assign(P0, P1)
    for partition in (P0, P1):
        stage.subscriptions.state_of(partition).reset_by(reset)
    return stage


FAILED_RESETS = {
    "a retriable error": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "another error": ErrorCode.UNKNOWN_SERVER_ERROR,
    "a lost connection": DISCONNECT,
}


@pytest.fixture
def stage() -> Reading:
    return resetting()


class TestResets:
    def test_reset_sends_one_request_per_leader_and_uses_the_returned_offset(self, stage: Reading) -> None:
        stage.two.responses["ListOffsets"] = lambda request: offsets(request, 9)
        for _ in range(3):
            stage.look()
        assert [len(broker.requests("ListOffsets")) for broker in (stage.one, stage.two)] == [1, 1]
        assert (stage.position(P0), stage.position(P1)) == (5, 9)
        assert stage.subscriptions.has_all_positions

    @pytest.mark.parametrize(
        ("reset", "timestamp"),
        [(EARLIEST, -2), (LATEST, -1), (offset_reset("by_duration:PT10S"), 1_700_000_000_000 - 10_000)],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_reset_requests_the_timestamp_of_the_policy(self, reset: OffsetReset, timestamp: int) -> None:
        stage = resetting(reset)
        passed_ms = stage.network.now_ms
        stage.look()
        (request,) = stage.one.requests("ListOffsets")
        found = request.message.topics[0].partitions[0].timestamp
        assert found == timestamp + (passed_ms if reset.duration_ms else 0)

    def test_read_committed_reset_requests_the_last_stable_offset(self) -> None:
        stage = resetting(LATEST, read_committed=True)
        stage.look()
        assert stage.one.requests("ListOffsets")[0].message.isolation_level == 1

    def test_reset_by_duration_without_a_record_starts_at_the_end(self) -> None:
        stage = resetting(offset_reset("by_duration:PT10S"))
        stage.one.responses["ListOffsets"] = lambda request: offsets(request, -1)
        stage.look()
        assert stage.subscriptions.state_of(P0).reset == LATEST

    @pytest.mark.parametrize("response", FAILED_RESETS.values(), ids=FAILED_RESETS)
    def test_failed_reset_is_retried_after_a_constant_backoff_with_new_metadata(
        self, response: ScriptedResponse | int, stage: Reading
    ) -> None:

        def fails(request: ReceivedRequest) -> ScriptedResponse:
            return offsets(request, -1, response) if isinstance(response, int) else response

        stage.one.responses["ListOffsets"] = fails
        for _ in range(4 * BACKOFF_MS):
            stage.look()
        found = gaps(stage.one.request_times_ms("ListOffsets"))
        assert len(found) >= 3
        assert all(BACKOFF_MS <= gap <= BACKOFF_MS + 5 for gap in found), found
        assert len(stage.one.requests("Metadata") + stage.two.requests("Metadata")) >= 3
        assert stage.position(P1) == 5, "the other leader's partition is reset without delay"

    def test_unanswered_reset_is_not_repeated_before_the_request_timeout(self, stage: Reading) -> None:
        stage.one.responses["ListOffsets"] = lambda _: None
        for _ in range(20):
            stage.look()
            stage.network.advance(1000)
        assert len(stage.one.requests("ListOffsets")) == 1

    def test_unauthorized_reset_is_raised_to_the_application(self, stage: Reading) -> None:
        stage.one.responses["ListOffsets"] = lambda request: offsets(request, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        stage.look()
        with pytest.raises(KafkaException, match=r"^t-0: "):
            stage.look()

    def test_reset_superseded_by_a_seek_is_dropped(self, stage: Reading) -> None:
        stage.offsets.run_once(stage.now_ms)
        stage.seek(P0, 77)
        stage.network.advance(1)
        assert stage.position(P0) == 77


def validating(reset: OffsetReset, end_offset: int, epoch: int, code: int = 0) -> Reading:
    """Validate offset 7 of partition 0, read in epoch 3; the leader, now in epoch 4, returns this end of epoch 3."""
    stage = Reading(reset=reset)
    for broker in (stage.one, stage.two):
        broker.epochs["t", 0] = 4
    stage.assign(P0)

    def ended(_: ReceivedRequest) -> ScriptedResponse:
        end_of_epoch = EpochEndOffset(partition=0, error_code=code, end_offset=end_offset, leader_epoch=epoch)
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="t", partitions=[end_of_epoch])])

    stage.one.responses["OffsetForLeaderEpoch"] = ended
    stage.seek(P0, 7, epoch=3)
    stage.look()
    return stage


class TestValidations:
    def test_validation_requests_the_end_offset_of_the_epoch(self) -> None:
        stage = validating(EARLIEST, 9, 3)
        (request,) = stage.one.requests("OffsetForLeaderEpoch")
        partition = request.message.topics[0].partitions[0]
        assert (partition.leader_epoch, partition.current_leader_epoch, request.message.replica_id) == (3, 4, -1)
        assert (stage.position(P0), stage.subscriptions.state_of(P0).state) == (7, FetchState.FETCHING)

    def test_truncation_moves_the_position_back(self) -> None:
        assert validating(EARLIEST, 5, 3).position(P0) == 5

    def test_truncation_without_a_reset_policy_is_raised(self) -> None:
        stage = validating(NONE, 5, 3)
        with pytest.raises(LogTruncationError, match=r"^truncated, and auto\.offset\.reset=none: t-0 at 7$") as raised:
            stage.look()
        (truncation,) = raised.value.truncations
        assert truncation.divergent is not None
        assert truncation.divergent.offset == 5

    def test_failed_validation_is_retried(self) -> None:
        stage = validating(EARLIEST, -1, -1, ErrorCode.FENCED_LEADER_EPOCH)
        for _ in range(2 * BACKOFF_MS):
            stage.look()
        assert len(stage.one.requests("OffsetForLeaderEpoch")) >= 2
        assert stage.subscriptions.state_of(P0).state is FetchState.AWAIT_VALIDATION

    def test_validation_in_flight_is_not_repeated(self) -> None:
        stage = validating(EARLIEST, 9, 3)
        stage.seek(P0, 7, epoch=3)
        for _ in range(3):
            stage.offsets.run_once(stage.now_ms)
        stage.network.advance(1)
        assert len(stage.one.requests("OffsetForLeaderEpoch")) == 2

    def test_validation_is_skipped_if_the_leader_does_not_support_it(self) -> None:
        stage = Reading()
        stage.one.versions["OffsetForLeaderEpoch"] = (0, 2)
        stage.one.epochs["t", 0] = stage.two.epochs["t", 0] = 4
        stage.assign(P0)
        stage.seek(P0, 7, epoch=3)
        stage.look()
        assert stage.one.requests("OffsetForLeaderEpoch") == []
        assert stage.subscriptions.state_of(P0).state is FetchState.FETCHING
