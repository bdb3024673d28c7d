"""Fault rules of a proxy: for each action, what reaches the upstream broker, and what the client receives."""

import re
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from sluice.broker.faults.actions import KINDS
from sluice.broker.faults.fault import Fault
from sluice.errors import FaultError, RemoteProtocolError
from sluice.journal_events import Request
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.message import Message
from tests.support.records import batch, fetch, fetched_bytes, produce
from tests.support.share_consumers import ACCEPT, ONE_PARTITION, ShareConsumer, initialize, produce_values
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy
from tests.support.wire import error_codes

NOT_LEADER, LEADER_NOT_AVAILABLE, REBALANCE = 6, 5, 27
BATCH = batch(b"v", partition_leader_epoch=0)
CORRUPT = BATCH[:17] + bytes([BATCH[17] ^ 0xFF]) + BATCH[18:]  # with a wrong checksum


def started(*overrides: str) -> VirtualProxy:
    """Return a proxy in front of three brokers.

    Topic t has partitions 0 and 1 with one record each on broker 1, and partition 2 on broker 2.
    """
    upstream = VirtualBroker(JOURNAL, "sluice.brokers=3")
    proxy = VirtualProxy(JOURNAL, *overrides, upstream=upstream)
    upstream.topic(assignments={0: (1,), 1: (1,), 2: (2,)})
    client = upstream.client()
    for partition in (0, 1):
        client.call(produce(9, BATCH, partition=partition), 9)
    return proxy


def add(proxy: VirtualProxy, rule: dict[str, object]) -> Fault:
    return proxy.cluster_server.faults.add(rule)


def reached(proxy: VirtualProxy) -> list[str]:
    """Return the APIs of the requests that reached the upstream, besides those of `started`."""
    return [event.api for event in proxy.upstream.journal.events() if isinstance(event, Request)][2:]


def produce_both(acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=BATCH) for index in (0, 1)]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


def offsets(timestamp: int = -1) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in (0, 1)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])


class Cell(NamedTuple):
    """One action on one request: the APIs that reach the upstream, what the client receives, and when."""

    rule: dict[str, object]
    request: Message
    version: int
    reaches: list[str]
    gets: object = ()
    at_ms: float = 0.0


def error(code: str, when: str = "before", **more: object) -> dict[str, object]:
    return {"action": {"kind": "error", "code": code, "when": when}, **more}


def rule(kind: str, api: str, **fields: object) -> dict[str, object]:
    return {"action": {"kind": kind, **fields}, "api": api}


def applied(*codes: int) -> list[tuple[str, list[int]]]:
    """Return the responses that `received` lists for error codes."""
    return [("response", [*codes])]


NOTHING: list[tuple[str, list[int]]] = []
CLOSED = [("closed", NOTHING)]
RESET = [("reset", NOTHING)]

CELLS = {
    "error before: the request does not arrive": Cell(
        error("NOT_LEADER_OR_FOLLOWER", api="Produce"), produce(9), 9, [], applied(6)
    ),
    "error before: the other partition is produced": Cell(
        error("NOT_LEADER_OR_FOLLOWER", api="Produce", partition=1), produce_both(), 9, ["Produce"], applied(6)
    ),
    "error before, of all responses": Cell(
        error("REBALANCE_IN_PROGRESS", api="Heartbeat"), HeartbeatRequest(), 4, [], applied(27)
    ),
    "error before, of Metadata: other topics are requested": Cell(
        error("LEADER_NOT_AVAILABLE", api="Metadata", topic="t"), metadata("t"), 12, ["Metadata"], applied(5)
    ),
    "error before, of a SaslHandshake": Cell(
        error("UNSUPPORTED_SASL_MECHANISM", api="SaslHandshake"), SaslHandshakeRequest(), 1, [], applied(33)
    ),
    "error before, of a Fetch: its session must know": Cell(
        error("NOT_LEADER_OR_FOLLOWER", api="Fetch"), fetch(max_wait_ms=500), 11, ["Fetch"], applied(6)
    ),
    "error before, of a Fetch that would wait": Cell(
        error("NOT_LEADER_OR_FOLLOWER", api="Fetch"), fetch(1, max_wait_ms=500), 11, ["Fetch"], applied(6)
    ),
    "error before, of a fetch session": Cell(
        error("FETCH_SESSION_ID_NOT_FOUND", api="Fetch"), fetch(), 11, [], applied(70)
    ),
    "error before, without a response (acks=0)": Cell(
        error("NOT_LEADER_OR_FOLLOWER", api="Produce"), produce(9, acks=0), 9, [], CLOSED
    ),
    "error after: the request is applied": Cell(
        error("NOT_LEADER_OR_FOLLOWER", "after", api="Produce"), produce(9), 9, ["Produce"], applied(6)
    ),
    "error after, of one partition": Cell(
        error("NOT_LEADER_OR_FOLLOWER", "after", api="Produce", partition=1), produce_both(), 9, ["Produce"], applied(6)
    ),
    "error after, of all responses": Cell(
        error("REBALANCE_IN_PROGRESS", "after", api="Heartbeat"), HeartbeatRequest(), 4, ["Heartbeat"], applied(27)
    ),
    "error after, of Metadata": Cell(
        error("LEADER_NOT_AVAILABLE", "after", api="Metadata"), metadata("t"), 12, ["Metadata"], applied(5)
    ),
    "error after, without a response (acks=0)": Cell(
        error("NOT_LEADER_OR_FOLLOWER", "after", api="Produce"), produce(9, acks=0), 9, ["Produce"], CLOSED
    ),
    "delay before": Cell(rule("delay", "Produce", ms=50), produce(9), 9, ["Produce"], applied(), 50),
    "delay after": Cell(rule("delay", "Produce", ms=50, when="after"), produce(9), 9, ["Produce"], applied(), 50),
    "hold before": Cell(rule("hold", "Produce"), produce(9), 9, [], NOTHING),
    "hold after": Cell(rule("hold", "Produce", when="after"), produce(9), 9, ["Produce"], NOTHING),
    "black-hole before": Cell(rule("black-hole", "Produce"), produce(9), 9, [], NOTHING),
    "black-hole after": Cell(rule("black-hole", "Produce", when="after"), produce(9), 9, ["Produce"], NOTHING),
    "close before": Cell(rule("close", "Produce"), produce(9), 9, [], CLOSED),
    "close after": Cell(rule("close", "Produce", when="after"), produce(9), 9, ["Produce"], CLOSED),
    "close mid-response": Cell(rule("close", "Produce", when="mid-response"), produce(9), 9, ["Produce"], CLOSED),
    "close before, by a reset": Cell(rule("close", "Produce", how="rst"), produce(9), 9, [], RESET),
    "close after, by a reset": Cell(
        rule("close", "Produce", when="after", how="rst"), produce(9), 9, ["Produce"], RESET
    ),
    "close mid-response, by a reset": Cell(
        rule("close", "Produce", when="mid-response", how="rst"), produce(9), 9, ["Produce"], RESET
    ),
    "duplicate request": Cell(
        rule("duplicate", "Produce", what="request"), produce(9), 9, ["Produce", "Produce"], applied()
    ),
    "duplicate request, without a response (acks=0)": Cell(
        rule("duplicate", "Produce", what="request"), produce(9, acks=0), 9, ["Produce", "Produce"], NOTHING
    ),
    "duplicate records": Cell(rule("duplicate", "Fetch", what="records"), fetch(), 11, ["Fetch"], [BATCH + BATCH]),
    "slow-disk, write": Cell(rule("slow-disk", "Produce", latency=20), produce(9), 9, ["Produce"], applied(), 20),
    "slow-disk, read": Cell(rule("slow-disk", "Fetch", bytes_per_s=len(BATCH)), fetch(), 11, ["Fetch"], [BATCH], 1000),
    "corrupt-records": Cell(rule("corrupt-records", "Fetch"), fetch(), 11, ["Fetch"], [CORRUPT]),
    "unknown-leader": Cell(
        rule("unknown-leader", "Metadata"), metadata("t"), 12, ["Metadata"], [[(0, -1), (1, -1), (2, -1)]]
    ),
    "wrong-leader": Cell(
        rule("wrong-leader", "Metadata", leader=3), metadata("t"), 12, ["Metadata"], [[(0, 3), (1, 3), (2, 3)]]
    ),
    "empty-metadata": Cell(rule("empty-metadata", "Metadata"), metadata("t"), 12, [], [[]]),
    "offset-lie": Cell(rule("offset-lie", "ListOffsets", shift=5), offsets(), 7, ["ListOffsets"], [[6, 6]]),
}


def received(client: Client, cell: Cell) -> object:
    """Return the error codes of the responses, or the read content, and how the connection ended."""
    responses = client.take_responses()
    assert [response.at_ms for response in responses] == [cell.at_ms] * len(responses)
    if isinstance(cell.gets, list) and cell.gets and isinstance(cell.gets[0], tuple):
        ended = NOTHING if client.is_open else RESET if client.transport.aborted else CLOSED
        return [*(("response", error_codes(response.message)) for response in responses), *ended]
    return [content(response.message) for response in responses]


def content(response: Any) -> object:
    """Return what the actions change in a response."""
    match type(response).__name__:
        case "FetchResponse":
            return fetched_bytes(response)
        case "MetadataResponse":
            assert bool(response.brokers) == bool(response.topics[0].partitions)
            return [(each.partition_index, each.leader_id) for each in response.topics[0].partitions]
        case "ListOffsetsResponse":
            return [each.offset for each in response.topics[0].partitions]
        case _:
            return response


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_action_in_front_of_an_upstream_broker(cell: Cell) -> None:
    proxy = started()
    fault = add(proxy, cell.rule)
    client = proxy.client()
    with suppress(RemoteProtocolError):  # half of a response
        client.send(cell.request, cell.version)
        proxy.advance(max(0, cell.at_ms - 1))
        assert not cell.at_ms or client.responses == []
        proxy.advance(1)
    assert (fault.state, fault.hits) == ("in force", 1)
    assert reached(proxy) == cell.reaches
    assert received(client, cell) == cell.gets


def test_leader_hints_name_the_proxy_of_the_former_leader() -> None:
    proxy = started()
    add(proxy, rule("stale-leader-hint", "Produce", leader=3))
    response = proxy.client().call(produce(10, partition=2), 10)  # broker 2 leads it
    (item,) = response.responses[0].partition_responses
    (endpoint,) = response.node_endpoints
    assert (item.error_code, item.current_leader.leader_id, item.current_leader.leader_epoch) == (6, 3, -1)
    assert (endpoint.node_id, endpoint.port) == (3, proxy.cluster_server.servers[3].endpoints[0].port)


ACKNOWLEDGEMENTS = {
    "acknowledged": (None, 0, []),
    "redelivered": ("redelivery", 0, [(0, 0, 2)]),
    "failed: the record stays acquired": ("acknowledgement-error", 121, []),
}


@pytest.mark.parametrize(("kind", "code", "acquired_next"), ACKNOWLEDGEMENTS.values(), ids=ACKNOWLEDGEMENTS)
def test_acknowledgements_of_share_groups(
    kind: str | None, code: int, acquired_next: list[tuple[int, int, int]]
) -> None:
    proxy = VirtualProxy(JOURNAL, upstream=VirtualBroker(JOURNAL, *ONE_PARTITION))
    topic = proxy.topic()
    initialize(proxy.upstream, topic)
    produce_values(proxy.upstream, b"v")
    proxy.client().call(metadata("t"), 12)
    if kind is not None:
        add(proxy, {"action": kind, "topic": "t"})
    consumer = ShareConsumer(proxy, topic)
    assert consumer.acquire() == [(0, 0, 1)]
    assert error_codes(consumer.acknowledge((0, 0, [ACCEPT]))) == [code] * (code > 0)
    assert consumer.acquire() == acquired_next
    assert consumer.acquire(max_wait_ms=0) == []


# The tests of these actions run with a proxy, too.
ALSO_TESTED = {
    "correlation-id": "test_wrong_responses",
    "truncate": "test_wrong_responses",
    "garbage": "test_wrong_responses",
    "oversize": "test_wrong_responses",
    "throttle": "test_wrong_responses",
    "refuse-connections": "test_connections",
    "silent-connections": "test_connections",
    "stall-tls": "test_connections",
    "stall-sasl": "test_connections",
    "bandwidth": "test_connections",
    "drop-idle": "test_connections",
    "broker-down": "test_brokers",
    "isolate": "test_brokers",
    "stale-leader-hint": "above",
    "redelivery": "above",
    "acknowledgement-error": "above",
}


def test_each_action_is_tested_or_refused() -> None:
    tested = {cell.rule["action"]["kind"] for cell in CELLS.values()} | ALSO_TESTED.keys()  # type: ignore[index]  # a dict
    refused = {kind for kind, action in KINDS.items() if action.PROXY_REFUSAL}
    assert tested | refused == KINDS.keys()
    assert not tested & refused


@pytest.mark.parametrize("kind", sorted(kind for kind, action in KINDS.items() if action.PROXY_REFUSAL))
def test_what_a_proxy_cannot_do_is_refused_with_the_reason(kind: str) -> None:
    required = {"slow-election": {"takes": 1}, "metadata-lag": {"lag": 1}}
    reason = f"fault.action: {kind} is not possible in a proxy: {KINDS[kind].PROXY_REFUSAL}"
    with pytest.raises(FaultError, match=f"^{re.escape(reason)}$"):
        add(started(), {"action": {"kind": kind, **required.get(kind, {})}})


def test_a_delayed_request_is_forwarded_as_it_was_when_others_were_read_meanwhile() -> None:
    proxy = started()
    add(proxy, {**rule("delay", "Metadata", ms=50), "times": 1})
    first, second = proxy.client(), proxy.client("second")
    first.send(metadata("t"), 12)
    second.send(metadata("other", "names"), 12)
    assert len(second.take_responses()) == 1
    proxy.advance(50)
    assert content(first.response().message) == [(0, 1), (1, 1), (2, 2)]


@pytest.mark.parametrize(("when", "apis"), [("before", []), ("after", ["Metadata"])])
def test_a_held_request_is_forwarded_and_answered_when_it_is_released(when: str, apis: list[str]) -> None:
    proxy = started()
    fault = add(proxy, rule("hold", "Metadata", when=when))
    client = proxy.client()
    client.send(metadata("t"), 12)
    assert (client.take_responses(), reached(proxy)) == ([], apis)
    assert fault.release() == 1
    proxy.advance(1)
    assert content(client.response().message) == [(0, 1), (1, 1), (2, 2)]


def fetched_in_session(broker: VirtualBroker) -> list[list[tuple[int, int, bytes]]]:
    """Fetch both partitions in a session by topic id; a rule fails one of them in the second and third request."""
    topic_id = broker.partition().topic.topic_id
    client = broker.client()
    client.call(metadata("t"), 12)
    partitions = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in (0, 1)]
    first = FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=topic_id, partitions=partitions)])
    responses = [client.call(first, 13)]
    rule = {**error("NOT_LEADER_OR_FOLLOWER", api="Fetch", topic="t", partition=1), "times": 2}
    broker.cluster_server.faults.add(rule)
    session_id = responses[0].session_id
    for epoch in range(1, 5):
        request = FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=500, min_bytes=1)
        if epoch == 1:  # the client has read the records of the first response
            moved = [FetchPartition(partition=index, fetch_offset=1, partition_max_bytes=1 << 20) for index in (0, 1)]
            request.topics = [FetchTopic(topic_id=topic_id, partitions=moved)]
        if epoch == 3:
            broker.client("producer").call(produce(9, partition=1), 9)
        client.send(request, 13)
        broker.advance(500)
        responses.append(client.response().message)
    return [
        [
            (each.partition_index, each.error_code, fetched_bytes_of(each))
            for topic in one.responses
            for each in topic.partitions
        ]
        for one in responses
    ]


def fetched_bytes_of(partition: Any) -> bytes:
    return bytes(partition.records or b"")


def test_errors_in_a_fetch_session_are_those_of_a_broker() -> None:
    proxy, broker = started(), VirtualBroker(JOURNAL)
    broker.topic(partitions=2)
    for partition in (0, 1):
        broker.client().call(produce(9, BATCH, partition=partition), 9)
    ours = fetched_in_session(proxy)
    assert ours == fetched_in_session(broker)
    assert [(index, code) for one in ours[1:3] for index, code, _ in one] == [(1, NOT_LEADER)] * 2
