"""Connection states: what the vectors do not see, addresses and forgetting; and the rules in their own words."""

import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.client.network.connection_states import Address, ClusterConnectionStates, ConnectionState

A: Address = ("10.0.0.1", 9092)
B: Address = ("10.0.0.2", 9092)
C: Address = ("10.0.0.3", 9092)


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def connection_states() -> ClusterConnectionStates:
    return ClusterConnectionStates(
        ExponentialBackoff(50, 2, 1000, 0.2, middle), ExponentialBackoff(10_000, 2, 30_000, 0.2, middle)
    )


def test_a_node_that_was_never_tried_may_be() -> None:
    states = connection_states()
    assert states.can_connect(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 0
    assert not states.is_disconnected(1)
    assert not states.has_ready_nodes(0.0)


def test_each_failure_doubles_the_wait_of_its_own_node_alone() -> None:
    states = connection_states()
    waits = []
    for _ in range(6):
        states.connecting(1, 0.0, "a")
        states.disconnected(1, 0.0)
        waits.append(states.connection_delay_ms(1, 0.0))
    assert waits == [50, 100, 200, 400, 800, 1000]
    assert states.can_connect(2, 0.0)


def test_a_connection_that_was_made_resets_nothing_until_api_versions_is_answered() -> None:
    states = connection_states()
    for _ in range(2):
        states.connecting(1, 0.0, "a")
        states.disconnected(1, 0.0)
    states.connecting(1, 0.0, "a")
    states.checking_api_versions(1)
    states.disconnected(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 200
    states.connecting(1, 0.0, "a")
    states.checking_api_versions(1)
    states.ready(1)
    states.disconnected(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 50


def test_an_authentication_failure_counts_twice() -> None:
    states = connection_states()
    states.connecting(1, 0.0, "a")
    states.disconnected(1, 0.0)
    error = PermissionError("who are you")
    states.authentication_failed(1, 0.0, error)
    connection = states.get(1)
    assert connection is not None
    assert connection.state is ConnectionState.AUTHENTICATION_FAILED
    assert connection.authentication_error is error
    assert states.connection_delay_ms(1, 0.0) == 100
    states.connecting(1, 200.0, "a")
    states.ready(1)
    assert connection.authentication_error is None


def test_a_throttle_outlasts_a_reconnect_and_never_gets_shorter() -> None:
    states = connection_states()
    states.throttle(1, 5000.0)  # of nobody
    states.connecting(1, 0.0, "a")
    states.ready(1)
    states.throttle(1, 1000.0)
    states.throttle(1, 400.0)
    states.disconnected(1, 100.0)
    states.connecting(1, 200.0, "a")
    states.ready(1)
    assert not states.is_ready(1, 999.0)
    assert states.throttle_delay_ms(1, 999.0) == states.poll_delay_ms(1, 999.0) == 1
    assert states.is_ready(1, 1000.0)
    assert states.has_ready_nodes(1000.0)


def test_what_is_removed_may_be_tried_at_once() -> None:
    states = connection_states()
    states.connecting(1, 0.0, "a")
    states.disconnected(1, 0.0)
    states.remove(1)
    assert states.can_connect(1, 0.0)
    states.remove(1)


def test_another_host_is_another_broker() -> None:
    states = connection_states()
    for _ in range(3):
        states.connecting(1, 0.0, "a")
        states.disconnected(1, 0.0)
    states.connecting(1, 0.0, "b")
    states.disconnected(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 50


def attempts(states: ClusterConnectionStates, resolving_to: list[list[Address]], *events: str) -> list[Address]:
    """Which address is tried first, and then after each event, when the host resolves to these lists in turn."""
    answers = iter(resolving_to)
    tried = []
    for event in ("first", *events):
        if event == "lost":
            states.ready(1)
        if event != "first":
            states.disconnected(1, 0.0)
        connection = states.connecting(1, 0.0, "a")
        address = connection.next_address()
        if address is None:
            connection.resolved(next(answers))
            address = connection.next_address()
        assert address is not None
        tried.append(address)
    assert next(answers, None) is None, "an answer was not asked for"
    return tried


@pytest.mark.parametrize(
    ("resolving_to", "events", "expected"),
    [
        pytest.param([[A, B, C]], ["failed", "failed"], [A, B, C], id="all in turn, one an attempt"),
        pytest.param([[A, B], [A, B]], ["failed", "failed"], [A, B, A], id="then the name is resolved again"),
        pytest.param([[A, B], [B, A]], ["failed", "failed"], [A, B, A], id="not the one that was tried last"),
        pytest.param([[A], [A]], ["failed"], [A, A], id="unless there is no other"),
        pytest.param([[A, B], [A, B]], ["lost"], [A, B], id="a connection that was lost is resolved anew"),
    ],
)
def test_the_addresses_of_a_host(resolving_to: list[list[Address]], events: list[str], expected: list[Address]) -> None:
    assert attempts(connection_states(), resolving_to, *events) == expected


def test_an_attempt_may_take_longer_with_each_that_failed() -> None:
    states = connection_states()
    states.connecting(1, 0.0, "a")
    assert states.is_preparing(1)
    assert not states.nodes_with_connection_setup_timeout(10_000.0)
    assert states.nodes_with_connection_setup_timeout(10_001.0) == [1]
    states.disconnected(1, 10_001.0)
    states.connecting(1, 20_000.0, "a")
    assert states.connection_delay_ms(1, 20_000.0) == 20_000
    states.checking_api_versions(1)
    assert states.is_preparing(1)
    assert not states.is_connecting(1)
    assert states.nodes_with_connection_setup_timeout(99_999.0) == []
    states.disconnected(1, 30_000.0)
    states.connecting(1, 40_000.0, "a")
    assert states.connection_delay_ms(1, 40_000.0) == 10_000
