"""InitProducerId with a transactional id: epochs and fencing."""

import pytest
from msgspec.structs import replace

from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode
from tests.support.transactions import LEGACY, NEW, Producer, begun, init_request, stored
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

LAST_EPOCH = 32766  # 32767 fences the producer with this epoch


def set_epoch(broker: VirtualBroker, epoch: int) -> None:
    """Set the epoch of the transactional id "tx"."""
    entry = broker.broker.transactions._entries["tx"]
    entry.current = replace(entry.current, producer_epoch=epoch)


def initialized(
    broker: VirtualBroker, version: int = 5, transactional_id: str = "tx", **fields: int
) -> tuple[int, int, int]:
    """Return error, producer id and epoch."""
    response = broker.client().call(init_request(transactional_id, **fields), version)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_each_init_raises_the_epoch(broker: VirtualBroker, version: int) -> None:
    assert [initialized(broker, version) for _ in range(3)] == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    assert initialized(broker, version, "other") == (0, 1, 0)


TIMEOUTS = {
    "shortest timeout": (1, 0),
    "longest allowed timeout": (1000, 0),
    "longer than transaction.max.timeout.ms": (1001, 50),
    "zero": (0, 50),
    "negative": (-1, 50),
    "maximum, which two-phase commit uses": (2**31 - 1, 50),
}


@pytest.mark.parametrize(("timeout_ms", "code"), TIMEOUTS.values(), ids=TIMEOUTS)
def test_transaction_timeout_must_be_positive_and_within_the_broker_limit(timeout_ms: int, code: int) -> None:
    broker = VirtualBroker("transaction.max.timeout.ms=1000")
    assert initialized(broker, transaction_timeout_ms=timeout_ms)[0] == code


def test_empty_transactional_id_is_rejected() -> None:
    assert initialized(VirtualBroker(), transactional_id="") == (ErrorCode.INVALID_REQUEST, -1, -1)


# -- producer id and epoch in the request (KIP-360) --------------------------------------------------------------------


def test_current_epoch_in_the_request_returns_the_next_epoch_also_on_retry(broker: VirtualBroker) -> None:
    assert initialized(broker) == (0, 0, 0)
    assert initialized(broker, producer_id=0, producer_epoch=0) == (0, 0, 1)
    assert initialized(broker, producer_id=0, producer_epoch=0) == (0, 0, 1), "the retry returns the same epoch"
    assert initialized(broker, producer_id=0, producer_epoch=1) == (0, 0, 2)


OTHER_PRODUCERS = {"epoch that another producer replaced": (0, 0), "future epoch": (0, 9), "other producer id": (7, 1)}


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90), (5, 90)])
@pytest.mark.parametrize(("producer_id", "epoch"), OTHER_PRODUCERS.values(), ids=OTHER_PRODUCERS)
def test_request_with_another_producer_id_or_epoch_is_fenced(
    broker: VirtualBroker, version: int, code: int, producer_id: int, epoch: int
) -> None:
    assert [initialized(broker) for _ in range(2)] == [(0, 0, 0), (0, 0, 1)]
    assert initialized(broker, version, producer_id=producer_id, producer_epoch=epoch) == (code, -1, -1)


def test_expired_producer_id_is_replaced() -> None:
    assert initialized(VirtualBroker(), producer_id=70, producer_epoch=7) == (0, 0, 0)


# -- exhausted epochs --------------------------------------------------------------------------------------------------


def test_last_epoch_is_followed_by_a_new_producer_id(broker: VirtualBroker) -> None:
    initialized(broker)
    set_epoch(broker, LAST_EPOCH - 1)
    assert [initialized(broker) for _ in range(3)] == [(0, 0, LAST_EPOCH), (0, 1, 0), (0, 1, 1)]


def test_retry_with_the_last_epoch_returns_the_same_new_producer_id(broker: VirtualBroker) -> None:
    initialized(broker)
    set_epoch(broker, LAST_EPOCH)
    assert initialized(broker, producer_id=0, producer_epoch=LAST_EPOCH) == (0, 1, 0)
    assert initialized(broker, producer_id=0, producer_epoch=LAST_EPOCH) == (0, 1, 0)


def test_older_epoch_after_the_last_epoch_returns_unknown_server_error(broker: VirtualBroker) -> None:
    initialized(broker)
    set_epoch(broker, LAST_EPOCH)
    assert initialized(broker, producer_id=0, producer_epoch=LAST_EPOCH - 1)[0] == ErrorCode.UNKNOWN_SERVER_ERROR


def test_fencing_the_last_epoch_leads_to_a_new_producer_id(topic: Topic, broker: VirtualBroker) -> None:
    producer = Producer(broker)
    producer.init()
    set_epoch(broker, LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    assert (producer.add(), producer.send(b"v")) == ({0}, 0)
    assert initialized(broker)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert stored(broker)[-1][0].producer_epoch == LAST_EPOCH + 1
    assert initialized(broker) == (0, 1, 1)


# -- open transactions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["legacy client", "transaction version 2"])
def test_open_transaction_is_aborted_before_the_next_producer_gets_its_epoch(versions: dict[str, int]) -> None:
    broker = broker_with_topic()
    older = begun(broker, versions)
    newer = Producer(broker, versions)
    assert newer.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    marker, _ = stored(broker)[-1]
    assert (marker.is_control, marker.producer_epoch) == (True, 1)
    assert broker.partition().log.last_stable_offset == 2
    assert newer.init() == 0
    assert (newer.producer_id, newer.epoch) == (older.producer_id, 2), "one epoch for fencing, one for the new producer"
    newer.commit_values(b"w")
    assert older.send(b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert older.end() == ErrorCode.PRODUCER_FENCED
