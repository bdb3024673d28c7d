"""The fetcher at scripted brokers: target nodes, returned records and error handling."""

from collections.abc import Callable

import pytest

from sluice.client.consumer.fetch.fetcher import OffsetOutOfRangeError
from sluice.client.consumer.offset_reset import LATEST, NONE, OffsetReset
from sluice.client.consumer.subscription_state import FetchState
from sluice.client.errors import KafkaException
from sluice.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedResponse
from tests.support.fetching import P0, P1, Reading, batch


def fetch_response(
    request: ReceivedRequest, *partitions: PartitionData, session_id: int = 7, throttle_time_ms: int = 0
) -> FetchResponse:
    """Return a response for partitions of the requested topic."""
    named = request.message.topics[0] if request.message.topics else None
    topics = [
        FetchableTopicResponse(topic="t", topic_id=named.topic_id if named else bytes(16), partitions=list(partitions))
    ]
    return FetchResponse(
        session_id=session_id, responses=topics if partitions else [], throttle_time_ms=throttle_time_ms
    )


def of(partition: int, records: bytes = b"", code: int = 0, **more: object) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=9,
        last_stable_offset=8,
        log_start_offset=0,
        records=records,
        **more,  # type: ignore[arg-type]  # those of the message, as a test names them
    )


def reading(records: bytes = b"", code: int = 0, *, reset: OffsetReset = LATEST, **more: object) -> Reading:
    """Fetch partition 0 from offset 3: the first response has these records, later ones are empty."""
    stage = Reading(reset=reset)
    stage.assign(P0)
    stage.seek(P0, 3)
    responses = [of(0, records, code, **more)]
    stage.one.responses["Fetch"] = lambda request: fetch_response(request, *[responses.pop()] if responses else [])
    return stage


def test_the_first_version_with_magic_2_is_used() -> None:
    stage = Reading()
    stage.one.versions["Fetch"] = (0, 4)
    stage.assign(P0)
    stage.seek(P0, 3)
    stage.one.responses["Fetch"] = lambda request: fetch_response(request, of(0, batch(3, b"a")))
    stage.fetch()
    assert [one.value for one in stage.collect()] == [b"a"]
    assert stage.one.requests("Fetch")[0].version == 4


def test_each_leader_receives_its_partitions_and_records_keep_their_order() -> None:
    stage = Reading()
    stage.assign(P0, P1)
    stage.seek(P0, 3)
    stage.seek(P1, 0)
    stage.one.responses["Fetch"] = lambda request: fetch_response(request, of(0, batch(3, b"a", b"b")))
    stage.two.responses["Fetch"] = lambda request: fetch_response(request, of(1, batch(0, b"c")))
    stage.fetch()
    (request,) = stage.one.requests("Fetch")
    (partition,) = request.message.topics[0].partitions
    assert (partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (0, 3, 1000)
    assert len(stage.two.requests("Fetch")) == 1
    records = stage.collect()
    assert sorted((one.partition, one.offset, one.value) for one in records) == [
        (0, 3, b"a"),
        (0, 4, b"b"),
        (1, 0, b"c"),
    ]
    assert (stage.position(P0), stage.position(P1)) == (5, 1)


def test_node_with_a_pending_or_unread_fetch_is_not_fetched_from_again() -> None:
    stage = reading(batch(3, b"a", b"b", b"c"))
    stage.fetcher.send(stage.now_ms)
    stage.fetcher.send(stage.now_ms)
    stage.network.advance(1)
    assert len(stage.collect(2)) == 2
    stage.fetch()
    assert len(stage.one.requests("Fetch")) == 1
    assert [one.value for one in stage.collect()] == [b"c"]
    stage.fetch()
    assert len(stage.one.requests("Fetch")) == 2


def test_next_request_continues_the_session() -> None:
    stage = reading(batch(3, b"a"))
    for _ in range(2):
        stage.fetch()
        stage.collect()
    first, second = (request.message for request in stage.one.requests("Fetch"))
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert second.topics[0].partitions[0].fetch_offset == 4


def test_records_of_paused_partitions_are_kept_and_of_sought_partitions_dropped() -> None:
    stage = reading(batch(3, b"a", b"b"))
    stage.fetch()
    state = stage.subscriptions.state_of(P0)
    state.is_paused = True
    assert stage.collect() == []
    state.is_paused = False
    assert [one.value for one in stage.collect(1)] == [b"a"]
    stage.seek(P0, 100)
    assert stage.collect() == []
    assert stage.position(P0) == 100


def test_empty_response_updates_the_log_end_offset() -> None:
    stage = reading()
    stage.fetch()
    state = stage.subscriptions.state_of(P0)
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (9, 8, 0)


def test_throttled_response_is_no_error_and_delays_the_next_request() -> None:
    stage = reading()
    stage.one.responses["Fetch"] = lambda request: fetch_response(request, session_id=0, throttle_time_ms=400)
    stage.fetch()
    until_ms = stage.fetch()
    assert until_ms - stage.now_ms == pytest.approx(399, abs=2)
    assert len(stage.one.requests("Fetch")) == 1


@pytest.mark.parametrize("response", [DISCONNECT, None], ids=["a lost connection", "no answer"])
def test_fetch_after_a_lost_fetch_is_full(response: ScriptedResponse) -> None:
    stage = reading()
    stage.one.responses["Fetch"] = lambda _: response
    stage.fetch()
    stage.network.advance(31_000)
    for _ in range(5):
        stage.fetch()
    assert [request.message.session_epoch for request in stage.one.requests("Fetch")][:2] == [0, 0]


RETRIABLE = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
]


@pytest.mark.parametrize("code", RETRIABLE)
def test_retriable_error_waits_for_new_metadata(code: ErrorCode) -> None:
    stage = reading(code=code)
    stage.fetch()
    assert stage.collect() == []
    assert stage.metadata.update_requested
    stage.fetch()
    assert len(stage.one.requests("Fetch")) == 1, "no fetch before new metadata"
    stage.network.advance(200)
    stage.fetch()
    assert len(stage.one.requests("Fetch")) == 2


def test_leader_named_in_the_response_is_used_at_once() -> None:
    stage = reading(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=5))
    script = stage.one.responses["Fetch"]

    def with_endpoints(request: ReceivedRequest) -> ScriptedResponse:
        response = script(request)
        assert isinstance(response, FetchResponse)
        response.node_endpoints = [NodeEndpoint(node_id=2, host="b", port=9092)]
        return response

    stage.one.responses["Fetch"] = with_endpoints
    stage.fetch()
    stage.collect()
    stage.fetch()
    (request,) = stage.two.requests("Fetch")
    assert request.message.topics[0].partitions[0].fetch_offset == 3


def test_position_out_of_range_is_reset_by_the_policy() -> None:
    stage = reading(code=ErrorCode.OFFSET_OUT_OF_RANGE)
    stage.fetch()
    assert stage.collect() == []
    state = stage.subscriptions.state_of(P0)
    assert (state.state, state.reset) == (FetchState.AWAIT_RESET, LATEST)


FATAL_ERRORS = {
    "position out of range without a reset policy": (
        lambda: reading(code=ErrorCode.OFFSET_OUT_OF_RANGE, reset=NONE),
        OffsetOutOfRangeError,
        r"^out of range, and auto\.offset\.reset=none: t-0 at 3$",
    ),
    "unauthorized topic": (lambda: reading(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED), KafkaException, r"^t-0: "),
    "corrupt batch": (
        lambda: reading(batch(3, b"a")[:-1] + b"!"),
        KafkaException,
        r"^the next record of t-0, at offset 3, cannot be read: .*; seek past it to continue$",
    ),
}


@pytest.mark.parametrize(("make", "error", "text"), FATAL_ERRORS.values(), ids=FATAL_ERRORS)
def test_fatal_error_is_raised_to_the_application(
    make: Callable[[], Reading], error: type[KafkaException], text: str
) -> None:
    stage = make()
    stage.fetch()
    with pytest.raises(error, match=text):
        stage.collect()


def test_fatal_error_is_raised_after_the_earlier_records() -> None:
    good, broken = batch(3, b"a"), batch(4, b"b")
    stage = reading(good + broken[:-1] + b"!")
    stage.fetch()
    assert [one.value for one in stage.collect()] == [b"a"]
    for _ in range(2):
        with pytest.raises(KafkaException, match="at offset 4, cannot be read"):
            stage.collect()
    stage.seek(P0, 5)
    assert stage.collect() == []


def test_sessions_are_closed_on_close() -> None:
    stage = reading(batch(3, b"a"))
    stage.fetch()
    stage.fetcher.close_sessions(stage.now_ms)
    stage.network.advance(1)
    last = stage.one.requests("Fetch")[-1].message
    assert (last.session_id, last.session_epoch, last.topics) == (7, -1, [])
