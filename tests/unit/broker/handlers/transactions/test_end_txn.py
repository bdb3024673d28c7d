"""EndTxn: what commits, what aborts, and what is refused, for both kinds of client."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.transaction.metadata import TransactionState
from sluice.broker.metadata.topic import TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.transactions import LEGACY, NEW, Producer, begun, end_request, init_request, stored
from tests.support.virtual_broker import VirtualBroker

COMMIT, ABORT = True, False
LAST_EPOCH = 32766


def ended(broker: VirtualBroker, version: int, producer_id: int, epoch: int, committed: bool) -> tuple[int, int, int]:
    """Error, producer id and epoch."""
    answer = broker.client().ask(end_request(producer_id, epoch, committed), version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def state(broker: VirtualBroker) -> str:
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return metadata.state.label


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
@pytest.mark.parametrize("version", range(6))
def test_the_transaction_ends_in_every_partition(version: int, committed: bool) -> None:
    broker = VirtualBroker()
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


# -- clients that raise no epoch: states, and what EndTxn says in them -------------------------------------------------

OF_LEGACY_CLIENT = {
    "Empty": (48, 48),  # commit, abort
    "Ongoing": (0, 0),
    "CompleteCommit": (0, 48),
    "CompleteAbort": (48, 0),
}


def in_state(broker: VirtualBroker, wanted: str, versions: dict[str, int]) -> Producer:
    """A producer whose transaction is so far."""
    broker.topic()
    producer = Producer(broker, versions)
    producer.init()
    if wanted != "Empty":
        if producer.adds_partitions:
            producer.add()
        producer.send(b"v")
    if wanted.startswith("Complete"):
        producer.end(wanted == "CompleteCommit")
    assert state(broker) == wanted
    return producer


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
@pytest.mark.parametrize("wanted", OF_LEGACY_CLIENT)
def test_what_a_client_that_adds_its_partitions_may_end(wanted: str, committed: bool) -> None:
    broker = VirtualBroker()
    producer = in_state(broker, wanted, LEGACY)
    expected = OF_LEGACY_CLIENT[wanted][not committed]
    assert ended(broker, 4, producer.producer_id, producer.epoch, committed) == (expected, -1, -1)


@pytest.mark.parametrize(("version", "fenced"), [(0, 47), (1, 47), (2, 90), (3, 90), (4, 90), (5, 90)])
def test_a_producer_with_another_epoch_is_fenced(version: int, fenced: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    begun(broker)
    assert ended(broker, version, 0, 1, COMMIT)[0] == fenced
    assert ended(broker, version, 7, 0, COMMIT)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("transactional_id", "code"), [("", 42), ("nobody", 49)])
def test_an_id_that_nobody_has_ends_nothing(version: int, transactional_id: str, code: int) -> None:
    request = end_request(0, 0, COMMIT, transactional_id)
    assert VirtualBroker().client().ask(request, version).error_code == code


# -- clients of transaction version 2 ----------------------------------------------------------------------------------

RAISED, REPEATED = "raised", "repeated"  # answered with the next epoch; with the one that was raised before
# State, and commit or abort -> with the epoch that the producer has; with the one before.
OF_NEW_CLIENT: dict[tuple[str, bool], tuple[int | str, int | str]] = {
    ("Empty", ABORT): (RAISED, 90),
    ("Empty", COMMIT): (48, 90),
    ("Ongoing", ABORT): (RAISED, 90),
    ("Ongoing", COMMIT): (RAISED, 90),
    ("CompleteAbort", ABORT): (RAISED, REPEATED),
    ("CompleteAbort", COMMIT): (48, 48),
    ("CompleteCommit", ABORT): (RAISED, 48),
    ("CompleteCommit", COMMIT): (48, REPEATED),
}


@pytest.mark.parametrize("back", [0, 1], ids=["its epoch", "the epoch before"])
@pytest.mark.parametrize(("wanted", "committed"), OF_NEW_CLIENT)
def test_what_a_client_of_transaction_version_2_may_end(wanted: str, committed: bool, back: int) -> None:
    broker = VirtualBroker()
    Producer(broker).init()  # so that there is an epoch before
    producer = in_state(broker, wanted, NEW)
    expected = OF_NEW_CLIENT[wanted, committed][back]
    answer = ended(broker, 5, producer.producer_id, producer.epoch - back, committed)
    if expected == RAISED:
        assert answer == (0, producer.producer_id, producer.epoch + 1)
        assert state(broker) == ("CompleteCommit" if committed else "CompleteAbort")
    elif expected == REPEATED:
        assert answer == (0, producer.producer_id, producer.epoch)
    else:
        assert answer == (expected, -1, -1)
        assert state(broker) == wanted


def test_every_transaction_has_an_epoch_of_its_own() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = Producer(broker, NEW)
    producer.init()
    for number in range(3):
        producer.commit_values(b"%d" % number, committed=number != 1)
    epochs = [(header.producer_epoch, header.is_control) for header, _ in stored(broker)]
    assert epochs == [(0, False), (1, True), (1, False), (2, True), (2, False), (3, True)]


@pytest.mark.parametrize("committed", [COMMIT, ABORT], ids=["commit", "abort"])
def test_the_last_epoch_ends_in_a_new_producer_id_and_so_does_the_repeated_request(committed: bool) -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = Producer(broker, NEW)
    producer.init()
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


# -- replicas ----------------------------------------------------------------------------------------------------------


def waiting_broker() -> tuple[VirtualBroker, Producer]:
    """Replicas take 100 ms; the transaction is open, with a record."""
    broker = VirtualBroker("sluice.replication.delay.ms=100")
    broker.topic()
    producer = Producer(broker, NEW)
    producer.client.send(init_request(), 5)
    broker.advance(100)
    answer = producer.client.answer().message
    producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
    return broker, producer


def test_a_decision_waits_for_its_replicas_and_so_do_the_markers() -> None:
    broker, producer = waiting_broker()
    broker.broker.transactions.add_partitions(  # what Produce does
        "tx", 0, 0, frozenset({_t0()}), 2, lambda code: None
    )
    broker.advance(100)
    assert producer.send(b"v") == 0
    producer.client.send(end_request(0, 0), 5)
    assert (state(broker), producer.client.take_answers()) == ("Ongoing", [])
    broker.advance(99)
    assert state(broker) == "Ongoing"
    broker.advance(1)
    answer = producer.client.answer().message
    assert (answer.error_code, answer.producer_epoch, state(broker)) == (0, 1, "PrepareCommit")
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0), "the marker is there, and not replicated"
    assert ended(broker, 5, 0, 0, COMMIT)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert ended(broker, 4, 0, 1, COMMIT)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.client().ask(init_request(), 5).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(100)
    assert (log.last_stable_offset, state(broker)) == (2, "PrepareCommit"), "that it is complete is not replicated"
    broker.advance(100)
    assert state(broker) == "CompleteCommit"


def test_markers_wait_for_their_replicas_however_long_that_takes() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=40000")
    broker.topic()
    coordinator = broker.broker.transactions
    producer = Producer(broker, timeout_ms=50_000)
    for request, version in (
        (init_request(transaction_timeout_ms=50_000), 5),
        (end_request(0, 0), 4),
    ):
        producer.client.send(request, version)
        if version == 5:
            broker.advance(40_000)
            coordinator.add_partitions("tx", 0, 0, frozenset({_t0()}), 0, lambda code: None)
        broker.advance(40_000)
    assert [answer.message.error_code for answer in producer.client.take_answers()] == [0, 0]
    assert state(broker) == "PrepareCommit"
    broker.advance(39_000)
    assert state(broker) == "PrepareCommit"
    broker.advance(41_000)
    assert state(broker) == "CompleteCommit"
    assert len(stored(broker)) == 1, "the marker was written once"


def test_a_decision_whose_replicas_take_longer_than_the_transaction_may_is_not_available() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=1000")
    client = broker.client()
    client.send(init_request(transaction_timeout_ms=500), 5)
    broker.advance(500)
    assert client.answer().message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(broker) == TransactionState.EMPTY.label


def test_a_client_that_leaves_while_it_waits_ends_its_transaction_all_the_same() -> None:
    broker, producer = waiting_broker()
    broker.broker.transactions.add_partitions("tx", 0, 0, frozenset({_t0()}), 2, lambda code: None)
    broker.advance(100)
    producer.client.send(end_request(0, 0), 5)
    producer.client.leave()
    broker.advance(300)
    assert state(broker) == "CompleteCommit"


def test_a_partition_that_was_deleted_needs_no_marker() -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    producer = begun(broker)
    broker.broker.delete_topic(topic)
    assert producer.end() == 0
    assert state(broker) == "CompleteCommit"


def test_a_partition_that_is_deleted_while_its_marker_waits_is_not_waited_for() -> None:
    broker, producer = waiting_broker()
    broker.broker.transactions.add_partitions("tx", 0, 0, frozenset({_t0()}), 2, lambda code: None)
    broker.advance(100)
    producer.client.send(end_request(0, 0), 5)
    broker.advance(100)
    broker.broker.delete_topic(broker.broker.cluster.topics["t"])
    broker.advance(100)
    assert state(broker) == "CompleteCommit"


def test_a_transaction_whose_marker_comes_too_late_hangs(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker("transaction.partition.verification.enable=false")
    broker.topic()
    producer = begun(broker)
    rogue = Producer(broker)  # writes with an epoch that nobody gave it
    rogue.producer_id, rogue.epoch = producer.producer_id, 5
    assert rogue.send(b"w") == 0
    assert producer.end() == 0
    assert [record.message for record in caplog.records] == ["transaction marker rejected"]
    assert state(broker) == "PrepareCommit"
    assert producer.end() == ErrorCode.CONCURRENT_TRANSACTIONS


def _t0() -> TopicPartition:
    return TopicPartition("t", 0)
