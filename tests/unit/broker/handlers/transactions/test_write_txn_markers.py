"""WriteTxnMarkers: markers of brokers, and of administrators that abort a hanging transaction."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import AUTHORIZER_ON
from tests.support.records import fetch, fetched
from tests.support.transactions import Producer, begun, stored
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


def marker(
    producer_id: int,
    epoch: int,
    *partitions: int,
    committed: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    topic: str = "t",
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=committed,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions or (0,)))],
    )


def codes(broker: VirtualBroker, version: int, *markers: WritableTxnMarker) -> dict[int, dict[tuple[str, int], int]]:
    """Return the error code per producer id and partition."""
    response = broker.client().call(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        result.producer_id: {
            (topic.name, partition.partition_index): partition.error_code
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.markers
    }


@pytest.mark.parametrize("version", range(3))
def test_each_partition_of_each_producer_has_its_own_result(broker: VirtualBroker, version: int) -> None:
    broker.topic(partitions=2)
    markers = (marker(7, 0, 1, 0, 5), marker(8, 0), marker(7, 0, topic="nowhere"))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(broker, version, *markers) == {
        7: {("t", 0): 0, ("t", 1): 0, ("t", 5): unknown, ("nowhere", 0): unknown},
        8: {("t", 0): 0},
    }
    assert [header.producer_id for header, _ in stored(broker)] == [7, 8]


def test_repeated_partition_gets_one_marker(broker: VirtualBroker) -> None:
    broker.topic()
    assert codes(broker, 1, marker(7, 0, 0)) == {7: {("t", 0): 0}}
    assert [header.producer_id for header, _ in stored(broker)] == [7]


@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", range(3))
def test_marker_ends_the_transaction_of_its_partition(broker: VirtualBroker, version: int, committed: bool) -> None:
    broker.topic()
    begun(broker)
    assert codes(broker, version, marker(0, 0, committed=committed)) == {0: {("t", 0): 0}}
    log = broker.partition().log
    assert (log.last_stable_offset, len(log.aborted_transactions(0, 2))) == (2, 0 if committed else 1)


WITHOUT_A_PRODUCER = {"producer id without a value": marker(-1, 0), "epoch without a value": marker(8, -1)}


@pytest.mark.parametrize("invalid", WITHOUT_A_PRODUCER.values(), ids=WITHOUT_A_PRODUCER)
def test_marker_without_a_producer_fails_the_whole_request(broker: VirtualBroker, invalid: WritableTxnMarker) -> None:
    broker.topic()
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    found = codes(broker, 1, marker(7, 0), invalid, marker(9, 0, topic="nowhere"))
    assert found == {7: {("t", 0): unknown}, invalid.producer_id: {("t", 0): unknown}, 9: {("nowhere", 0): unknown}}
    assert [header.producer_id for header, _ in stored(broker)] == [7]  # written before


OLD = ErrorCode.INVALID_PRODUCER_EPOCH


MARKER_EPOCHS = {
    "older epoch": (marker(0, 0), OLD),
    "epoch of the records, transaction version 1": (marker(0, 1), 0),
    "epoch of the records, transaction version 2": (marker(0, 1, transaction_version=2), OLD),
    "higher epoch, transaction version 2": (marker(0, 2, transaction_version=2), 0),
    "unknown version": (marker(0, 2, transaction_version=-1), ErrorCode.UNKNOWN_SERVER_ERROR),
    "older epoch, unknown version": (marker(0, 0, transaction_version=-1), OLD),
    "epoch of the records, negative version": (marker(0, 1, transaction_version=-2), 0),
}


@pytest.mark.parametrize(("sent", "code"), MARKER_EPOCHS.values(), ids=MARKER_EPOCHS)
def test_marker_epoch_is_validated_by_the_transaction_version(sent: WritableTxnMarker, code: int) -> None:
    broker = broker_with_topic()
    Producer(broker).init()
    assert begun(broker).epoch == 1
    assert codes(broker, 2, sent) == {0: {("t", 0): code}}


def test_older_coordinator_is_fenced(topic: Topic, broker: VirtualBroker) -> None:
    codes(broker, 1, marker(7, 0, coordinator_epoch=3))
    fenced = {("t", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    assert codes(broker, 1, marker(7, 0, coordinator_epoch=2)) == {7: fenced}


def test_denied_request_returns_the_partitions_of_the_last_marker_of_a_producer() -> None:
    broker = broker_with_topic(AUTHORIZER_ON)
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    markers = marker(7, 0, 0), marker(7, 0, 1), marker(8, 0, topic="nowhere")
    assert codes(broker, 1, *markers) == {7: {("t", 1): denied}, 8: {("nowhere", 0): denied}}


def test_other_broker_knows_only_the_partitions_of_which_it_has_a_replica() -> None:
    broker = VirtualBroker("sluice.brokers=3")
    broker.topic(assignments={0: (2, 3), 1: (2, 1)})
    unknown, follower = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert codes(broker, 1, marker(7, 0, 0, 1)) == {7: {("t", 0): unknown, ("t", 1): follower}}


def test_request_without_markers_returns_no_results() -> None:
    assert codes(VirtualBroker(), 1) == {}


@pytest.mark.parametrize("timeout_ms", [30_000, 1_000])
@pytest.mark.parametrize(("more_ms", "code"), [(-1, 0), (1, ErrorCode.REQUEST_TIMED_OUT)])
def test_response_waits_up_to_the_request_timeout_for_the_replicas(timeout_ms: int, more_ms: int, code: int) -> None:
    own = () if timeout_ms == 30_000 else (f"request.timeout.ms={timeout_ms}",)  # Kafka's default
    broker = broker_with_topic(f"sluice.replication.delay.ms={timeout_ms + more_ms}", *own)
    client = broker.client()
    request = WriteTxnMarkersRequest(markers=[marker(7, 0, 0, 9)])
    client.send(request, 1)
    broker.advance(timeout_ms - 2)
    assert client.take_responses() == []
    broker.advance(2)
    partitions = client.response().message.markers[0].topics[0].partitions
    assert [partition.error_code for partition in partitions] == [code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_marker_completes_a_pending_read_committed_fetch(topic: Topic, broker: VirtualBroker) -> None:
    begun(broker)
    reader = broker.client()
    reader.send(fetch(0, isolation_level=1, max_wait_ms=10_000), 11)
    assert reader.take_responses() == []
    codes(broker, 1, marker(0, 0))
    assert fetched(reader.response().message).last_stable_offset == 2
