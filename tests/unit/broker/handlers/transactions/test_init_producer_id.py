"""InitProducerId with a transactional id: who gets which epoch, and who is fenced."""

import pytest
from msgspec.structs import replace

from sluice.protocol.errors import ErrorCode
from tests.support.transactions import LEGACY, NEW, Producer, begun, init_request, stored
from tests.support.virtual_broker import VirtualBroker

LAST_EPOCH = 32766  # 32767 is for fencing whoever has this one


def set_epoch(broker: VirtualBroker, epoch: int) -> None:
    """Lets the transactional id "tx" have had many producers."""
    entry = broker.broker.transactions._entries["tx"]
    entry.current = replace(entry.current, producer_epoch=epoch)


def asked(broker: VirtualBroker, version: int = 5, transactional_id: str = "tx", **fields: int) -> tuple[int, int, int]:
    """Error, producer id and epoch."""
    answer = broker.client().ask(init_request(transactional_id, **fields), version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_each_producer_of_an_id_has_a_higher_epoch(version: int) -> None:
    broker = VirtualBroker()
    assert [asked(broker, version) for _ in range(3)] == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    assert asked(broker, version, "other") == (0, 1, 0)


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        pytest.param(1, 0, id="shortest"),
        pytest.param(1000, 0, id="longest that is allowed"),
        pytest.param(1001, 50, id="longer than transaction.max.timeout.ms"),
        pytest.param(0, 50, id="none"),
        pytest.param(-1, 50, id="negative"),
        pytest.param(2**31 - 1, 50, id="two-phase commit's, which has none"),
    ],
)
def test_the_timeout_must_be_one_that_the_broker_allows(timeout_ms: int, code: int) -> None:
    broker = VirtualBroker("transaction.max.timeout.ms=1000")
    assert asked(broker, transaction_timeout_ms=timeout_ms)[0] == code


def test_an_empty_id_is_an_invalid_request() -> None:
    assert asked(VirtualBroker(), transactional_id="") == (ErrorCode.INVALID_REQUEST, -1, -1)


# -- a producer that says what it has (KIP-360) ------------------------------------------------------------------------


def test_a_producer_that_names_its_epoch_gets_the_next_one_and_the_same_when_it_asks_again() -> None:
    broker = VirtualBroker()
    assert asked(broker) == (0, 0, 0)
    assert asked(broker, producer_id=0, producer_epoch=0) == (0, 0, 1)
    assert asked(broker, producer_id=0, producer_epoch=0) == (0, 0, 1), "the answer was lost"
    assert asked(broker, producer_id=0, producer_epoch=1) == (0, 0, 2)


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90), (5, 90)])
@pytest.mark.parametrize(
    ("producer_id", "epoch"),
    [
        pytest.param(0, 0, id="epoch of which another producer was the next"),
        pytest.param(0, 9, id="epoch that is not there yet"),
        pytest.param(7, 1, id="another producer id"),
    ],
)
def test_a_producer_that_names_what_it_has_not_is_fenced(version: int, code: int, producer_id: int, epoch: int) -> None:
    broker = VirtualBroker()
    assert [asked(broker) for _ in range(2)] == [(0, 0, 0), (0, 0, 1)]
    assert asked(broker, version, producer_id=producer_id, producer_epoch=epoch) == (code, -1, -1)


def test_a_producer_whose_id_was_forgotten_gets_a_new_one() -> None:
    assert asked(VirtualBroker(), producer_id=70, producer_epoch=7) == (0, 0, 0)


# -- epochs that are exhausted -----------------------------------------------------------------------------------------


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    broker = VirtualBroker()
    asked(broker)
    set_epoch(broker, LAST_EPOCH - 1)
    assert [asked(broker) for _ in range(3)] == [(0, 0, LAST_EPOCH), (0, 1, 0), (0, 1, 1)]


def test_a_producer_that_had_the_last_epoch_may_ask_again_for_its_new_id() -> None:
    broker = VirtualBroker()
    asked(broker)
    set_epoch(broker, LAST_EPOCH)
    assert asked(broker, producer_id=0, producer_epoch=LAST_EPOCH) == (0, 1, 0)
    assert asked(broker, producer_id=0, producer_epoch=LAST_EPOCH) == (0, 1, 0)


def test_one_that_asks_again_from_before_the_last_epoch_is_an_unknown_error() -> None:
    broker = VirtualBroker()
    asked(broker)
    set_epoch(broker, LAST_EPOCH)
    assert asked(broker, producer_id=0, producer_epoch=LAST_EPOCH - 1)[0] == ErrorCode.UNKNOWN_SERVER_ERROR


def test_fencing_whoever_has_the_last_epoch_ends_in_a_new_producer_id() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = Producer(broker)
    producer.init()
    set_epoch(broker, LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    assert (producer.add(), producer.send(b"v")) == ({0}, 0)
    assert asked(broker)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert stored(broker)[-1][0].producer_epoch == LAST_EPOCH + 1
    assert asked(broker) == (0, 1, 1)


# -- a transaction that is open ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["adds its partitions", "of transaction version 2"])
def test_an_open_transaction_is_aborted_before_the_next_producer_gets_its_epoch(versions: dict[str, int]) -> None:
    broker = VirtualBroker()
    broker.topic()
    older = begun(broker, versions)
    newer = Producer(broker, versions)
    assert newer.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    marker, _ = stored(broker)[-1]
    assert (marker.is_control, marker.producer_epoch) == (True, 1)
    assert broker.partition().log.last_stable_offset == 2
    assert newer.init() == 0
    assert (newer.producer_id, newer.epoch) == (older.producer_id, 2), "one for fencing, one for itself"
    newer.commit_values(b"w")
    assert older.send(b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert older.end() == ErrorCode.PRODUCER_FENCED
