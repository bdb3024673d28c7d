"""EndTxn: commit, abort and errors, for legacy clients and transaction version 2."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.transaction.metadata import TransactionState
from sluice.broker.metadata.topic import Topic, TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.transactions import LEGACY, NEW, Producer, begun, end_request, init_request, initialized, stored
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

COMMIT, ABORT = True, False
LAST_EPOCH = 32766


def ended(broker: VirtualBroker, version: int, producer_id: int, epoch: int, committed: bool) -> tuple[int, int, int]:
    """Return error, producer id and epoch."""
    response = broker.client().call(end_request(producer_id, epoch, committed), version)
    return response.error_code, response.producer_id, response.producer_epoch


def state(broker: VirtualBroker) -> str:
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return metadata.state.label


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
@pytest.mark.parametrize("version", range(6))
def test_transaction_ends_in_every_partition(broker: VirtualBroker, version: int, committed: bool) -> None:
    broker.topic(partitions=3)
    producer = begun(broker)
    producer.add(("t", 1), ("t", 2))
    producer.send(b"w", partition=1)
    raised = 1 if version >= 5 else 0
    expected = (0, 0, 1) if raised else (0, -1, -1)
    assert ended(broker, version, 0, 0, committed) == expected
    assert state(broker) == ("CompleteCommit" if committed else "CompleteAbort")
    for index, records in enumerate((1, 1, 0)):
        log = broker.partition("t", index).log
        (*_, (marker, _)) = stored(broker, "t", index)
        assert (marker.is_control, marker.producer_epoch, log.last_stable_offset) == (True, raised, records + 1)
        assert len(log.aborted_transactions(0, 9)) == (0 if committed else records)


# -- legacy clients: states and the results of EndTxn ------------------------------------------------------------------

LEGACY_RESULTS = {
    "Empty": (48, 48),  # commit, abort
    "Ongoing": (0, 0),
    "CompleteCommit": (0, 48),
    "CompleteAbort": (48, 0),
}


def producer_in_state(broker: VirtualBroker, state_name: str, versions: dict[str, int]) -> Producer:
    broker.topic()
    producer = initialized(broker, versions)
    if state_name != "Empty":
        if producer.adds_partitions:
            producer.add()
        producer.send(b"v")
    if state_name.startswith("Complete"):
        producer.end(state_name == "CompleteCommit")
    assert state(broker) == state_name
    return producer


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
@pytest.mark.parametrize("state_name", LEGACY_RESULTS)
def test_result_for_a_legacy_client_depends_on_the_transaction_state(state_name: str, committed: bool) -> None:
    broker = VirtualBroker()
    producer = producer_in_state(broker, state_name, LEGACY)
    expected = LEGACY_RESULTS[state_name][not committed]
    assert ended(broker, 4, producer.producer_id, producer.epoch, committed) == (expected, -1, -1)


@pytest.mark.parametrize(("version", "fenced"), [(0, 47), (1, 47), (2, 90), (3, 90), (4, 90), (5, 90)])
def test_other_producer_id_or_epoch_is_rejected(topic: Topic, broker: VirtualBroker, version: int, fenced: int) -> None:
    begun(broker)
    assert ended(broker, version, 0, 1, COMMIT)[0] == fenced
    assert ended(broker, version, 7, 0, COMMIT)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("transactional_id", "code"), [("", 42), ("unknown", 49)])
def test_unknown_transactional_id_is_rejected(version: int, transactional_id: str, code: int) -> None:
    request = end_request(0, 0, COMMIT, transactional_id)
    assert VirtualBroker().client().call(request, version).error_code == code


# -- clients of transaction version 2 ----------------------------------------------------------------------------------

RAISED, REPEATED = "raised", "repeated"  # response with the next epoch; response with the epoch that was raised before
# State, and commit or abort -> result with the current epoch; result with the previous epoch.
VERSION_2_RESULTS: dict[tuple[str, bool], tuple[int | str, int | str]] = {
    ("Empty", ABORT): (RAISED, 90),
    ("Empty", COMMIT): (48, 90),
    ("Ongoing", ABORT): (RAISED, 90),
    ("Ongoing", COMMIT): (RAISED, 90),
    ("CompleteAbort", ABORT): (RAISED, REPEATED),
    ("CompleteAbort", COMMIT): (48, 48),
    ("CompleteCommit", ABORT): (RAISED, 48),
    ("CompleteCommit", COMMIT): (48, REPEATED),
}


@pytest.mark.parametrize("epochs_back", [0, 1], ids=["current epoch", "previous epoch"])
@pytest.mark.parametrize(("state_name", "committed"), VERSION_2_RESULTS)
def test_result_for_transaction_version_2_depends_on_state_and_epoch(
    broker: VirtualBroker, state_name: str, committed: bool, epochs_back: int
) -> None:
    Producer(broker).init()  # so that a previous epoch exists
    producer = producer_in_state(broker, state_name, NEW)
    expected = VERSION_2_RESULTS[state_name, committed][epochs_back]
    response = ended(broker, 5, producer.producer_id, producer.epoch - epochs_back, committed)
    if expected == RAISED:
        assert response == (0, producer.producer_id, producer.epoch + 1)
        assert state(broker) == ("CompleteCommit" if committed else "CompleteAbort")
    elif expected == REPEATED:
        assert response == (0, producer.producer_id, producer.epoch)
    else:
        assert response == (expected, -1, -1)
        assert state(broker) == state_name


def test_each_transaction_of_version_2_raises_the_epoch(topic: Topic, broker: VirtualBroker) -> None:
    producer = initialized(broker, NEW)
    for number in range(3):
        producer.commit_values(b"%d" % number, committed=number != 1)
    epochs = [(header.producer_epoch, header.is_control) for header, _ in stored(broker)]
    assert epochs == [(0, False), (1, True), (1, False), (2, True), (2, False), (3, True)]


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
def test_last_epoch_ends_with_a_new_producer_id_also_on_retry(broker: VirtualBroker, committed: bool) -> None:
    broker.topic()
    producer = initialized(broker, NEW)
    entry = broker.broker.transactions._entries["tx"]
    entry.current = replace(entry.current, producer_epoch=LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    assert producer.send(b"v") == 0
    assert ended(broker, 5, 0, LAST_EPOCH, committed) == (0, 1, 0)
    assert stored(broker)[-1][0].producer_epoch == LAST_EPOCH + 1
    assert ended(broker, 5, 0, LAST_EPOCH, committed) == (0, 1, 0)
    assert ended(broker, 5, 0, LAST_EPOCH, not committed)[0] == ErrorCode.INVALID_TXN_STATE
    producer.producer_id, producer.epoch = 1, 0
    producer._sequences.clear()
    producer.commit_values(b"w")
    assert (producer.producer_id, producer.epoch) == (1, 1)


@pytest.mark.parametrize("feature", [1, 2])
def test_fence_of_the_highest_epoch_keeps_it(feature: int) -> None:
    """Follows TransactionMetadata.prepareFenceProducerEpoch and prepareAbortOrCommit."""
    broker = broker_with_topic(f"sluice.features=transaction.version={feature}")
    producer = initialized(broker)
    entry = broker.broker.transactions._entries["tx"]
    entry.current = replace(entry.current, producer_epoch=LAST_EPOCH + 1)
    producer.epoch = LAST_EPOCH + 1
    assert producer.add() == {0}
    assert producer.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.init() == ErrorCode.NONE
    assert (producer.producer_id, producer.epoch) == ((1, 0) if feature == 1 else (1, 1))


# -- replicas ----------------------------------------------------------------------------------------------------------


def replicating_broker() -> tuple[VirtualBroker, Producer]:
    """Return a broker with 100 ms replication delay, and an initialized producer."""
    broker = broker_with_topic("sluice.replication.delay.ms=100")
    producer = Producer(broker, NEW)
    producer.client.send(init_request(), 5)
    broker.advance(100)
    response = producer.client.response().message
    producer.producer_id, producer.epoch = response.producer_id, response.producer_epoch
    return broker, producer


def add_partition(broker: VirtualBroker, client_version: int = 2) -> None:
    """Add partition 0 of "t" to the transaction, as Produce does."""
    broker.broker.transactions.add_partitions(
        "tx", 0, 0, frozenset({TopicPartition("t", 0)}), client_version, lambda code: None
    )


def test_response_and_markers_wait_for_their_replicas() -> None:
    broker, producer = replicating_broker()
    add_partition(broker)
    broker.advance(100)
    assert producer.send(b"v") == 0
    producer.client.send(end_request(0, 0), 5)
    assert (state(broker), producer.client.take_responses()) == ("Ongoing", [])
    broker.advance(99)
    assert state(broker) == "Ongoing"
    broker.advance(1)
    response = producer.client.response().message
    assert (response.error_code, response.producer_epoch, state(broker)) == (0, 1, "PrepareCommit")
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0), "the marker is appended but not replicated"
    assert ended(broker, 5, 0, 0, COMMIT)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert ended(broker, 4, 0, 1, COMMIT)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.client().call(init_request(), 5).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(100)
    assert log.last_stable_offset == 2
    assert state(broker) == "PrepareCommit", "the CompleteCommit record is not replicated"
    broker.advance(100)
    assert state(broker) == "CompleteCommit"


def test_markers_wait_for_their_replicas_without_a_timeout() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=40000")
    client = broker.client()
    for request, version in ((init_request(transaction_timeout_ms=50_000), 5), (end_request(0, 0), 4)):
        client.send(request, version)
        if version == 5:
            broker.advance(40_000)
            add_partition(broker, 0)
        broker.advance(40_000)
    assert [response.message.error_code for response in client.take_responses()] == [0, 0]
    assert state(broker) == "PrepareCommit"
    broker.advance(39_000)
    assert state(broker) == "PrepareCommit"
    broker.advance(41_000)
    assert state(broker) == "CompleteCommit"
    assert len(stored(broker)) == 1, "the marker is written once"


def test_replication_slower_than_the_transaction_timeout_is_not_available() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=1000")
    client = broker.client()
    client.send(init_request(transaction_timeout_ms=500), 5)
    broker.advance(500)
    assert client.response().message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(broker) == TransactionState.EMPTY.label


def test_transaction_of_a_disconnected_client_still_ends() -> None:
    broker, producer = replicating_broker()
    add_partition(broker)
    broker.advance(100)
    producer.client.send(end_request(0, 0), 5)
    producer.client.leave()
    broker.advance(300)
    assert state(broker) == "CompleteCommit"


def test_deleted_partition_needs_no_marker(topic: Topic, broker: VirtualBroker) -> None:
    producer = begun(broker)
    broker.broker.delete_topic(topic)
    assert producer.end() == 0
    assert state(broker) == "CompleteCommit"


def test_partition_deleted_while_its_marker_waits_does_not_block_the_end() -> None:
    broker, producer = replicating_broker()
    add_partition(broker)
    broker.advance(100)
    producer.client.send(end_request(0, 0), 5)
    broker.advance(100)
    broker.broker.delete_topic(broker.broker.cluster.topics["t"])
    broker.advance(100)
    assert state(broker) == "CompleteCommit"


def test_transaction_with_a_rejected_marker_hangs(caplog: pytest.LogCaptureFixture) -> None:
    broker = broker_with_topic("transaction.partition.verification.enable=false")
    producer = begun(broker)
    rogue = Producer(broker)  # writes with an epoch that no coordinator assigned
    rogue.producer_id, rogue.epoch = producer.producer_id, 5
    assert rogue.send(b"w") == 0
    assert producer.end() == 0
    assert [record.message for record in caplog.records] == ["transaction marker rejected"]
    assert state(broker) == "PrepareCommit"
    assert producer.end() == ErrorCode.CONCURRENT_TRANSACTIONS
