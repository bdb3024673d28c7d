"""Fault actions that change responses, in virtual time: frames, records, duplicates and throttle times."""

from struct import pack, unpack

import pytest

from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.frames import CorrelationId, Garbage, Oversize, Truncate
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.broker.faults.actions.records import CorruptRecords, Duplicate
from sluice.broker.faults.actions.throttle import Throttle
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.produce import ProduceRequest
from tests.support.records import batch, fetch, fetched, fetched_bytes, produce, records_for
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker, broker_with_topic
from tests.support.virtual_proxy import proxy_with_topic


def started(*overrides: str) -> VirtualBroker:
    return broker_with_topic(JOURNAL, *overrides, partitions=2)


@pytest.fixture(params=[broker_with_topic, proxy_with_topic], ids=["broker", "proxy"])
def broker(request: pytest.FixtureRequest) -> VirtualBroker:
    started: VirtualBroker = request.param(JOURNAL, partitions=2)
    return started


def raw(client: Client, version: int = 3) -> bytes:
    """Send a heartbeat and return the response bytes; the connection stays open."""
    sent = bytearray()
    client.on_bytes = sent.extend
    client.send(HeartbeatRequest(), version)
    client.on_bytes = client.take
    return bytes(sent)


# -- frames ------------------------------------------------------------------------------------------------------------


def correct_response() -> bytes:
    return raw(started().client())


FRAMES = {
    "next correlation id": (CorrelationId(), lambda r: r[:4] + pack(">i", 2) + r[8:]),
    "negative correlation id": (CorrelationId(by=-3), lambda r: r[:4] + pack(">i", -2) + r[8:]),
    "half of the message": (Truncate(), lambda r: pack(">i", 5) + r[4:9]),
    "header only": (Truncate(keep=4), lambda r: pack(">i", 4) + r[4:8]),
    "empty frame": (Truncate(keep=0), lambda r: bytes(4)),
    "limit above the size": (Truncate(keep=999), lambda r: r),
    "maximum frame size": (Oversize(), lambda r: pack(">i", 2**31 - 1) + r[4:]),
    "200 MB": (Oversize(size=200_000_000), lambda r: pack(">i", 200_000_000) + r[4:]),
}


@pytest.mark.parametrize(("action", "frame"), FRAMES.values(), ids=FRAMES)
def test_frame_is_changed_as_the_action_specifies(broker: VirtualBroker, action: object, frame: object) -> None:
    broker.cluster_server.faults.add(Rule(action, api="Heartbeat"))  # type: ignore[arg-type]  # a valid action
    assert raw(broker.client()) == frame(correct_response())  # type: ignore[operator]  # they are functions


def test_garbage_keeps_size_and_correlation_id_unless_the_frame_is_random() -> None:
    responses = []
    for part in ("body", "body", "frame"):
        broker = started()
        broker.cluster_server.faults.add(Rule(Garbage(part), api="Heartbeat", seed=1))
        client = broker.client()
        responses.append([raw(client), raw(client)])
    assert responses[0] == responses[1], "the same seed must give the same bytes"
    first, second = responses[0]
    assert first[:8] == correct_response()[:8]
    assert first[8:] != correct_response()[8:] != second[8:]
    assert first[8:] != second[8:]
    assert responses[2][0][:4] != correct_response()[:4]
    assert len(responses[2][0]) == len(correct_response())


INVALID_ACTIONS = [
    (CorrelationId(by=0), r"action\.by: 0 does not change the correlation id"),
    (Truncate(keep=-1), r"action\.keep: expected 0 or more, got -1"),
    (Oversize(size=2**31), r"action\.size: expected a number from 0 to 2147483647, got 2147483648"),
    (
        Throttle("3000000000"),
        r"action\.throttle_time_ms: expected 250ms, 5s, 2m, or a number of milliseconds, got '3000000000'",
    ),
    (Throttle(3_000_000_000), r"action\.throttle_time_ms: expected at most 2147483647 ms, got 3000000000"),
]


@pytest.mark.parametrize(("action", "message"), INVALID_ACTIONS)
def test_invalid_frame_action_is_rejected(action: object, message: str) -> None:
    with pytest.raises(FaultError, match=rf"^fault\.{message}"):
        started().cluster_server.faults.add(Rule(action))  # type: ignore[arg-type]  # a valid action


# -- records -----------------------------------------------------------------------------------------------------------


def crc_is_valid(records: bytes) -> bool:
    from crc32c import crc32c

    return bool(unpack(">I", records[17:21])[0] == crc32c(records[21:]))


def test_corrupt_batches_are_delivered_and_the_log_is_unchanged(client: Client, broker: VirtualBroker) -> None:
    for partition in (0, 0, 1):
        client.call(produce(9, partition=partition), 9)
    one = len(batch(b"v"))
    fault = broker.cluster_server.faults.add(Rule(CorruptRecords(), api="Fetch", topic="t", partition=0))
    records = fetched_bytes(client.call(fetch(), 11))
    assert [crc_is_valid(records[at : at + one]) for at in (0, one)] == [False, False]
    assert crc_is_valid(fetched_bytes(client.call(fetch(partition=1), 11)))
    fault.remove()
    records = fetched_bytes(client.call(fetch(), 11))
    assert [crc_is_valid(records[at : at + one]) for at in (0, one)] == [True, True]


def test_checksum_of_old_message_formats_is_corrupted() -> None:
    broker = started("log.message.format.version=0.10.2")
    client = broker.client()
    client.call(produce(2, records_for(2)), 2)
    before = fetched_bytes(client.call(fetch(), 2))
    broker.cluster_server.faults.add(Rule(CorruptRecords(), api="Fetch"))
    after = fetched_bytes(client.call(fetch(), 2))
    assert [at for at in range(len(before)) if before[at] != after[at]] == [12]


def test_records_or_responses_are_delivered_twice(client: Client, broker: VirtualBroker) -> None:
    client.call(produce(9), 9)
    faults = broker.cluster_server.faults
    once = fetched_bytes(client.call(fetch(), 11))
    fault = faults.add(Rule(Duplicate("records"), api="Fetch"))
    assert fetched_bytes(client.call(fetch(), 11)) == once + once
    fault.remove()
    faults.add(Rule(Duplicate("response"), api="Heartbeat"))
    sent = raw(client)
    assert sent[: len(sent) // 2] == sent[len(sent) // 2 :]
    assert len(sent) == 2 * len(correct_response())


def producer(producer_id: int) -> ProduceRequest:
    return produce(9, batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0))


TWICE = {
    "records of a plain producer are appended twice": (produce(9), 2, 1),
    "records of an idempotent producer are appended once": (producer(7), 1, 0),
}


@pytest.mark.parametrize(("request_", "appended", "base_offset"), TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("acks", [1, -1])
def test_request_is_handled_twice(request_: ProduceRequest, appended: int, base_offset: int, acks: int) -> None:
    broker = started("sluice.brokers=2", "sluice.replication.delay.ms=10")
    broker.cluster_server.faults.add(Rule(Duplicate("request"), api="Produce"))
    partition = broker.partition()
    client = broker.client(node_id=partition.leader)
    request_.acks = acks
    client.send(request_, 9)
    broker.advance(100)
    (item,) = client.response().message.responses[0].partition_responses
    assert (item.error_code, item.base_offset, partition.log.log_end_offset) == (0, base_offset, appended)


def test_duplicate_topic_creation_fails_the_second_time(broker: VirtualBroker) -> None:
    broker.cluster_server.faults.add(Rule(Duplicate("request"), api="CreateTopics"))
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    response = broker.client().call(CreateTopicsRequest(topics=[topic]), 7)
    assert [each.error_code for each in response.topics] == [36]  # TOPIC_ALREADY_EXISTS


# -- throttle times ----------------------------------------------------------------------------------------------------


def throttle_times(broker: VirtualBroker) -> list[int]:
    return [each.throttle_time_ms for each in broker.journal.requests()]


@pytest.mark.parametrize(("mute", "next_at_ms"), [(True, 300.0), (False, 0.0)], ids=["muted", "not muted"])
def test_throttle_time_is_returned_with_or_without_muting(broker: VirtualBroker, mute: bool, next_at_ms: float) -> None:
    broker.cluster_server.faults.add(Rule(Throttle("300ms", mute=mute), api="Produce", times=1))
    client = broker.client()
    client.send_together((produce(9), 9), (produce(9), 9))
    broker.advance(1000)
    first, second = client.take_responses()
    assert (first.at_ms, first.throttle_time_ms) == (0.0, 300)
    assert (second.at_ms, second.throttle_time_ms) == (next_at_ms, 0)
    assert throttle_times(broker) == [300, 0]


def test_muted_connection_is_read_when_its_rule_is_removed(client: Client, broker: VirtualBroker) -> None:
    fault = broker.cluster_server.faults.add(Rule(Throttle("60m"), api="Heartbeat", times=1))
    client.send_together((HeartbeatRequest(), 3), (HeartbeatRequest(), 3))
    assert len(client.take_responses()) == 1
    fault.remove()
    broker.settle()
    assert len(client.take_responses()) == 1


@pytest.mark.parametrize(
    ("action", "charged"),
    [(Error("NOT_LEADER_OR_FOLLOWER"), True), (BlackHole(), False), (Close(), False)],
    ids=["answered with an error", "black hole", "connection closed"],
)
def test_quota_is_charged_for_answered_requests_only(action: Error | BlackHole | Close, charged: bool) -> None:
    broker = started("quota.producer.default=1000", "quota.window.num=2", "quota.window.size.seconds=1")
    broker.cluster_server.faults.add(Rule(action, api="Produce", times=1))
    broker.client().send(produce(9, batch(bytes(9000))), 9)
    assert (broker.client().call(produce(9), 9).throttle_time_ms > 0) == charged


@pytest.mark.parametrize(("throttle_time", "next_at_ms"), [("1ms", 1000.0), ("5s", 1000.0)])
def test_throttle_time_comes_from_the_rule_and_mute_time_from_the_quota(throttle_time: str, next_at_ms: float) -> None:
    broker = started("quota.producer.default=100", "quota.window.num=2", "quota.window.size.seconds=1")
    broker.cluster_server.faults.add(Rule(Throttle(throttle_time), api="Produce", times=1))
    client = broker.client()
    client.send_together((produce(9, batch(bytes(1000))), 9), (HeartbeatRequest(), 3))
    broker.advance(60_000)
    first, second = client.take_responses()
    assert first.throttle_time_ms == {"1ms": 1, "5s": 5000}[throttle_time]
    assert second.at_ms > next_at_ms
    assert second.at_ms not in (1.0, 5000.0), "the connection is muted for the quota's time"


def test_throttle_time_is_returned_by_all_apis_with_the_field() -> None:
    broker = started("controller.quota.window.num=2")
    broker.cluster_server.faults.add(Rule(Throttle(123, mute=False)))
    client = broker.client()
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    requests = [
        (MetadataRequest(), 9),
        (CreateTopicsRequest(topics=[topic]), 7),
        (fetch(), 11),
        (AddOffsetsToTxnRequest(), 3),
    ]
    for request, version in requests:
        assert client.call(request, version).throttle_time_ms == 123
    assert client.call(MetadataRequest(), 2).throttle_time_ms == 0


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule(Throttle(1), api="SaslHandshake"), "throttle has no effect on SaslHandshake in these versions"),
        (Rule(Throttle(1), api="Metadata", version="-2"), "throttle has no effect on Metadata in these versions"),
        (Rule(CorruptRecords(), api="Produce"), "corrupt-records has no effect on Produce in these versions"),
        (Rule(Duplicate("records"), api=["Fetch", "Produce"]), "duplicate has no effect on Produce"),
        (Rule(Duplicate("request"), api="SaslAuthenticate"), "duplicate has no effect on SaslAuthenticate"),
    ],
)  # fmt: skip
def test_action_without_effect_is_rejected(rule: Rule, message: str) -> None:
    with pytest.raises(FaultError) as raised:
        started().cluster_server.faults.add(rule)
    assert str(raised.value).startswith(f"fault.api: {message}")


def test_several_rules_apply_to_one_fetch(client: Client, broker: VirtualBroker) -> None:
    client.call(produce(9), 9)
    faults = broker.cluster_server.faults
    faults.add(Rule(CorruptRecords(), api="Fetch"))
    faults.add(Rule(Duplicate("records"), api="Fetch"))
    faults.add(Rule(Throttle(7, mute=False), api="Fetch"))
    response = client.call(fetch(), 11)
    assert response.throttle_time_ms == 7
    assert len(fetched_bytes(response)) == 2 * len(batch(b"v"))
    assert not crc_is_valid(fetched_bytes(response)[: len(batch(b"v"))])
    assert fetched(response).error_code == 0
