"""Slow and full disks, in virtual time."""

import pytest

from sluice.broker.faults.actions.disks import SlowDisk
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.protocol.errors import ErrorCode
from tests.support.faults import add
from tests.support.groups import commit_code, commit_request
from tests.support.records import fetch, fetched_bytes, produce, produce_of
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

FULL = [ErrorCode.KAFKA_STORAGE_ERROR]


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic(partitions=2)


# -- slow disks --------------------------------------------------------------------------------------------------------


def test_writes_of_all_clients_wait_for_one_disk(broker: VirtualBroker) -> None:
    add(broker, Rule(SlowDisk("100ms")))
    clients = [broker.client() for _ in range(3)]
    for client in clients:
        client.send(produce(9), 9)
    broker.advance(1_000)
    assert [client.response().at_ms for client in clients] == [100, 200, 300]


def test_large_writes_take_longer(broker: VirtualBroker) -> None:
    add(broker, Rule(SlowDisk(latency=50, bytes_per_s="100k")))
    client = broker.client()
    client.send(produce_of(20_000, 9, "client"), 9)
    broker.advance(249)
    assert broker.partition().log.log_end_offset == 0
    broker.advance(1)
    assert client.response().at_ms == 250
    assert broker.partition().log.log_end_offset == 1


def test_reads_of_records_are_delayed_and_empty_reads_are_not(client: Client, broker: VirtualBroker) -> None:
    client.call(produce(9), 9)
    fault = add(broker, Rule(SlowDisk("100ms")))
    began_ms = broker.now_ms
    assert not fetched_bytes(client.call(fetch(1), 11))
    client.send(fetch(0), 11)
    broker.advance(1_000)
    response = client.response()
    assert fetched_bytes(response.message)
    assert response.at_ms - began_ms == 100
    fault.remove()
    assert fetched_bytes(client.call(fetch(0), 11))


def test_each_broker_has_its_own_disk() -> None:
    cluster = VirtualBroker("sluice.brokers=2")
    cluster.topic(assignments={0: (1,), 1: (2,)})
    add(cluster, Rule(SlowDisk("100ms")))
    clients = [cluster.client(node_id=1), cluster.client(node_id=2)]
    for index, client in enumerate(clients):
        client.send(produce(9, partition=index), 9)
    cluster.advance(100)
    assert [client.response().at_ms for client in clients] == [100, 100]


def test_slow_disk_without_latency_or_rate_is_rejected(broker: VirtualBroker) -> None:
    with pytest.raises(FaultError, match=r"^fault\.action: expected latency, bytes_per_s or both$"):
        add(broker, Rule("slow-disk"))
    with pytest.raises(
        FaultError,
        match=r"^fault\.action\.bytes_per_s: expected 50k, 1M, 64Ki, or a number of bytes per second, above 0, got -1",
    ):
        add(broker, Rule(SlowDisk(bytes_per_s=-1)))


# -- full disks --------------------------------------------------------------------------------------------------------


def test_full_disk_rejects_appends_and_serves_reads(client: Client, broker: VirtualBroker) -> None:
    client.call(produce(9), 9)
    fault = add(broker, Rule("disk-full"))
    assert error_codes(client.call(produce(9), 9)) == FULL
    broker.topic("later")
    assert error_codes(client.call(produce(9, topic="later"), 9)) == FULL
    assert fetched_bytes(client.call(fetch(0), 11))
    fault.remove()
    assert error_codes(client.call(produce(9), 9)) == []
    assert broker.partition().log.log_end_offset == 2


def test_only_the_named_log_is_full(broker: VirtualBroker) -> None:
    add(broker, Rule("disk-full", topic="t", partition=1))
    client = broker.client()
    error_codes_by_partition = [error_codes(client.call(produce(9, partition=index), 9)) for index in (0, 1)]
    assert error_codes_by_partition == [[], FULL]


def test_next_leader_has_space_on_its_disk() -> None:
    cluster = VirtualBroker("sluice.brokers=3")
    cluster.topic(assignments={0: (1, 2, 3)})
    add(cluster, Rule("disk-full", broker=1))
    assert error_codes(cluster.client(node_id=1).call(produce(9, acks=-1), 9)) == FULL
    cluster.cluster_server.move_leader("t", 0, 2)
    assert error_codes(cluster.client(node_id=2).call(produce(9, acks=-1), 9)) == []


def test_two_full_disk_rules_end_independently(broker: VirtualBroker) -> None:
    faults = [add(broker, Rule("disk-full", partition=index)) for index in (0, 1)]
    client = broker.client()

    def error_codes_by_partition() -> list[list[int]]:
        return [error_codes(client.call(produce(9, partition=index), 9)) for index in (0, 1)]

    assert error_codes_by_partition() == [FULL, FULL]
    faults[0].remove()
    assert error_codes_by_partition() == [[], FULL]
    faults[1].remove()
    assert error_codes_by_partition() == [[], []]


def test_coordinator_cannot_write_to_a_full_disk(broker: VirtualBroker) -> None:
    fault = add(broker, Rule("disk-full"))
    request = commit_request(generation_id_or_member_epoch=-1, member_id="")
    assert commit_code(broker.client().call(request, 8)) == ErrorCode.NOT_COORDINATOR
    fault.remove()
    assert commit_code(broker.client().call(request, 8)) == ErrorCode.NONE
