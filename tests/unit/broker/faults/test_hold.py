"""`hold`: requests, or their responses, that wait until their rule releases them."""

import pytest

from sluice.broker.faults.fault import Fault
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from tests.support.faults import add
from tests.support.records import produce
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

LATER_MS = 600_000
WHENS = pytest.mark.parametrize(("when", "appended"), [("before", 0), ("after", 1)])


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic()


def hold(broker: VirtualBroker, when: str = "before", **fields: object) -> Fault:
    return broker.cluster_server.faults.add({"action": {"kind": "hold", "when": when}, "api": "Produce", **fields})


def end_offset(broker: VirtualBroker) -> int:
    return broker.cluster.topics["t"].partitions[0].log.log_end_offset


def held_requests(broker: VirtualBroker, number: int) -> list[Client]:
    clients = [broker.client(f"client-{each}") for each in range(number)]
    for client in clients:
        client.send(produce(9), 9)
    broker.advance(LATER_MS)
    return clients


def answered(clients: list[Client]) -> list[bool]:
    return [bool(client.take_responses()) for client in clients]


@WHENS
def test_request_or_response_waits_for_its_release(broker: VirtualBroker, when: str, appended: int) -> None:
    fault = hold(broker, when)
    (client,) = held_requests(broker, 1)
    assert (answered([client]), fault.held, end_offset(broker)) == ([False], 1, appended)
    assert fault.release() == 1
    assert (answered([client]), fault.held, end_offset(broker)) == ([True], 0, 1)


@WHENS
@pytest.mark.parametrize("end", ["removed", "disabled", "until", "during"])
def test_end_of_the_rule_releases(broker: VirtualBroker, when: str, appended: int, end: str) -> None:
    fault = hold(broker, when, **({end: "1s"} if end in ("until", "during") else {}))
    client = broker.client()
    client.send(produce(9), 9)
    broker.advance(999)
    assert (answered([client]), end_offset(broker)) == ([False], appended)
    if end == "removed":
        fault.remove()
    elif end == "disabled":
        fault.disable(ValueError("no"))
    broker.advance(1)
    assert (answered([client]), fault.held, end_offset(broker)) == ([True], 0, 1)


def test_oldest_requests_are_released_first(broker: VirtualBroker) -> None:
    fault = hold(broker)
    clients = held_requests(broker, 3)
    assert fault.release(2) == 2
    assert (answered(clients), fault.held) == ([True, True, False], 1)
    assert fault.release(5) == 1
    assert answered(clients) == [False, False, True]


def test_rule_holds_later_requests_too(broker: VirtualBroker) -> None:
    fault = hold(broker)
    (first,) = held_requests(broker, 1)
    fault.release()
    (second,) = held_requests(broker, 1)
    assert (answered([first, second]), fault.held) == ([True, False], 1)


def test_client_that_left_is_not_counted(broker: VirtualBroker) -> None:
    fault = hold(broker)
    first, second = held_requests(broker, 2)
    first.leave()
    assert fault.held == 1
    assert fault.release(1) == 1
    assert answered([second]) == [True]
    assert broker.broker.fault_waits is not None
    assert (len(broker.broker.fault_waits), broker.broker.fault_waits.watched) == (0, 0)


def test_later_requests_of_the_connection_wait_as_well(broker: VirtualBroker) -> None:
    fault = hold(broker)
    client = broker.client()
    client.send_together((produce(9), 9), (HeartbeatRequest(), 3))
    broker.advance(LATER_MS)
    assert client.take_responses() == []
    fault.release()
    assert [response.api for response in client.take_responses()] == ["Produce", "Heartbeat"]


def test_requests_of_two_rules_are_held_by_each_in_turn(broker: VirtualBroker) -> None:
    first, second = hold(broker), hold(broker, "after")
    (client,) = held_requests(broker, 1)
    assert (first.held, second.held) == (1, 0)
    first.release()
    assert (first.held, second.held, answered([client])) == (0, 1, [False])
    second.release()
    assert answered([client]) == [True]


def test_nothing_is_held_by_other_actions(broker: VirtualBroker) -> None:
    add(broker, broker.cluster_server.faults.check({"action": "black-hole", "api": "Produce"}))
    (client,) = held_requests(broker, 1)
    (fault,) = broker.cluster_server.faults
    assert (fault.held, fault.release(), answered([client])) == (0, 0, [False])
