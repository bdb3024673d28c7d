"""Transactional offset commits: verification, and the outcome of their transaction."""

import pytest

from sluice.protocol.errors import ErrorCode
from tests.support.groups import commit_code, fetch_request, fetched
from tests.support.transactions import LEGACY, NEW, init_request, initialized, offsets_request
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

BOTH = pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["legacy client", "transaction version 2"])


def committed(broker: VirtualBroker) -> int:
    """Return the committed offset of group "g" for partition 0 of "t"."""
    return fetched(broker.client().call(fetch_request(version=5, group_id="g"), 5))["t", 0][0]


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic()


@BOTH
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_offsets_are_committed_or_dropped_with_their_transaction(
    broker: VirtualBroker, versions: dict[str, int], commits: bool
) -> None:
    producer = initialized(broker, versions)
    for offset in (5, 8):
        if producer.adds_partitions:
            assert producer.add_offsets("g") == 0
        assert producer.commit_offset("g", offset) == 0
        assert committed(broker) == (5 if commits and offset == 8 else -1), "the offset is pending"
        assert producer.end(commits) == 0
        assert committed(broker) == (offset if commits else -1)


@BOTH
def test_offsets_of_a_timed_out_transaction_are_dropped(broker: VirtualBroker, versions: dict[str, int]) -> None:
    producer = initialized(broker, versions, timeout_ms=1_000)
    if producer.adds_partitions:
        producer.add_offsets("g")
    assert producer.commit_offset("g", 5) == 0
    broker.advance(10_000)
    assert committed(broker) == -1
    assert producer.commit_offset("g", 6) == ErrorCode.INVALID_PRODUCER_EPOCH


def code(broker: VirtualBroker, version: int, producer_id: int, epoch: int, transactional_id: str = "tx") -> int:
    request = offsets_request(producer_id, epoch, "g", transactional_id=transactional_id)
    return commit_code(broker.client().call(request, version))


PRODUCERS = {
    "unknown transactional id": ("unknown", 0, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "other producer id": ("tx", 7, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "other epoch": ("tx", 0, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
    "empty transactional id": ("", 0, 0, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("transactional_id", "producer_id", "epoch", "expected"), PRODUCERS.values(), ids=PRODUCERS)
def test_offset_commit_requires_the_producer_of_the_transactional_id(
    broker: VirtualBroker, version: int, transactional_id: str, producer_id: int, epoch: int, expected: int
) -> None:
    broker.client().call(init_request(), 5)
    assert code(broker, version, producer_id, epoch, transactional_id) == expected
    assert committed(broker) == -1


@pytest.mark.parametrize(("version", "expected"), [(0, 48), (3, 48), (4, 120), (5, 0)])
def test_commit_for_a_group_outside_the_transaction_adds_it_or_is_rejected(
    broker: VirtualBroker, version: int, expected: int
) -> None:
    broker.client().call(init_request(), 5)
    assert code(broker, version, 0, 0) == expected


def test_offset_commit_without_verification_needs_no_transaction() -> None:
    broker = broker_with_topic("transaction.partition.verification.enable=false")
    assert code(broker, 4, 0, 0) == 0


def test_commit_of_transaction_version_2_waits_until_its_partition_is_added() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=100")
    client = broker.client()
    client.send(init_request(), 5)
    broker.advance(100)
    client.response()
    client.send(offsets_request(0, 0, "g"), 5)
    assert client.take_responses() == []
    broker.advance(100)
    assert client.take_responses() == []  # now the offset record waits for its replicas
    broker.advance(100)
    assert client.response().message.topics[0].partitions[0].error_code == 0
