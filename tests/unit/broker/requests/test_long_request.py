"""Long requests: the same responses as in one piece, with other clients served in between."""

import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.broker.requests.context import Sliced
from sluice.broker.requests.long_request import LongRequest, LongRequests
from sluice.protocol import error_response
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.groups import commit_request, stable_group
from tests.support.messages import request
from tests.support.records import batch, batch_of, produce
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

NAMES = [f"name-{number}" for number in range(300)]
LARGE = ["x" * 300] * 1000  # a frame that has a buffer of its own


def sliced_broker(*overrides: str) -> VirtualBroker:
    """Return a broker that suspends each long request as often as it may."""
    broker = broker_with_topic("group.initial.rebalance.delay.ms=0", *overrides, partitions=4)
    broker.cluster.runtime.long_requests.slice_ms = 0.0
    return broker


def before_each_wait(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` before each wait in the queue of turns."""
    add = broker.cluster.runtime.turns.add

    def acted(work: Callable[[], None]) -> None:
        act()
        add(work)

    monkeypatch.setattr(broker.cluster.runtime.turns, "add", acted)


def count_slices(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets an entry for each wait in the queue of turns."""
    waits: list[None] = []
    before_each_wait(broker, monkeypatch, lambda: waits.append(None))
    return waits


FETCHED = [{"partition": n, "partition_max_bytes": 9} for n in range(999)]
LISTED = [{"partition_index": n, "timestamp": -1} for n in range(300)]
SHARED = [{"topic_name": "t", "partitions": [0]}]
COMMITTED = [{"name": "t", "partitions": [{"partition_index": n, "committed_offset": 1} for n in range(300)]}]
DELETED = [{"partition_index": n} for n in range(9)]
PRODUCED = [{"index": n, "records": batch(bytes(80))} for n in range(300)]
REQUESTS: dict[str, tuple[Message, int]] = {
    "DescribeGroups": (request("DescribeGroups", groups=NAMES), 6),
    "FindCoordinator": (request("FindCoordinator", coordinator_keys=NAMES), 6),
    "Fetch": (request("Fetch", max_wait_ms=0, session_epoch=-1, topics=[{"topic": "t", "partitions": FETCHED}]), 12),
    "LeaveGroup": (request("LeaveGroup", group_id="g", members=[{"member_id": name} for name in NAMES * 9]), 5),
    "Metadata with automatic creation": (request("Metadata", topics=[{"name": name} for name in [*NAMES, *NAMES]]), 9),
    "CreateTopics with repeated names": (
        request(
            "CreateTopics",
            topics=[{"name": name, "num_partitions": 1, "replication_factor": 1} for name in [*NAMES, *NAMES[:9]]],
        ),
        6,  # without the ids, which are random
    ),
    "DeleteTopics": (request("DeleteTopics", topic_names=["t", *NAMES], timeout_ms=1000), 5),
    "DescribeConfigs": (request("DescribeConfigs", resources=[{"resource_type": 2, "resource_name": "t"}] * 120), 4),
    "ListOffsets": (request("ListOffsets", topics=[{"name": "t", "partitions": LISTED}]), 9),
    "DescribeShareGroupOffsets": (
        request("DescribeShareGroupOffsets", groups=[{"group_id": name, "topics": SHARED} for name in NAMES]),
        1,
    ),
    "OffsetCommit": (request("OffsetCommit", group_id="g", topics=COMMITTED), 8),
    "OffsetDelete": (
        request("OffsetDelete", group_id="g", topics=[{"name": name, "partitions": DELETED} for name in ["t", *NAMES]]),
        0,
    ),
    "Produce": (request("Produce", acks=1, topic_data=[{"name": "t", "partition_data": PRODUCED}]), 9),
}


@pytest.mark.parametrize(("request_", "version"), REQUESTS.values(), ids=REQUESTS)
def test_response_in_slices_is_the_response_in_one_piece(
    request_: Message, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, sliced = VirtualBroker("group.initial.rebalance.delay.ms=0"), sliced_broker()
    whole.topic(partitions=4)
    expected = whole.client().call(request_, version)
    slices = count_slices(sliced, monkeypatch)
    assert sliced.client().call(request_, version) == expected
    assert len(slices) > 2


def test_topics_of_a_request_without_time_are_rejected_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = sliced_broker()
    slices = count_slices(broker, monkeypatch)
    copy_key, slices_before = error_response._same, list[int]()

    def counted(cls: type[Message], like: object) -> Message:
        slices_before.append(len(slices))
        return copy_key(cls, like)

    monkeypatch.setattr(error_response, "_same", counted)
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in NAMES]
    response = broker.client().call(request("CreateTopics", topics=topics, timeout_ms=0), 5)
    assert error_codes(response) == [ErrorCode.REQUEST_TIMED_OUT] * len(NAMES)
    assert len(set(slices_before)) > len(NAMES) / 32


def test_offsets_of_many_share_groups_are_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = sliced_broker()
    slices = count_slices(broker, monkeypatch)
    offsets, slices_before = broker.broker.groups.share_offsets, list[int]()
    describe = offsets.describe

    def counted(
        group_id: str, requested: Mapping[str, Sequence[int]] | None, done: Callable[..., None], sliced: Sliced
    ) -> None:
        slices_before.append(len(slices))
        describe(group_id, requested, done, sliced)

    monkeypatch.setattr(offsets, "describe", counted)
    broker.client().call(*REQUESTS["DescribeShareGroupOffsets"])
    assert len(set(slices_before)) > len(NAMES) / 32


def test_small_request_for_all_topics_is_sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, sliced = VirtualBroker(), sliced_broker()
    whole.topic(partitions=4)
    request_ = request("Metadata", topics=None)
    for broker in (whole, sliced):
        for number in range(100):
            broker.topic(f"topic-{number}", partitions=2)
    whole.cluster.runtime.long_requests.slice_ms = 10_000
    expected = whole.client().call(request_, 9)
    slices = count_slices(sliced, monkeypatch)
    assert sliced.client().call(request_, 9) == expected
    assert len(slices) > 2


def test_topic_requested_by_id_with_many_names_is_returned_once() -> None:
    broker = sliced_broker()
    topic_id = broker.partition().topic.topic_id
    request_ = request("Metadata", topics=[{"name": name, "topic_id": topic_id} for name in NAMES])
    assert [topic.name for topic in broker.client().call(request_, 12).topics] == ["t"]


def arrivals(*clients: Client) -> list[Client]:
    """Return a list of the clients in the order in which they receive responses."""
    order: list[Client] = []
    for client in clients:

        def received(data: bytes, client: Client = client) -> None:
            order.append(client)
            client.take(data)

        client.on_bytes = received
    return order


def send_meanwhile(slow: Client, quick: Client, request: Message, version: int) -> None:
    """Send a request of `quick` that the broker reads during the next request of `slow`."""
    quick._sent += quick.frame(request, version)
    for client in (slow, quick):
        client.broker.loop.call_soon(client.deliver)


def test_fetch_session_is_not_resumed_twice_at_once() -> None:
    broker = sliced_broker()
    topics = [{"topic": "t", "partitions": [{"partition": n} for n in range(999)]}]
    client, other = broker.client(), broker.client()
    session_id = client.call(request("Fetch", max_wait_ms=0, session_epoch=0, topics=topics), 12).session_id
    order = arrivals(client, other)
    resumed = request("Fetch", max_wait_ms=0, session_id=session_id, session_epoch=1, topics=topics)
    send_meanwhile(client, other, resumed, 12)
    client.send(resumed, 12)
    codes = [one.response().message.error_code for one in (client, other)]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
    assert order == [other, client]


def test_long_fetch_records_in_its_session_what_it_sent() -> None:
    broker = sliced_broker()
    topics = [{"topic": "t", "partitions": [{"partition": n} for n in range(999)]}]
    client = broker.client()
    session_id = client.call(request("Fetch", max_wait_ms=0, session_epoch=0, topics=topics), 12).session_id
    client.call(produce(9, batch_of(100)), 9)
    client.call(request("Fetch", max_wait_ms=0, session_id=session_id, session_epoch=1, topics=topics), 12)
    session = broker.broker.fetch_sessions.find(session_id)
    assert session is not None
    assert session.partitions["t", 0].high_watermark == 1
    assert [*session.partitions][-1] == ("t", 0), "a partition that had records moves to the end"


def test_long_commit_is_atomic_and_ordered_after_one_that_was_served_meanwhile() -> None:
    broker = sliced_broker()
    slow, quick = broker.client(), broker.client()
    order = arrivals(slow, quick)
    send_meanwhile(slow, quick, commit_request(5, group_id="g"), 8)
    slow.send(*REQUESTS["OffsetCommit"])
    assert order == [quick, slow]
    committed = broker.broker.groups.offsets.of_group("g")
    assert {index: one.offset for (_, index), one in committed.items()} == dict.fromkeys(range(4), 1)
    assert [one.order for one in committed.values()] == [1, 2, 3, 4]


def test_long_commit_of_a_member_that_left_meanwhile_is_rejected() -> None:
    broker = sliced_broker()
    slow, quick = broker.client(), broker.client()
    stable_group(broker, "g")
    fields = {"member_id": "member", "generation_id_or_member_epoch": 1}
    commit = request("OffsetCommit", group_id="g", topics=COMMITTED, **fields)
    leaving = request("LeaveGroup", group_id="g", members=[{"member_id": "member"}])
    send_meanwhile(slow, quick, leaving, 5)
    partitions = slow.call(commit, 8).topics[0].partitions
    assert {one.error_code for one in partitions[-4:]} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert not broker.broker.groups.offsets.of_group("g")


def test_no_garbage_collection_starts_during_a_long_request(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = sliced_broker()
    during: set[bool] = set()
    before_each_wait(broker, monkeypatch, lambda: during.add(gc.isenabled()))
    broker.client().call(request("DescribeGroups", groups=NAMES), 6)
    assert during == {False}
    assert gc.isenabled()


def test_journal_names_the_partitions_of_a_long_request() -> None:
    whole, sliced = VirtualBroker(JOURNAL), sliced_broker(JOURNAL)
    events = []
    for broker in (whole, sliced):
        broker.client().send(*REQUESTS["ListOffsets"])
        (event,) = broker.journal.requests()
        events.append((event.api, event.partitions, event.partitions_left_off))
    assert events[0] == events[1]


def test_another_client_is_served_before_a_long_request_ends() -> None:
    broker = sliced_broker()
    slow, quick = broker.client(), broker.client()
    order = arrivals(slow, quick)
    send_meanwhile(slow, quick, produce(9), 9)
    slow.send(request("DescribeGroups", groups=NAMES), 6)
    assert order == [quick, slow]
    assert len(slow.response().message.groups) == len(NAMES)


@pytest.mark.parametrize("groups", [NAMES, LARGE], ids=["a small frame", "a large frame"])
def test_requests_after_a_long_one_are_answered_in_order(groups: list[str]) -> None:
    client = sliced_broker().client()
    client.send_together((request("DescribeGroups", groups=groups), 6), (request("DescribeGroups", groups=["g"]), 6))
    first, second = (response.message for response in client.take_responses())
    assert [group.group_id for group in first.groups] == groups
    assert [group.group_id for group in second.groups] == ["g"]
    assert len(client.call(request("DescribeGroups", groups=groups), 6).groups) == len(groups)


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_number_of_long_requests_in_progress_is_bounded(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six clients send at once, of which one disconnects, one sends a malformed end and one is closed by the broker."""
    broker = sliced_broker(f"num.io.threads={threads}")
    requests = broker.cluster.runtime.long_requests
    in_progress: list[int] = []
    before_each_wait(broker, monkeypatch, lambda: in_progress.append(requests.in_progress))
    clients = [broker.client() for _ in range(6)]
    for number, client in enumerate(clients):
        frame = client.frame(request("DescribeGroups", groups=LARGE), 6)
        client._sent += frame if number != 2 else frame[:-3] + b"\xff\xff\xff"
        broker.loop.call_soon(client.deliver)
    broker.loop.call_soon(lambda: clients[1].transport.fail(ConnectionResetError()))
    broker.loop.call_soon(lambda: clients[3].connection.close("test"))
    broker.settle()
    assert max(in_progress) == min(threads, 4)
    assert requests.in_progress == 0
    assert [client for client in clients if client.responses] == [clients[0], clients[4], clients[5]]
    assert not clients[0].connection.request_memory.reserved_bytes
    assert gc.isenabled()
    assert len(broker.client().call(request("DescribeGroups", groups=NAMES), 6).groups) == len(NAMES)


def _iterate(ctx: Any, elements: Iterable[int]) -> None:
    for _ in ctx.long.sliced(elements):
        pass


def test_request_that_has_to_wait_has_a_short_first_slice() -> None:
    elapsed_ms = count()
    clock = SimpleNamespace(monotonic_ms=lambda: float(next(elapsed_ms)))
    requests = LongRequests(SimpleNamespace(clock=clock, add=lambda _: None), most=1)  # type: ignore[arg-type]  # all that it uses
    requests.slice_ms = 80.0
    processed = []
    for _ in range(2):
        elements = iter(range(100_000))
        ctx: Any = SimpleNamespace()
        ctx.long = LongRequest(requests, 100_000, partial(_iterate, ctx, elements))
        assert not requests.run_slice(ctx.long)
        requests.run_later(ctx.long, lambda: None)
        processed.append(next(elements))
        ctx.long.kill()
    first, second = processed
    assert first == 8 * second


def test_few_long_arrays_of_integers_are_decoded_and_freed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = sliced_broker()
    slices = count_slices(broker, monkeypatch)
    forgotten = [{"topic": "t", "partitions": list(range(20_000))} for _ in range(3)]
    broker.client().call(request("Fetch", max_wait_ms=0, session_epoch=-1, forgotten_topics_data=forgotten), 12)
    assert len(slices) > 3 * 20_000 / 64


_DISTINCT = list(range(3_000))
_NAMES = [f"name-{number}" for number in _DISTINCT]


COPIED: dict[str, tuple[Message, int]] = {
    "OffsetCommit": (
        request("OffsetCommit", group_id="g", topics=[{"name": "t", "partitions": [{}] * 10_000}]),
        8,  # of more than fit into a batch
    ),
    "OffsetCommit of unknown topics": (
        request("OffsetCommit", group_id="g", topics=[{"name": name, "partitions": [{}]} for name in _NAMES]),
        0,
    ),
    "TxnOffsetCommit": (
        request(
            "TxnOffsetCommit", transactional_id="x", group_id="g", topics=[{"name": "t", "partitions": [{}] * 3_000}]
        ),
        3,
    ),
    "OffsetDelete": (request("OffsetDelete", group_id="g", topics=[{"name": "t", "partitions": [{}] * 3_000}]), 0),
    "OffsetFetch": (request("OffsetFetch", group_id="g", topics=[{"name": "t", "partition_indexes": [0] * 3_000}]), 0),
    "AddPartitionsToTxn": (
        request(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id="x",
            v3_and_below_topics=[{"name": "t", "partitions": _DISTINCT}],
        ),
        3,
    ),
    "DescribeShareGroupOffsets": (
        request(
            "DescribeShareGroupOffsets",
            groups=[{"group_id": "g", "topics": [{"topic_name": "t", "partitions": _DISTINCT}]}],
        ),
        1,
    ),
    "AlterShareGroupOffsets": (
        request(
            "AlterShareGroupOffsets",
            group_id="s",
            topics=[{"topic_name": "t", "partitions": [{"partition_index": n} for n in _DISTINCT]}],
        ),
        0,
    ),
    "AlterUserScramCredentials": (
        request("AlterUserScramCredentials", deletions=[{"name": name} for name in _NAMES]),
        0,
    ),
    "AlterClientQuotas": (
        request(
            "AlterClientQuotas", entries=[{"entity": [{"entity_type": "x", "entity_name": name}]} for name in _NAMES]
        ),
        1,
    ),
    "IncrementalAlterConfigs": (
        request("IncrementalAlterConfigs", resources=[{"resource_type": 2, "resource_name": name} for name in _NAMES]),
        1,
    ),
    "CreateTopics": (request("CreateTopics", topics=[{"name": name} for name in _NAMES]), 7),
    "ListGroups": (request("ListGroups", states_filter=_NAMES), 5),
}


def objects_in_use(request_: Message, version: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of objects at the end of each slice."""
    broker = sliced_broker("message.max.bytes=300000")
    broker.client().call(request("FindCoordinator", key="g"), 2)
    client = broker.client()
    in_use: list[int] = []
    before_each_wait(broker, monkeypatch, lambda: in_use.append(sys.getallocatedblocks()))
    gc.disable()  # it would free objects of other tests
    try:
        client.call(request_, version)
    finally:
        gc.enable()
    return in_use


@pytest.mark.parametrize(("request_", "version"), COPIED.values(), ids=COPIED)
def test_copies_of_a_long_request_are_freed_in_slices(
    request_: Message, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use = objects_in_use(request_, version, monkeypatch)
    assert max(before - after for before, after in pairwise(in_use)) < len(_DISTINCT) / 5


def test_results_for_unknown_topics_are_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use = objects_in_use(*COPIED["OffsetCommit of unknown topics"], monkeypatch)
    *made, of_client = sorted(after - before for before, after in pairwise(in_use))
    assert max(made) < len(_DISTINCT) / 5 < of_client  # the client decodes the response in one piece


def test_malformed_end_of_a_long_request_closes_the_connection() -> None:
    client = sliced_broker().client()
    frame = client.frame(request("DescribeGroups", groups=LARGE), 6)
    client.send_bytes(frame[:-3] + b"\xff\xff\xff")
    assert not client.is_open
    assert "string is not UTF-8" in client.connection.close_reason


DISCONNECTS = {
    "the client disconnects": (lambda client: client.transport.fail(ConnectionResetError()), True),
    "the broker closes the connection": (lambda client: client.connection.close("stopped"), False),
}


@pytest.mark.parametrize(("disconnect", "completed"), DISCONNECTS.values(), ids=DISCONNECTS)
@pytest.mark.parametrize("more", [[], LARGE], ids=["", "a large frame"])
def test_long_request_is_completed_unless_the_broker_closes_the_connection(
    disconnect: Callable[[Client], None], completed: bool, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = sliced_broker()
    client = broker.client()
    topics = [{"name": name} for name in NAMES + more]

    def disconnect_once() -> None:
        if len(broker.cluster.topics) > 20 and client.is_open:
            disconnect(client)

    before_each_wait(broker, monkeypatch, disconnect_once)
    client.send(request("Metadata", topics=topics), 8)
    created = len(broker.cluster.topics) - 1
    assert created == len(NAMES) if completed else 0 < created < len(NAMES)
    assert not client.connection.request_memory.reserved_bytes
    assert len(broker.client().call(request("DescribeGroups", groups=NAMES), 6).groups) == len(NAMES)


def test_error_in_a_later_slice_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = sliced_broker()
    monkeypatch.setattr(broker.broker.groups, "error", lambda group_id: 1 // 0 if group_id == NAMES[-1] else 0)
    client = broker.client()
    client.send(request("DescribeGroups", groups=NAMES), 6)
    assert not client.is_open
    assert "ZeroDivisionError" in caplog.text


def test_finished_request_is_not_referenced() -> None:
    broker = sliced_broker()
    broker.client().call(request("DescribeGroups", groups=NAMES), 6)
    reference = weakref.ref(broker)
    del broker
    gc.collect()
    assert reference() is None


def test_time_between_slices_is_not_charged_to_the_request_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = sliced_broker()
    broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 100.0})
    add = broker.cluster.runtime.turns.add

    def slow(work: Callable[[], None]) -> None:
        add(work)
        broker.clock._now_ms += 10_000

    monkeypatch.setattr(broker.cluster.runtime.turns, "add", slow)
    client = broker.client()
    client.send(request("DescribeGroups", groups=NAMES), 6)
    broker.advance(3_600_000)
    assert client.response().throttle_time_ms == 0
