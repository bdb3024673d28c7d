"""Fields of requests and responses in journal events, by API."""

from collections.abc import Callable

import pytest

from sluice.broker.journal.kept import KEPT_APIS, keep
from sluice.broker.journal.returned import RETURNED, returned_fields
from sluice.broker.journal.sent import SENT
from sluice.journal_events import FetchedRecords, Request
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.consumer_groups import ConsumerMember
from tests.support.groups import fetch_request, settled_group
from tests.support.records import batch, fetch, produce
from tests.support.transactions import begun
from tests.support.virtual_broker import JOURNAL, WALL_START_MS, VirtualBroker, broker_with_topic

LONG = "x" * 1000


def last(broker: VirtualBroker, api: str) -> Request:
    return broker.journal.requests(api=api)[-1]


def _produce(broker: VirtualBroker) -> None:
    broker.client().call(produce(9, batch(b"a", b"b", compression=1), acks=-1), 9)


def _fetch(broker: VirtualBroker) -> None:
    _produce(broker)
    broker.client().call(fetch(offset=1, isolation_level=1), 11)


def _metadata(broker: VirtualBroker) -> None:
    broker.client().call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 9)


def _find_coordinator(broker: VirtualBroker) -> None:
    broker.client().call(FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 4)


def _list_offsets(broker: VirtualBroker) -> None:
    _produce(broker)
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    broker.client().call(
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]), 5
    )


def _group(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    member.heartbeat()
    member.commit(70)
    member.client.call(fetch_request(), 9)
    member.leave()


def _consumer_group(broker: VirtualBroker) -> None:
    ConsumerMember(broker).join()


def _transaction(broker: VirtualBroker) -> None:
    producer = begun(broker)
    producer.add_offsets("group")
    producer.commit_offset("group", 12)
    producer.end()


# API -> the requests, and fields of the last request of the API and its response.
CASES: dict[str, tuple[Callable[[VirtualBroker], None], dict[str, object], dict[str, object]]] = {
    "Produce": (_produce, {"acks": -1, "timeout_ms": 30_000}, {}),
    "Fetch": (
        _fetch,
        {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 0x7FFF_FFFF,
            "isolation_level": 1,
            "session_id": 0,
            "session_epoch": -1,
            "partition_max_bytes": 1 << 20,
        },
        {"session_id": 0},
    ),
    "Metadata": (_metadata, {"all_topics": True, "allow_auto_topic_creation": False}, {}),
    "FindCoordinator": (_find_coordinator, {"key_type": 1, "keys": ["tx"]}, {"node_id": 1}),
    "ListOffsets": (_list_offsets, {"isolation_level": 0, "timestamp": -1}, {}),
    "JoinGroup": (
        _group,
        {"session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": ["range"]},
        {"generation_id": 1, "protocol_name": "range"},
    ),
    "SyncGroup": (_group, {"generation_id": 1}, {"protocol_name": "range"}),
    "Heartbeat": (_group, {"generation_id": 1}, {}),
    "OffsetCommit": (_group, {"generation_id": 1}, {}),
    "OffsetFetch": (_group, {}, {}),
    "LeaveGroup": (_group, {}, {}),
    "ConsumerGroupHeartbeat": (
        _consumer_group,
        {"member_id": "member", "member_epoch": 0, "subscribed_topic_names": ["t"]},
        {"member_id": "member", "member_epoch": 2, "assignment": ["t-0"]},
    ),
    "InitProducerId": (_transaction, {"producer_id": -1}, {"producer_epoch": 0}),
    "TxnOffsetCommit": (_transaction, {"generation_id": -1}, {}),
    "EndTxn": (_transaction, {"producer_epoch": 0, "committed": True}, {}),
}


def test_every_recorded_api_has_a_case() -> None:
    assert {API_KEYS[key].name for key in {*SENT, *RETURNED}} == {*CASES}
    assert {*RETURNED} == KEPT_APIS


@pytest.mark.parametrize("api", CASES)
def test_fields_of_a_request(api: str) -> None:
    act, sent, returned = CASES[api]
    broker = broker_with_topic(JOURNAL)
    act(broker)
    found = last(broker, api)
    assert {name: found.sent.get(name) for name in sent} == sent
    assert {name: found.returned.get(name) for name in returned} == returned
    assert {*found.sent} <= {*SENT[found.api_key].names} if found.sent else found.api_key not in SENT
    assert not found.returned or {*found.returned} <= {*RETURNED[found.api_key].names}


def test_members_of_a_group() -> None:
    broker = broker_with_topic(JOURNAL)
    _group(broker)
    joined = last(broker, "JoinGroup")
    member_id = joined.returned["member_id"]
    assert joined.returned["leader"] == member_id
    assert joined.returned["members"] == [member_id]
    assert last(broker, "LeaveGroup").sent["members"] == [member_id]
    assert last(broker, "Heartbeat").sent["member_id"] == member_id


def test_produced_batch_and_its_offset() -> None:
    broker = broker_with_topic(JOURNAL)
    _produce(broker)
    _produce(broker)
    (partition,) = last(broker, "Produce").partitions
    assert partition.offset == 2
    assert partition.batch is not None
    assert (partition.batch.records, partition.batch.compression) == (2, "gzip")
    assert (partition.batch.first_timestamp_ms, partition.batch.max_timestamp_ms) == (WALL_START_MS, WALL_START_MS)


def test_message_set_has_only_a_size() -> None:
    broker = broker_with_topic(JOURNAL)
    broker.client().call(produce(2), 2)
    (partition,) = last(broker, "Produce").partitions
    assert partition.batch is not None
    assert partition.batch.bytes > 0
    assert (partition.batch.records, partition.batch.compression, partition.producer_id) == (-1, "", -1)


@pytest.mark.parametrize(("offset", "size"), [(0, len(batch(b"a", b"b", compression=1))), (2, 0)])
def test_fetched_records(offset: int, size: int) -> None:
    broker = broker_with_topic(JOURNAL)
    _produce(broker)
    broker.client().call(fetch(offset), 11)
    (partition,) = last(broker, "Fetch").partitions
    assert partition.offset == offset
    assert partition.fetched == FetchedRecords(bytes=size, high_watermark=2, last_stable_offset=2)


# Versions with lengths as int32 and as varint, by name and by topic id; sizes with varints of one, two and three bytes.
@pytest.mark.parametrize("version", [4, 11, 12, 16])
@pytest.mark.parametrize("value_bytes", [1, 100, 200_000])
def test_fetched_records_of_several_partitions(version: int, value_bytes: int) -> None:
    broker = VirtualBroker(JOURNAL)
    broker.topic("t", assignments={0: (1,), 1: (1,)})
    data = batch(bytes(value_bytes))
    for partition in (0, 1):
        broker.client().call(produce(9, data, partition=partition), 9)
    topic_id = broker.cluster.topics["t"].topic_id
    both = fetch(topic_id=topic_id)
    both.topics[0].partitions += fetch(partition=1).topics[0].partitions
    broker.client().call(both, version)
    sizes = [one.fetched and one.fetched.bytes for one in last(broker, "Fetch").partitions]
    assert sizes == [len(data), len(data)]


def test_committed_and_returned_offsets() -> None:
    broker = broker_with_topic(JOURNAL)
    _group(broker)
    assert [one.offset for one in last(broker, "OffsetCommit").partitions] == [70]
    assert [one.offset for one in last(broker, "OffsetFetch").partitions] == [70]
    _transaction(broker)
    assert [one.offset for one in last(broker, "TxnOffsetCommit").partitions] == [12]
    _list_offsets(broker)
    assert [one.offset for one in last(broker, "ListOffsets").partitions] == [4]


def test_long_values_are_cut() -> None:
    broker = broker_with_topic(JOURNAL)
    broker.client().call(FindCoordinatorRequest(coordinator_keys=[LONG, *map(str, range(99))]), 4)
    keys = last(broker, "FindCoordinator").sent["keys"]
    assert isinstance(keys, list)
    assert (len(keys[0]), len(keys)) == (256, 16)


RECORDS = memoryview(bytes(100))
BODIES: dict[str, tuple[list[bytes | memoryview], object]] = {
    "one piece": ([b"abc"], b"abc"),
    "records by reference": ([b"head", RECORDS, b"tail"], (b"head", 100, b"tail")),
    "a large piece": ([bytes(5000)], None),
    "many pieces": ([bytes(3000), RECORDS, bytes(3000)], None),
}


@pytest.mark.parametrize(("body", "kept"), BODIES.values(), ids=BODIES)
def test_kept_response(body: list[bytes | memoryview], kept: object) -> None:
    assert keep(body) == kept


def test_corrupted_response_has_no_fields() -> None:
    assert returned_fields(ApiKey.JOIN_GROUP, 5, b"\xff" * 20, {}).fields == {}
