"""Journal events of requests, connections, quotas, faults, groups and the cluster, with exact virtual times."""

import pytest

from sluice import journal_events as events
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support import streams_groups
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.group_members import converge
from tests.support.groups import settled_group
from tests.support.records import batch, fetch, produce, produce_of
from tests.support.share_groups import ShareMember
from tests.support.transactions import begun
from tests.support.virtual_broker import JOURNAL, WALL_START_MS, Client, VirtualBroker, broker_with_topic

NANOS_PER_MS = 1_000_000


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker(JOURNAL)


def last_request(broker: VirtualBroker) -> events.Request:
    return broker.journal.requests()[-1]


def ms(ns: int | None) -> float:
    """Return milliseconds since the start of the broker."""
    assert ns is not None
    return ns / NANOS_PER_MS - WALL_START_MS


def times(request: events.Request) -> list[float]:
    """Return when a request was received, started and answered."""
    return [ms(time) for time in (request.received_ns, request.started_ns, request.answered_ns)]


def group_states(broker: VirtualBroker) -> list[tuple[str, str, str, int, int]]:
    """Return group type, states, generation and members of each event of group `group`."""
    states = [one for one in broker.journal.events(kind="group-state") if isinstance(one, events.GroupState)]
    assert {one.group_id for one in states} == {"group"}
    return [(one.group_type, one.before, one.after, one.generation, one.members) for one in states]


# -- requests ----------------------------------------------------------------------------------------------------------


def test_request_event_has_every_identifying_field(broker: VirtualBroker) -> None:
    broker.topic("orders")
    client = broker.client("shop")
    client.call(ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 4)
    broker.advance(5)
    data = batch(b"one", producer_id=7, producer_epoch=1, base_sequence=0)
    response = client.exchange(produce(9, data, topic="orders"), 9)
    request = last_request(broker)
    assert request == events.Request(
        seq=3,
        at_ns=request.at_ns,
        broker=1,
        connection=1,
        listener="PLAINTEXT",
        peer=f"127.0.0.1:{client.port}",
        client_id="shop",
        software_name="lib",
        software_version="1.2",
        principal="User:ANONYMOUS",
        api="Produce",
        api_key=0,
        version=9,
        correlation_id=2,
        received_ns=request.at_ns,
        started_ns=request.at_ns,
        answered_ns=request.at_ns,
        written_ns=request.at_ns,
        request_bytes=request.request_bytes,
        response_bytes=response.size,
        partitions=[
            events.TopicPartition(
                topic="orders",
                partition=0,
                producer_id=7,
                producer_epoch=1,
                base_sequence=0,
                offset=0,
                batch=events.ProducedBatch(
                    records=1,
                    bytes=len(data),
                    compression="none",
                    first_timestamp_ms=WALL_START_MS,
                    max_timestamp_ms=WALL_START_MS,
                ),
            )
        ],
        partitions_left_off=0,
        group_id="",
        transactional_id="",
        attempt_key="orders-0@7.1.0",
        error_codes=[],
        throttle_time_ms=0,
        rule_id="",
        sent={"acks": 1, "timeout_ms": 30_000},
    )
    assert ms(request.at_ns) == 5
    assert request.request_bytes > len(data)


@pytest.mark.parametrize("known", [False, True])
def test_records_are_hashed_only_if_configured(known: bool) -> None:
    broker = broker_with_topic(JOURNAL, f"sluice.journal.record.hashes={known}".lower())
    for value in (b"one", b"two", b"one"):
        broker.client().call(produce(9, batch(value)), 9)
    first, second, third = (request.partitions[0].record_hashes for request in broker.journal.requests())
    assert (len(first), first == third, first != second) == (known, True, known)


def test_times_of_a_waiting_request(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    broker.advance(10)
    client.send(fetch(max_wait_ms=500, min_bytes=1), 4)
    broker.advance(200)
    broker.client("other").call(produce(9), 9)
    waited = next(one for one in broker.journal.requests() if one.api == "Fetch")
    assert [*times(waited), ms(waited.written_ns)] == [10, 10, 210, 210]


def test_request_after_a_waiting_one_is_received_with_it_and_started_later(
    topic: Topic, client: Client, broker: VirtualBroker
) -> None:
    client.send_together((fetch(max_wait_ms=500, min_bytes=1), 4), (MetadataRequest(), 9))
    broker.advance(500)
    following = last_request(broker)
    assert following.api == "Metadata"
    assert times(following) == [0, 500, 500]


def test_later_bytes_do_not_change_the_receive_time_of_a_waiting_request(
    topic: Topic, client: Client, broker: VirtualBroker
) -> None:
    client.send(fetch(max_wait_ms=500, min_bytes=1), 4)
    broker.advance(100)
    client.send(MetadataRequest(), 9)
    broker.advance(400)
    assert [times(request) for request in broker.journal.requests()] == [[0, 0, 500], [100, 500, 500]]


def test_held_request_keeps_its_start_time() -> None:
    broker = broker_with_topic(JOURNAL, "quota.producer.override=busy:1000")
    broker.client("busy").send(produce_of(12_000, 3, "busy"), 3)
    broker.advance(1500)
    broker.client("other").call(MetadataRequest(), 9)
    broker.advance(500)
    assert times(last_request(broker)) == [0, 0, 2000]


def test_response_that_the_client_does_not_read_has_a_write_time(client: Client, broker: VirtualBroker) -> None:
    client.stop_reading()
    client.send(MetadataRequest(), 9)
    assert ms(last_request(broker).written_ns) == 0


def test_produce_with_acks_0_has_no_write_time(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().send(produce(9, acks=0), 9)
    request = last_request(broker)
    assert (request.response_bytes, request.written_ns, ms(request.answered_ns)) == (0, None, 0)


def test_waiting_request_of_a_disconnected_client_has_no_response(
    topic: Topic, client: Client, broker: VirtualBroker
) -> None:
    client.send(fetch(max_wait_ms=500, min_bytes=1), 4)
    broker.advance(100)
    client.leave()
    *_, request, closed = broker.journal.events()
    assert isinstance(request, events.Request)
    assert (request.answered_ns, request.written_ns, request.response_bytes) == (None, None, 0)
    assert (ms(request.received_ns), ms(request.at_ns)) == (0, 100)
    assert isinstance(closed, events.ConnectionClosed)


def test_unsupported_version_is_recorded_as_requested(client: Client, broker: VirtualBroker) -> None:
    client.send_bytes(client.frame(ApiVersionsRequest(), 4, answered_in=0).replace(b"\0\x12\0\4", b"\0\x12\0\x63", 1))
    request = last_request(broker)
    assert (request.api, request.version, request.error_codes) == ("ApiVersions", 99, [ErrorCode.UNSUPPORTED_VERSION])


def test_each_error_code_is_recorded_once(broker: VirtualBroker) -> None:
    broker.topic("t", partitions=2)
    data = [PartitionProduceData(index=index, records=batch()) for index in (0, 7, 8)]
    bad = [PartitionProduceData(index=1, records=batch()[:-1])]
    topics = [
        TopicProduceData(name="t", partition_data=[*data, *bad]),
        TopicProduceData(name="nowhere", partition_data=[PartitionProduceData(index=0, records=batch())]),
    ]
    broker.client().send(ProduceRequest(acks=1, topic_data=topics), 9)
    codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_RECORD]
    assert last_request(broker).error_codes == codes


def test_partition_errors_of_a_transaction_request_are_recorded(topic: Topic, broker: VirtualBroker) -> None:
    producer = begun(broker)
    broker.client().send(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 7])],
        ),
        3,
    )
    codes = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert last_request(broker).error_codes == codes


def test_only_the_first_error_of_a_large_response_is_recorded(client: Client, broker: VirtualBroker) -> None:
    broker.topic("t", partitions=2)
    client.call(produce(9, batch(bytes(300_000))), 9)
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in ((7, 0), (0, 0), (1, 50))
    ]
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=partitions)])
    response = client.call(request, 12)
    assert len(response.responses[0].partitions[0].records) > 256 * 1024
    assert last_request(broker).error_codes == [ErrorCode.OFFSET_OUT_OF_RANGE]
    del partitions[1]
    client.call(FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=partitions)]), 12)
    codes = [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert last_request(broker).error_codes == codes


NAMED: dict[str, tuple[Message, int, list[tuple[str, int]], str]] = {
    "Fetch by name": (fetch(), 4, [("t", 0)], "t-0"),
    "ListOffsets": (
        ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=1)])]),
        5,
        [("t", 1)],
        "t-1",
    ),
    "Metadata of all topics": (MetadataRequest(topics=None), 9, [], ""),
    "OffsetFetch, a list of groups": (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
                )
            ]
        ),
        8,
        [("t", 0), ("t", 1)],
        "t-0,t-1",
    ),
}


@pytest.mark.parametrize(("message", "version", "partitions", "key"), NAMED.values(), ids=NAMED)
def test_topics_and_partitions_of_a_request_are_recorded(
    broker: VirtualBroker, message: Message, version: int, partitions: list[tuple[str, int]], key: str
) -> None:
    broker.topic("t", partitions=2)
    broker.client().send(message, version)
    request = last_request(broker)
    assert [(one.topic, one.partition) for one in request.partitions] == partitions
    assert request.attempt_key == key


def test_first_sixteen_partitions_and_the_number_of_others_are_recorded(broker: VirtualBroker) -> None:
    broker.topic("t", partitions=20)
    partitions = [FetchPartition(partition=index, partition_max_bytes=1) for index in range(20)]
    broker.client().send(FetchRequest(max_bytes=1, topics=[FetchTopic(topic="t", partitions=partitions)]), 4)
    request = last_request(broker)
    assert [one.partition for one in request.partitions] == list(range(16))
    assert request.partitions_left_off == 4
    assert request.attempt_key.endswith(",t-15,+4")


def test_incremental_fetch_has_the_partitions_of_its_session(
    topic: Topic, client: Client, broker: VirtualBroker
) -> None:
    topics = [FetchTopic(topic_id=topic.topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=99)])]
    opened = client.call(FetchRequest(session_epoch=0, max_bytes=99, topics=topics), 13)
    client.call(FetchRequest(session_id=opened.session_id, session_epoch=1, max_bytes=99), 13)
    assert [(one.topic, one.partition) for one in last_request(broker).partitions] == [("t", 0)]


def test_topic_deleted_since_the_request_is_identified_by_its_id(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().call(produce(13, topic_id=topic.topic_id), 13)
    assert last_request(broker).attempt_key == "t-0"
    broker.broker.delete_topic(topic)
    assert last_request(broker).attempt_key == f"{topic.topic_id.hex()}-0"


# -- connections -------------------------------------------------------------------------------------------------------


def test_opened_and_closed_connections_are_recorded_with_numbers(broker: VirtualBroker) -> None:
    first, second = broker.client("a"), broker.client("b")
    first.call(MetadataRequest(), 9)
    first.end()
    second.send_bytes(b"\xff\xff\xff\xff")
    opened = [one for one in broker.journal.events() if isinstance(one, events.ConnectionOpened)]
    closed = [one for one in broker.journal.events() if isinstance(one, events.ConnectionClosed)]
    assert [(one.connection, one.peer, one.client_id) for one in opened] == [
        (1, f"127.0.0.1:{first.port}", ""),
        (2, f"127.0.0.1:{second.port}", ""),
    ]
    assert [(one.connection, one.client_id, one.by_client) for one in closed] == [(1, "a", True), (2, "", False)]
    assert "-1" in closed[1].reason


def test_refused_connection_is_recorded_with_the_reason() -> None:
    broker = VirtualBroker(JOURNAL, "max.connections.per.ip=1")
    broker.client()
    broker.client()
    broker.settle()
    refused, closed = broker.journal.events()[-2:]
    assert isinstance(refused, events.ConnectionRefused)
    assert refused.connection == 2
    assert refused.reason == "127.0.0.1 is at its connection limit, 1"
    assert isinstance(closed, events.ConnectionClosed)
    assert not closed.by_client


# -- quotas, faults ----------------------------------------------------------------------------------------------------


THROTTLES = {
    "muted version: response at once": (9, 0, 2000),
    "held version: response after the throttle time": (3, 2000, 2000),
    "version 0: held, and no throttle time in the response": (0, 2000, 0),
}


@pytest.mark.parametrize(("version", "answered_at_ms", "reported_ms"), THROTTLES.values(), ids=THROTTLES)
def test_throttle_is_recorded_as_an_event_and_in_the_request(
    version: int, answered_at_ms: int, reported_ms: int
) -> None:
    broker = broker_with_topic(JOURNAL, "quota.producer.default=1000")
    broker.client("busy").send(produce_of(12_000, version, "busy"), version)
    broker.advance(2000)
    throttle, request = broker.journal.events()[-2:]
    assert isinstance(throttle, events.Throttle)
    assert isinstance(request, events.Request)
    assert (throttle.quota, throttle.api, throttle.throttle_time_ms) == ("Produce", "Produce", 2000)
    assert ms(throttle.at_ns) == 0
    assert throttle.correlation_id == request.correlation_id
    assert (request.throttle_time_ms, ms(request.answered_ns)) == (reported_ms, answered_at_ms)


def test_request_does_not_inherit_throttle_time_or_errors_of_the_previous_one() -> None:
    broker = broker_with_topic(JOURNAL, "quota.producer.default=1000")
    client = broker.client("busy")
    client.send(produce_of(12_000, 9, "busy"), 9)
    broker.advance(60_000)
    client.send(produce(9, topic="nowhere"), 9)
    client.send(MetadataRequest(), 9)
    assert [(one.throttle_time_ms, one.error_codes) for one in broker.journal.requests()] == [
        (2000, []),
        (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        (0, []),
    ]


def test_fault_is_recorded_as_an_event_and_in_the_request(topic: Topic, broker: VirtualBroker) -> None:
    journal = broker.cluster.journal
    assert journal is not None
    client = broker.client("victim")
    client.send(fetch(max_wait_ms=10, min_bytes=1), 4)
    journal.fault(client.connection.ctx, "slow-fetch", "delay")
    broker.advance(10)
    fault, request = broker.journal.events()[-2:]
    assert isinstance(fault, events.Fault)
    assert isinstance(request, events.Request)
    assert (fault.rule_id, fault.action, fault.api, fault.version) == ("slow-fetch", "delay", "Fetch", 4)
    assert (request.rule_id, request.correlation_id) == ("slow-fetch", fault.correlation_id)
    journal.fault(client.connection.ctx, "cut", "close")
    hit = broker.journal.events()[-1]
    assert isinstance(hit, events.Fault)
    assert (hit.api, hit.correlation_id, hit.rule_id) == ("", -1, "cut")


# -- groups, transactions, the cluster ---------------------------------------------------------------------------------


def test_states_of_a_classic_group_are_recorded(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    member.leave()
    assert group_states(broker) == [
        ("classic", "Empty", "PreparingRebalance", 0, 1),
        ("classic", "PreparingRebalance", "CompletingRebalance", 1, 1),
        ("classic", "CompletingRebalance", "Stable", 1, 1),
        ("classic", "Stable", "PreparingRebalance", 1, 0),
        ("classic", "PreparingRebalance", "Empty", 2, 0),
    ]


def test_states_of_a_consumer_group_are_recorded() -> None:
    broker = broker_with_topic(JOURNAL, AT_ONCE, "group.consumer.heartbeat.interval.ms=5000", partitions=2)
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    two.join()
    converge(one, two)
    two.leave()
    converge(one)
    one.leave()
    assert group_states(broker) == [
        ("consumer", "Empty", "Stable", 2, 1),
        ("consumer", "Stable", "Reconciling", 3, 2),
        ("consumer", "Reconciling", "Stable", 3, 2),
        ("consumer", "Stable", "Assigning", 4, 1),
        ("consumer", "Assigning", "Stable", 4, 1),
        ("consumer", "Stable", "Empty", 5, 0),
    ]


def test_states_of_a_share_group_are_recorded(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    member = ShareMember(broker)
    member.join()
    member.leave()
    assert group_states(broker) == [("share", "Empty", "Stable", 2, 1), ("share", "Stable", "Empty", 3, 0)]


def test_states_of_a_streams_group_are_recorded() -> None:
    broker = broker_with_topic(JOURNAL, *streams_groups.AT_ONCE, partitions=2)
    member = streams_groups.StreamsMember(broker, topology=streams_groups.stateless())
    member.join()
    member.leave()
    assert group_states(broker) == [("streams", "Empty", "Stable", 2, 1), ("streams", "Stable", "Empty", 3, 0)]


def test_states_of_a_transaction_are_recorded(topic: Topic, broker: VirtualBroker) -> None:
    begun(broker).commit_values(b"one")
    states = [
        one for one in broker.journal.events(kind="transaction-state") if isinstance(one, events.TransactionState)
    ]
    assert {one.transactional_id for one in states} == {"tx"}
    assert [(one.before, one.after) for one in states] == [
        ("Empty", "Ongoing"),
        ("Ongoing", "PrepareCommit"),
        ("PrepareCommit", "CompleteCommit"),
    ]


def test_leader_changes_and_broker_states_are_recorded() -> None:
    broker = broker_with_topic(JOURNAL, "sluice.brokers=2", "sluice.election.delay.ms=1000", replicas=2)
    first = broker.partition().leader
    other = 3 - first
    server = broker.cluster_server
    server.isolate_broker(first)
    broker.advance(1000)
    server.rejoin_broker(first)
    changes = [one for one in broker.journal.events() if isinstance(one, events.LeaderChange | events.BrokerState)]
    states = [
        one.state if isinstance(one, events.BrokerState) else (one.topic, one.before, one.broker) for one in changes
    ]
    assert states == ["isolated", "fenced", ("t", first, other), "running", "unfenced"]
    change = changes[2]
    assert isinstance(change, events.LeaderChange)
    assert (change.leader_epoch, change.isr, change.lost_records) == (1, [other], 0)


def test_unclean_election_is_recorded_with_its_lost_records() -> None:
    broker = VirtualBroker(JOURNAL, "sluice.brokers=2", "sluice.replication.delay.ms=500", "min.insync.replicas=1")
    broker.topic(replicas=2)
    leader = broker.partition().leader
    broker.client(node_id=leader).call(produce(9, batch(b"one", b"two")), 9)
    broker.cluster_server.move_leader("t", 0, 3 - leader)
    (change,) = [one for one in broker.journal.events() if isinstance(one, events.LeaderChange)]
    assert change.lost_records == 2


# -- disabled journal, clock -------------------------------------------------------------------------------------------


def test_broker_without_journal_events_has_no_journal() -> None:
    broker = VirtualBroker()
    assert broker.cluster.journal is None
    broker.client().call(MetadataRequest(), 9)


def test_event_times_never_decrease(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    for _ in range(5):
        client.call(produce(9), 9)
        broker.advance(1.5)
    at_ns = [one.at_ns for one in broker.journal.events()]
    assert at_ns == sorted(at_ns)
    assert at_ns[-1] - at_ns[1] == 6 * NANOS_PER_MS
