"""AddPartitionsToTxn and AddOffsetsToTxn: what is taken into a transaction, and by whom."""

from collections.abc import Callable

import pytest

from sluice.broker.coordinator.common.coordinator_log import java_hash
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from sluice.protocol.errors import ErrorCode
from tests.support.transactions import Producer, add_request, added_codes, end_request, init_request
from tests.support.virtual_broker import Client, VirtualBroker

VERSIONS = range(6)
T_0 = ("t", 0)


@pytest.fixture
def broker() -> VirtualBroker:
    """With two partitions of "t", and a producer 0 in epoch 1 of the id "tx"."""
    broker = VirtualBroker()
    broker.topic(partitions=2)
    for _ in range(2):
        Producer(broker).init()
    return broker


def inside(broker: VirtualBroker) -> set[tuple[str, int]]:
    """The partitions of the transaction."""
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return set(metadata.partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_added_to_those_that_are_there(broker: VirtualBroker, version: int) -> None:
    client = broker.client()
    for partitions in ((T_0,), (T_0, ("t", 1)), (T_0,)):
        assert set(added_codes(client.ask(add_request(version, 0, 1, partitions), version)).values()) == {0}
    assert inside(broker) == {T_0, ("t", 1)}


FENCED = {0: 47, 1: 47}  # before 2, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("transactional_id", "producer_id", "epoch", "code"),
    [
        pytest.param("", 0, 1, 42, id="empty id"),
        pytest.param("nobody", 0, 1, 49, id="id that nobody has"),
        pytest.param("tx", 7, 1, 49, id="another producer's"),
        pytest.param("tx", 0, 0, 90, id="epoch before"),
        pytest.param("tx", 0, 2, 90, id="epoch to come"),
    ],
)
def test_who_adds_must_be_the_producer_of_the_id(
    broker: VirtualBroker, version: int, transactional_id: str, producer_id: int, epoch: int, code: int
) -> None:
    expected = FENCED.get(version, code) if code == ErrorCode.PRODUCER_FENCED else code
    request = add_request(version, producer_id, epoch, (T_0,), transactional_id)
    assert added_codes(broker.client().ask(request, version)) == {T_0: expected}
    assert inside(broker) == set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "unknown",
    [pytest.param(("t", 2), id="no such partition"), pytest.param(("nowhere", 0), id="no such topic")],
)
def test_one_unknown_partition_keeps_all_others_out(
    broker: VirtualBroker, version: int, unknown: tuple[str, int]
) -> None:
    codes = added_codes(broker.client().ask(add_request(version, 0, 1, (T_0, unknown)), version))
    assert codes == {T_0: ErrorCode.OPERATION_NOT_ATTEMPTED, unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert inside(broker) == set()


@pytest.mark.parametrize(("version", "code"), [(0, 29), (3, 29), (4, 0), (5, 0)])
def test_only_brokers_add_partitions_of_internal_topics(broker: VirtualBroker, version: int, code: int) -> None:
    broker.broker.cluster.internal_topic("__consumer_offsets")
    offsets = ("__consumer_offsets", 0)
    assert added_codes(broker.client().ask(add_request(version, 0, 1, (offsets,)), version)) == {offsets: code}


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_asks_for_many_transactions_at_once(broker: VirtualBroker, version: int) -> None:
    requests = [
        add_request(version, 0, 1),
        add_request(version, 5, 0, (T_0,), "nobody"),
        add_request(version, 0, 1, (("t", 1),)),
    ]
    together = AddPartitionsToTxnRequest(transactions=[one for request in requests for one in request.transactions])
    answer = broker.client().ask(together, version)
    assert answer.error_code == 0
    assert [
        (result.transactional_id, [one.partition_error_code for one in result.topic_results[0].results_by_partition])
        for result in answer.results_by_transaction
    ] == [("tx", [0]), ("nobody", [49]), ("tx", [0])]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("producer_id", "epoch", "codes"),
    [
        pytest.param(0, 1, {T_0: 0, ("t", 1): ErrorCode.TRANSACTION_ABORTABLE}, id="what is in the transaction"),
        pytest.param(7, 1, {T_0: 49, ("t", 1): 49}, id="another producer's"),
        pytest.param(0, 0, {T_0: 90, ("t", 1): 90}, id="epoch before"),
    ],
)
def test_a_broker_may_only_verify(
    broker: VirtualBroker, version: int, producer_id: int, epoch: int, codes: dict[tuple[str, int], int]
) -> None:
    client = broker.client()
    client.ask(add_request(version, 0, 1), version)
    request = add_request(version, producer_id, epoch, (T_0, ("t", 1)), verify_only=True)
    assert added_codes(client.ask(request, version)) == codes
    assert inside(broker) == {T_0}


@pytest.mark.parametrize(("transactional_id", "code"), [("", 42), ("nobody", 49)])
def test_what_nobody_has_cannot_be_verified(broker: VirtualBroker, transactional_id: str, code: int) -> None:
    request = add_request(4, 0, 1, (T_0,), transactional_id, verify_only=True)
    assert added_codes(broker.client().ask(request, 4)) == {T_0: code}


# -- while the transaction before is being completed -------------------------------------------------------------------


Codes = dict[tuple[str, int], int]


def adds(client: Client) -> Codes | None:
    """None: the answer waits for the replicas."""
    client.send(add_request(3, 0, 0), 3)
    answers = client.take_answers()
    return added_codes(answers[0].message) if answers else None


def verifies(client: Client) -> Codes | None:
    return added_codes(client.ask(add_request(4, 0, 0, verify_only=True), 4))


@pytest.mark.parametrize(
    ("ask", "afterwards"),
    [
        pytest.param(adds, None, id="adding"),
        pytest.param(verifies, {T_0: ErrorCode.TRANSACTION_ABORTABLE}, id="verifying"),
    ],
)
def test_a_transaction_that_is_being_completed_has_to_be_waited_for(
    ask: Callable[[Client], Codes | None], afterwards: Codes | None
) -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=100")
    broker.topic()
    client = broker.client()
    for request, version in ((init_request(), 5), (add_request(3, 0, 0), 3), (end_request(0, 0), 4)):
        client.send(request, version)
        assert client.take_answers() == [], "it waits for the replicas"
        broker.advance(100)
        client.answer()
    other = broker.client()
    expected = {T_0: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert ask(other) == expected, "the markers wait for the replicas"
    broker.advance(100)
    assert ask(other) == expected, "the last record of the transaction does"
    broker.advance(100)
    assert ask(other) == afterwards


# -- AddOffsetsToTxn ---------------------------------------------------------------------------------------------------


def offsets_request(producer_id: int, epoch: int, transactional_id: str = "tx") -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id="group"
    )


@pytest.mark.parametrize("version", range(5))
def test_offsets_add_the_partition_of_their_group(broker: VirtualBroker, version: int) -> None:
    assert broker.client().ask(offsets_request(0, 1), version).error_code == 0
    assert inside(broker) == {("__consumer_offsets", java_hash("group") % 50)}


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    ("transactional_id", "producer_id", "epoch", "code"),
    [
        pytest.param("", 0, 1, 42, id="empty id"),
        pytest.param("nobody", 0, 1, 49, id="id that nobody has"),
        pytest.param("tx", 7, 1, 49, id="another producer's"),
        pytest.param("tx", 0, 0, 90, id="epoch before"),
    ],
)
def test_who_adds_offsets_must_be_the_producer_of_the_id(
    broker: VirtualBroker, version: int, transactional_id: str, producer_id: int, epoch: int, code: int
) -> None:
    expected = FENCED.get(version, code) if code == ErrorCode.PRODUCER_FENCED else code
    request = offsets_request(producer_id, epoch, transactional_id)
    assert broker.client().ask(request, version).error_code == expected
