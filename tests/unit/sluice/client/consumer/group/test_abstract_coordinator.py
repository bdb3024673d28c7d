"""Lookup, caching and loss of the group coordinator, at scripted brokers in virtual time."""

import asyncio

import pytest

from sluice.client.errors import ApiException, DisconnectException, KafkaException, TimeoutException
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from sluice.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedResponse
from tests.support.consuming import gaps
from tests.support.group_network import REQUEST_MS, group_stage

HEARTBEAT = request_of(HeartbeatRequest(group_id="g"))


async def test_coordinator_is_looked_up_once_and_has_a_separate_connection() -> None:
    async with group_stage() as stage:
        node = await stage.coordinator.ensure()
        assert (node.id, node.host) == (2**31 - 1 - 1, "a")
        assert await stage.coordinator.ensure() == node
        assert len(stage.request_times_ms("FindCoordinator")) == 1


async def test_old_brokers_are_queried_for_one_group() -> None:
    async with group_stage() as stage:
        for broker in (stage.one, stage.two):
            broker.versions["FindCoordinator"] = (0, 3)
            broker.responses["FindCoordinator"] = lambda request: FindCoordinatorResponse(
                node_id=2 if request.message.key == "g" else -1, host="b", port=9092
            )
        assert (await stage.coordinator.ensure()).host == "b"


async def test_brokers_are_queried_for_a_list_of_groups_since_version_4() -> None:
    async with group_stage() as stage:
        for broker in (stage.one, stage.two):
            broker.versions["FindCoordinator"] = (0, 4)
            broker.responses["FindCoordinator"] = lambda request: FindCoordinatorResponse(
                coordinators=[
                    Coordinator(key=key, node_id=2, host="b", port=9092) for key in request.message.coordinator_keys
                ]
            )
        assert (await stage.coordinator.ensure()).host == "b"


RETRIABLE = {
    "coordinator not available": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "coordinator loading": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "connection lost": DISCONNECT,
}


@pytest.mark.parametrize("response", RETRIABLE.values(), ids=RETRIABLE)
async def test_retriable_error_is_retried_with_exponential_backoff(response: ScriptedResponse | ErrorCode) -> None:
    async with group_stage() as stage:

        def fails(request: ReceivedRequest) -> ScriptedResponse:
            if len(stage.request_times_ms("FindCoordinator")) > 4:
                return stage.found(request)
            if isinstance(response, ErrorCode):
                return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=response)])
            return response

        for broker in (stage.one, stage.two):
            broker.responses["FindCoordinator"] = fails
        await stage.coordinator.ensure()
        found = gaps(stage.request_times_ms("FindCoordinator"))
        # The lookup also waits for fresh metadata, which has a separate backoff.
        assert [expected <= gap <= expected + 110 for gap, expected in zip(found, (100, 200, 300, 400), strict=True)]
        assert found == sorted(found)


async def test_fatal_error_is_raised() -> None:
    async with group_stage() as stage:
        refused = Coordinator(key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="not yours")
        for broker in (stage.one, stage.two):
            broker.responses["FindCoordinator"] = lambda _: FindCoordinatorResponse(coordinators=[refused])
        with pytest.raises(ApiException, match="not yours"):
            await stage.coordinator.ensure()


async def test_lookup_ends_at_the_deadline() -> None:
    async with group_stage() as stage:
        stage.one.refuses = stage.two.refuses = True
        began_ms = stage.network.now_ms
        with pytest.raises(TimeoutException):
            await stage.coordinator.ensure(stage.deadline(500))
        assert stage.network.now_ms - began_ms == pytest.approx(500, abs=2)


@pytest.mark.parametrize(
    ("response", "raised", "after_ms"),
    [(DISCONNECT, DisconnectException, 0), (None, TimeoutException, REQUEST_MS)],
    ids=["closes the connection", "does not respond"],
)
async def test_unresponsive_coordinator_is_forgotten(
    response: ScriptedResponse, raised: type[KafkaException], after_ms: float
) -> None:
    async with group_stage() as stage:
        stage.one.responses["Heartbeat"] = lambda _: response
        await stage.coordinator.ensure()
        began_ms = stage.network.now_ms
        with pytest.raises(raised):
            await stage.coordinator.send(HEARTBEAT)
        assert stage.network.now_ms - began_ms == pytest.approx(after_ms, abs=5)
        assert stage.coordinator.node is None
        stage.coordinator_is = 2
        stage.two.responses["Heartbeat"] = lambda _: HeartbeatResponse()
        assert isinstance(await stage.coordinator.send(HEARTBEAT), HeartbeatResponse)


MOVED = [
    (ErrorCode.NOT_COORDINATOR, True),
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
    (ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
]


@pytest.mark.parametrize(("code", "forgotten"), MOVED)
async def test_error_codes_show_whether_the_coordinator_moved(code: ErrorCode, forgotten: bool) -> None:
    async with group_stage() as stage:
        await stage.coordinator.ensure()
        with pytest.raises(ApiException):
            stage.coordinator.check(code)
        assert (stage.coordinator.node is None) is forgotten


async def test_pending_requests_fail_when_the_coordinator_is_forgotten() -> None:
    async with group_stage() as stage:
        stage.one.responses["Heartbeat"] = lambda _: None
        sending = asyncio.ensure_future(stage.coordinator.send(HEARTBEAT))
        await asyncio.sleep(0.5)
        stage.coordinator.forget("the test wants it")
        with pytest.raises(DisconnectException):
            await sending


async def test_requests_that_wait_for_a_lookup_are_sent_in_the_order_of_their_calls() -> None:
    async with group_stage() as stage:
        answers = [Coordinator(key="g", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)] * 2
        for broker in (stage.one, stage.two):
            broker.responses["FindCoordinator"] = lambda request: (
                FindCoordinatorResponse(coordinators=[answers.pop()]) if answers else stage.found(request)
            )
        stage.one.responses["Heartbeat"] = lambda _: HeartbeatResponse()
        sending = []
        for number in range(3):
            request = request_of(HeartbeatRequest(group_id="g", generation_id=number))
            sending.append(asyncio.ensure_future(stage.coordinator.send(request)))
            await asyncio.sleep(0.06)  # the second call comes during the backoff of the first one's lookup
        await asyncio.gather(*sending)
        assert [each.message.generation_id for each in stage.one.requests("Heartbeat")] == [0, 1, 2]
        assert len(stage.request_times_ms("FindCoordinator")) == 3


async def test_request_that_waits_for_another_ones_lookup_ends_at_its_deadline() -> None:
    async with group_stage() as stage:
        stage.one.refuses = stage.two.refuses = True
        first = asyncio.ensure_future(stage.coordinator.send(HEARTBEAT))
        await asyncio.sleep(0)
        began_ms = stage.network.now_ms
        with pytest.raises(TimeoutException):
            await stage.coordinator.send(HEARTBEAT, stage.deadline(500))
        assert stage.network.now_ms - began_ms == pytest.approx(500, abs=2)
        first.cancel()


async def test_backoff_ends_when_the_client_is_closed() -> None:
    async with group_stage() as stage:
        pausing = asyncio.ensure_future(stage.coordinator.pause(60_000))
        await asyncio.sleep(1)
        await stage.client.close()
        with pytest.raises(KafkaException, match="closed"):
            await pausing
