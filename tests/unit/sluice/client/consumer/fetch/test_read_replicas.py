"""Follower fetching (KIP-392) by our consumer: at scripted brokers, and at our broker with three racks."""

from collections.abc import Callable

import pytest

from sluice import Broker
from sluice.broker.faults.actions.error_response import Error
from sluice.client.consumer import Consumer
from sluice.client.consumer.offset_reset import LATEST
from sluice.client.consumer.subscription_state import FetchState, PartitionState
from sluice.client.producer import Producer
from sluice.journal_events import Request
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, ReceivedRequest, ScriptedResponse
from tests.support.consuming import P0 as T0
from tests.support.consuming import TOPIC, values_of
from tests.support.fetching import P0, Reading, batch

MAX_AGE_MS = 300_000


def answer(request: ReceivedRequest, code: int = 0, records: bytes = b"", preferred: int = -1) -> FetchResponse:
    (topic,) = request.message.topics
    data = PartitionData(error_code=code, high_watermark=9, records=records, preferred_read_replica=preferred)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=topic.topic_id, partitions=[data])])


def referred(response: Callable[[ReceivedRequest], ScriptedResponse] = answer) -> Reading:
    """Refer partition 0, at offset 3, from its leader 1 to broker 2, which gives this response."""
    stage = Reading(reset=LATEST, rack="b")
    stage.one.followers = stage.two.followers = [2]
    stage.assign(P0)
    stage.seek(P0, 3)
    stage.one.responses["Fetch"] = lambda request: answer(request, preferred=2)
    stage.two.responses["Fetch"] = response
    stage.fetch()
    return stage


def fetches(stage: Reading) -> tuple[int, int]:
    """Return the numbers of fetches from each broker."""
    return len(stage.one.requests("Fetch")), len(stage.two.requests("Fetch"))


def fetch_again(stage: Reading) -> None:
    """Collect, refresh requested metadata, and fetch once more."""
    stage.collect()
    stage.network.advance(200)
    stage.look()
    stage.fetch()


def test_replica_named_for_an_offset_before_a_seek_is_not_used() -> None:
    stage = Reading(reset=LATEST, rack="b")
    stage.one.followers = stage.two.followers = [2]
    stage.assign(P0)
    stage.seek(P0, 3)

    def seek(request: ReceivedRequest) -> FetchResponse:
        stage.seek(P0, 5)
        return answer(request, preferred=2)

    stage.one.responses["Fetch"] = seek
    stage.fetch()
    stage.one.responses["Fetch"] = answer
    stage.fetch()
    assert fetches(stage) == (2, 0)


def test_consumer_moves_to_the_replica_that_the_leader_names() -> None:
    stage = referred(lambda request: answer(request, records=batch(3, b"a")))
    assert fetches(stage) == (1, 0)
    for count in (1, 2):
        stage.fetch()
        assert fetches(stage) == (1, count)
        stage.collect()
    first, second = stage.one.requests("Fetch") + stage.two.requests("Fetch")[:1]
    assert {first.message.rack_id, second.message.rack_id} == {"b"}
    assert [one.message.topics[0].partitions[0].fetch_offset for one in (first, second)] == [3, 3]
    assert stage.position(P0) == 4


def test_rack_is_left_out_for_a_broker_without_racks() -> None:
    stage = Reading(rack="b")
    stage.one.versions["Fetch"] = (4, 10)
    stage.assign(P0)
    stage.seek(P0, 3)
    stage.one.responses["Fetch"] = answer
    stage.fetch()
    (request,) = stage.one.requests("Fetch")
    assert (request.version, request.message.rack_id) == (10, "")


LEADER, FOLLOWER = (2, 1), (1, 2)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NONE, FOLLOWER),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, FOLLOWER),
        (ErrorCode.UNKNOWN_SERVER_ERROR, FOLLOWER),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, LEADER),
        (ErrorCode.REPLICA_NOT_AVAILABLE, LEADER),
        (ErrorCode.KAFKA_STORAGE_ERROR, LEADER),
        (ErrorCode.FENCED_LEADER_EPOCH, LEADER),
        (ErrorCode.OFFSET_NOT_AVAILABLE, LEADER),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LEADER),
        (ErrorCode.UNKNOWN_TOPIC_ID, LEADER),
        (ErrorCode.INCONSISTENT_TOPIC_ID, LEADER),
        (ErrorCode.OFFSET_OUT_OF_RANGE, LEADER),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_error_of_a_follower_returns_the_consumer_to_the_leader_as_in_kafka(
    code: ErrorCode, expected: tuple[int, int]
) -> None:
    stage = referred(lambda request: answer(request, code))
    stage.fetch()
    fetch_again(stage)
    assert fetches(stage) == expected
    assert stage.position(P0) == 3


def test_position_is_reset_only_if_it_is_out_of_range_at_the_leader() -> None:
    stage = referred(lambda request: answer(request, ErrorCode.OFFSET_OUT_OF_RANGE))
    stage.one.responses["Fetch"] = lambda request: answer(request, ErrorCode.OFFSET_OUT_OF_RANGE)
    states = []
    for _ in range(2):
        stage.fetch()
        stage.collect()
        stage.network.advance(200)
        states.append(stage.subscriptions.state_of(P0).state)
    assert states == [FetchState.FETCHING, FetchState.AWAIT_RESET]


def lease_over(stage: Reading) -> None:
    stage.network.advance(MAX_AGE_MS + 1)


def lease_almost_over(stage: Reading) -> None:
    stage.network.advance(MAX_AGE_MS - 100)


def offline(stage: Reading) -> None:
    stage.one.offline = stage.two.offline = [2]
    stage.metadata.request_update()
    stage.network.advance(200)


def replica_removed(stage: Reading) -> None:
    stage.one.followers = stage.two.followers = []
    stage.metadata.request_update()
    stage.network.advance(200)


def newer_leader_epoch(stage: Reading) -> None:
    stage.one.epochs["t", 0] = stage.two.epochs["t", 0] = 1
    stage.metadata.request_update()
    stage.network.advance(200)
    stage.look()


def lost_connection(stage: Reading) -> None:
    stage.two.responses["Fetch"] = lambda _: DISCONNECT
    stage.fetch()
    stage.network.advance(200)


def refused_connection(stage: Reading) -> None:
    stage.two.refuses = True
    stage.two.drop()
    stage.network.advance(200)
    stage.fetch()


@pytest.mark.parametrize(
    ("happens", "from_leader"),
    [
        (lease_almost_over, False),
        (lease_over, True),
        (offline, True),
        (replica_removed, True),
        (newer_leader_epoch, True),
        (lost_connection, True),
        (refused_connection, True),
    ],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else "",
)
def test_consumer_leaves_the_replica(happens: Callable[[Reading], None], from_leader: bool) -> None:
    stage = referred()
    happens(stage)
    for _ in range(3):
        if fetches(stage)[0] == 1:
            stage.network.advance(5)
            stage.fetch()
    assert (fetches(stage)[0] > 1) is from_leader


def test_replica_that_is_offline_in_the_metadata_is_awaited_not_asked_for_in_a_loop() -> None:
    stage = Reading(rack="b")
    stage.assign(P0)
    stage.seek(P0, 3)
    stage.one.responses["Fetch"] = lambda request: answer(request, preferred=2)
    stage.fetch()
    stage.one.followers = stage.two.followers = [2]
    stage.fetch()
    assert fetches(stage) == (1, 0)
    stage.network.advance(200)
    stage.fetch()
    stage.fetch()
    assert fetches(stage) == (2, 1)


def test_being_named_again_does_not_extend_the_time() -> None:
    state = PartitionState()
    state.prefer_replica(2, 10)
    state.prefer_replica(2, 20)
    assert [state.preferred_replica(at) for at in (10, 11)] == [2, None]
    state.prefer_replica(2, 20)
    assert state.preferred_replica(20) == 2


async def test_consumer_reads_in_its_rack_and_from_the_leader_while_that_broker_is_stopped() -> None:
    racks = {
        "broker.rack": "a,b,c",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    async with Broker(brokers=3, config=racks) as broker:
        await broker.cluster.create_topic(TOPIC, assignments={0: (1, 2, 3)})
        given = {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest", "client.rack": "c"}
        async with Producer({"bootstrap.servers": broker.bootstrap}) as producer, Consumer(given) as consumer:
            consumer.assign([T0])

            async def read(value: bytes) -> int:
                """Return the node that the record was read from."""
                await producer.send(TOPIC, value)
                found: list[bytes | None] = []
                while not found:
                    found = values_of(await consumer.poll(1000))
                assert found == [value]
                client_id = consumer.config.text("client.id")
                requests: list[Request] = broker.journal.requests(api="Fetch")
                return [one for one in requests if one.client_id == client_id and one.answered_ns][-1].broker

            nodes = [await read(b"1"), await read(b"2")]
            await broker.cluster.stop(3)
            nodes += [await read(b"3"), await read(b"4")]
            await broker.cluster.start(3)
            nodes.append(await read(b"5"))
            assert nodes == [3, 3, 1, 1, 3]
            fault = broker.faults.add(Error(ErrorCode.OFFSET_OUT_OF_RANGE), api="Fetch", broker=3)
            assert await read(b"6") == 3, "by the fetch that was pending"
            await producer.send(TOPIC, b"7")
            assert await consumer.poll(1000) == [], "the leader refers to the follower again, after each backoff"
            assert 0 < fault.hits < 20
