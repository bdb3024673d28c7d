"""AddPartitionsToTxn and AddOffsetsToTxn: validation, verification and errors."""

from collections.abc import Callable

import pytest

from sluice.broker.coordinator.common.coordinator_log import java_hash
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from sluice.protocol.errors import ErrorCode
from tests.support.transactions import add_request, added_codes, end_request, init_request, initialized
from tests.support.virtual_broker import INTERNAL_PARTITIONS, Client, VirtualBroker, broker_with_topic

VERSIONS = range(6)
T_0 = ("t", 0)


@pytest.fixture
def broker() -> VirtualBroker:
    """Return a broker with two partitions of "t", where "tx" has producer id 0 and epoch 1."""
    broker = broker_with_topic(partitions=2)
    for _ in range(2):
        initialized(broker)
    return broker


def added_partitions(broker: VirtualBroker) -> set[tuple[str, int]]:
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return set(metadata.partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_added_partitions_extend_the_transaction(client: Client, broker: VirtualBroker, version: int) -> None:
    for partitions in ((T_0,), (T_0, ("t", 1)), (T_0,)):
        assert set(added_codes(client.call(add_request(version, 0, 1, partitions), version)).values()) == {0}
    assert added_partitions(broker) == {T_0, ("t", 1)}


FENCED = {0: 47, 1: 47}  # before version 2, PRODUCER_FENCED is sent as INVALID_PRODUCER_EPOCH
each_wrong_producer = pytest.mark.parametrize(
    ("transactional_id", "producer_id", "epoch", "code"),
    [
        pytest.param("", 0, 1, 42, id="empty transactional id"),
        pytest.param("unknown", 0, 1, 49, id="unknown transactional id"),
        pytest.param("tx", 7, 1, 49, id="other producer id"),
        pytest.param("tx", 0, 0, 90, id="older epoch"),
        pytest.param("tx", 0, 2, 90, id="newer epoch"),
    ],
)


def test_offsets_are_added_before_their_topic_exists(broker: VirtualBroker) -> None:
    """Follows GroupCoordinatorService.partitionFor."""
    request = AddOffsetsToTxnRequest(transactional_id="tx", producer_id=0, producer_epoch=1, group_id="g")
    assert broker.broker.metadata.topics.get("__consumer_offsets") is None
    assert broker.client().call(request, 3).error_code == ErrorCode.NONE
    assert broker.broker.metadata.topics.get("__consumer_offsets") is None
    assert [topic for topic, _ in added_partitions(broker)] == ["__consumer_offsets"]
    assert broker.client().call(end_request(0, 1), 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS)
@each_wrong_producer
def test_adding_partitions_requires_the_producer_of_the_transactional_id(
    broker: VirtualBroker, version: int, transactional_id: str, producer_id: int, epoch: int, code: int
) -> None:
    expected = FENCED.get(version, code) if code == ErrorCode.PRODUCER_FENCED else code
    request = add_request(version, producer_id, epoch, (T_0,), transactional_id)
    assert added_codes(broker.client().call(request, version)) == {T_0: expected}
    assert added_partitions(broker) == set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("unknown", [("t", 2), ("nowhere", 0)], ids=["unknown partition", "unknown topic"])
def test_unknown_partition_rejects_the_whole_request(
    broker: VirtualBroker, version: int, unknown: tuple[str, int]
) -> None:
    codes = added_codes(broker.client().call(add_request(version, 0, 1, (T_0, unknown)), version))
    assert codes == {T_0: ErrorCode.OPERATION_NOT_ATTEMPTED, unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert added_partitions(broker) == set()


@pytest.mark.parametrize(("version", "code"), [(0, 29), (3, 29), (4, 0), (5, 0)])
def test_only_brokers_add_partitions_of_internal_topics(broker: VirtualBroker, version: int, code: int) -> None:
    broker.broker.cluster.internal_topic("__consumer_offsets")
    offsets = ("__consumer_offsets", 0)
    assert added_codes(broker.client().call(add_request(version, 0, 1, (offsets,)), version)) == {offsets: code}


@pytest.mark.parametrize("version", [4, 5])
def test_broker_adds_partitions_to_several_transactions_in_one_request(broker: VirtualBroker, version: int) -> None:
    requests = [
        add_request(version, 0, 1),
        add_request(version, 5, 0, (T_0,), "unknown"),
        add_request(version, 0, 1, (("t", 1),)),
    ]
    together = AddPartitionsToTxnRequest(transactions=[added for request in requests for added in request.transactions])
    response = broker.client().call(together, version)
    assert response.error_code == 0
    assert [
        (result.transactional_id, [part.partition_error_code for part in result.topic_results[0].results_by_partition])
        for result in response.results_by_transaction
    ] == [("tx", [0]), ("unknown", [49]), ("tx", [0])]


VERIFIED = {
    "producer of the transaction": (0, 1, {T_0: 0, ("t", 1): ErrorCode.TRANSACTION_ABORTABLE}),
    "other producer id": (7, 1, {T_0: 49, ("t", 1): 49}),
    "older epoch": (0, 0, {T_0: 90, ("t", 1): 90}),
}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("producer_id", "epoch", "codes"), VERIFIED.values(), ids=VERIFIED)
def test_verify_only_adds_no_partitions(
    client: Client, broker: VirtualBroker, version: int, producer_id: int, epoch: int, codes: dict[tuple[str, int], int]
) -> None:
    client.call(add_request(version, 0, 1), version)
    request = add_request(version, producer_id, epoch, (T_0, ("t", 1)), verify_only=True)
    assert added_codes(client.call(request, version)) == codes
    assert added_partitions(broker) == {T_0}


@pytest.mark.parametrize(("transactional_id", "code"), [("", 42), ("unknown", 49)])
def test_unknown_transactional_id_cannot_be_verified(broker: VirtualBroker, transactional_id: str, code: int) -> None:
    request = add_request(4, 0, 1, (T_0,), transactional_id, verify_only=True)
    assert added_codes(broker.client().call(request, 4)) == {T_0: code}


# -- while the previous transaction completes --------------------------------------------------------------------------

Codes = dict[tuple[str, int], int]


def adds(client: Client) -> Codes | None:
    """Return None if the response waits for the replicas."""
    client.send(add_request(3, 0, 0), 3)
    responses = client.take_responses()
    return added_codes(responses[0].message) if responses else None


def verifies(client: Client) -> Codes | None:
    return added_codes(client.call(add_request(4, 0, 0, verify_only=True), 4))


COMPLETING = {"adding": (adds, None), "verifying": (verifies, {T_0: ErrorCode.TRANSACTION_ABORTABLE})}


@pytest.mark.parametrize(("call", "completed"), COMPLETING.values(), ids=COMPLETING)
def test_completing_transaction_returns_concurrent_transactions(
    call: Callable[[Client], Codes | None], completed: Codes | None
) -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=100")
    client = broker.client()
    for request, version in ((init_request(), 5), (add_request(3, 0, 0), 3), (end_request(0, 0), 4)):
        client.send(request, version)
        assert client.take_responses() == [], "the response waits for the replicas"
        broker.advance(100)
        client.response()
    other = broker.client()
    expected = {T_0: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert call(other) == expected, "the markers wait for the replicas"
    broker.advance(100)
    assert call(other) == expected, "the CompleteCommit record waits for the replicas"
    broker.advance(100)
    assert call(other) == completed


# -- AddOffsetsToTxn ---------------------------------------------------------------------------------------------------


def offsets_request(producer_id: int, epoch: int, transactional_id: str = "tx") -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id="group"
    )


@pytest.mark.parametrize("version", range(5))
def test_adding_offsets_adds_the_partition_of_the_group(broker: VirtualBroker, version: int) -> None:
    assert broker.client().call(offsets_request(0, 1), version).error_code == 0
    assert added_partitions(broker) == {("__consumer_offsets", java_hash("group") % INTERNAL_PARTITIONS)}


@pytest.mark.parametrize("version", range(5))
@each_wrong_producer
def test_adding_offsets_requires_the_producer_of_the_transactional_id(
    broker: VirtualBroker, version: int, transactional_id: str, producer_id: int, epoch: int, code: int
) -> None:
    expected = FENCED.get(version, code) if code == ErrorCode.PRODUCER_FENCED else code
    request = offsets_request(producer_id, epoch, transactional_id)
    assert broker.client().call(request, version).error_code == expected


MERGED = {
    "added": ("tx", [("t", [0, 0]), ("u", []), ("t", [1])], [("t", [0, 0]), ("u", []), ("t", [1])]),
    "error of the transaction": ("", [("t", [0, 0]), ("u", [])], [("t", [0, 0]), ("u", [])]),
    "error of a partition": ("tx", [("t", [0, 0]), ("u", []), ("t", [7])], [("t", [0, 7])]),
}


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize(("transactional_id", "topics", "expected"), MERGED.values(), ids=MERGED)
def test_repeated_and_empty_topics_are_merged_only_with_an_error_of_a_partition(
    client: Client,
    version: int,
    transactional_id: str,
    topics: list[tuple[str, list[int]]],
    expected: list[tuple[str, list[int]]],
) -> None:
    request = add_request(version, 0, 1, (), transactional_id)
    request.v3_and_below_topics = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics]
    results = client.call(request, version).results_by_topic_v3_and_below
    assert [(one.name, [each.partition_index for each in one.results_by_partition]) for one in results] == expected


REPEATED = {
    "verified partitions are the last ones": (0, True, [[(1, 120)], [(1, 120)]]),
    "errors name the first partitions": (7, False, [[(0, 49)], [(0, 49)]]),
}


@pytest.mark.parametrize(("producer_id", "verify_only", "expected"), REPEATED.values(), ids=REPEATED)
def test_repeated_transaction(
    client: Client, producer_id: int, verify_only: bool, expected: list[list[tuple[int, int]]]
) -> None:
    request, other = (
        add_request(4, producer_id, 1, (partition,), verify_only=verify_only) for partition in (T_0, ("t", 1))
    )
    request.transactions += other.transactions
    results = client.call(request, 4).results_by_transaction
    found = [
        [
            (one.partition_index, one.partition_error_code)
            for topic in each.topic_results
            for one in topic.results_by_partition
        ]
        for each in results
    ]
    assert found == expected
