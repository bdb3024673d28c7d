"""Connection states: node addresses, forgetting, and the rules that the vectors also check."""

import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.client.network.connection_states import Address, ClusterConnectionStates, ConnectionState
from tests.support.client_network import Middle

A: Address = ("10.0.0.1", 9092)
B: Address = ("10.0.0.2", 9092)
C: Address = ("10.0.0.3", 9092)


@pytest.fixture
def states() -> ClusterConnectionStates:
    uniform = Middle().uniform
    return ClusterConnectionStates(
        ExponentialBackoff(50, 2, 1000, 0.2, uniform), ExponentialBackoff(10_000, 2, 30_000, 0.2, uniform)
    )


def fail(states: ClusterConnectionStates, host: str = "a") -> None:
    """Lose a connection attempt to node 1."""
    states.connecting(1, 0.0, host)
    states.disconnected(1, 0.0)


def test_untried_node_is_ready_to_connect(states: ClusterConnectionStates) -> None:
    assert states.can_connect(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 0
    assert not states.is_disconnected(1)


def test_each_failure_doubles_the_backoff_of_its_node_only(states: ClusterConnectionStates) -> None:
    waits = []
    for _ in range(6):
        fail(states)
        waits.append(states.connection_delay_ms(1, 0.0))
    assert waits == [50, 100, 200, 400, 800, 1000]
    assert states.can_connect(2, 0.0)


def test_connection_resets_the_backoff_only_after_api_versions(states: ClusterConnectionStates) -> None:
    for _ in range(2):
        fail(states)
    states.connecting(1, 0.0, "a")
    states.checking_api_versions(1)
    states.disconnected(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 200
    states.connecting(1, 0.0, "a")
    states.checking_api_versions(1)
    states.ready(1)
    states.disconnected(1, 0.0)
    assert states.connection_delay_ms(1, 0.0) == 50


def test_authentication_failure_counts_twice(states: ClusterConnectionStates) -> None:
    fail(states)
    error = PermissionError("authentication failed")
    states.authentication_failed(1, 0.0, error)
    connection = states.get(1)
    assert connection is not None
    assert connection.state is ConnectionState.AUTHENTICATION_FAILED
    assert connection.authentication_error is error
    assert states.connection_delay_ms(1, 0.0) == 100
    states.connecting(1, 200.0, "a")
    states.ready(1)
    assert connection.authentication_error is None


def test_throttle_outlasts_a_reconnect_and_never_shrinks(states: ClusterConnectionStates) -> None:
    states.throttle(1, 5000.0)  # an unknown node
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


def test_removed_node_is_ready_to_connect(states: ClusterConnectionStates) -> None:
    fail(states)
    states.remove(1)
    assert states.can_connect(1, 0.0)
    states.remove(1)


def test_changed_host_is_a_new_broker(states: ClusterConnectionStates) -> None:
    for _ in range(3):
        fail(states)
    fail(states, "b")
    assert states.connection_delay_ms(1, 0.0) == 50


@pytest.mark.parametrize(
    ("resolving_to", "events", "expected"),
    [
        pytest.param([[A, B, C]], ["failed", "failed"], [A, B, C], id="all addresses in turn, one per attempt"),
        pytest.param(
            [[A, B], [A, B]], ["failed", "failed"], [A, B, A], id="after the last address the name is resolved again"
        ),
        pytest.param([[A, B], [B, A]], ["failed", "failed"], [A, B, A], id="the last tried address is skipped"),
        pytest.param([[A], [A]], ["failed"], [A, A], id="unless it is the only one"),
        pytest.param([[A, B], [A, B]], ["lost"], [A, B], id="a lost connection resolves the name again"),
    ],
)
def test_addresses_of_a_host(
    states: ClusterConnectionStates, resolving_to: list[list[Address]], events: list[str], expected: list[Address]
) -> None:
    """The first address, then the address after each event, as the host resolves to these lists in turn."""
    responses = iter(resolving_to)
    tried = []
    for event in ("first", *events):
        if event == "lost":
            states.ready(1)
        if event != "first":
            states.disconnected(1, 0.0)
        connection = states.connecting(1, 0.0, "a")
        address = connection.next_address()
        if address is None:
            connection.resolved(next(responses))
            address = connection.next_address()
        tried.append(address)
    assert tried == expected
    assert next(responses, None) is None, "no unrequested resolution"


def test_connection_setup_timeout_grows_with_each_failure(states: ClusterConnectionStates) -> None:
    states.connecting(1, 0.0, "a")
    assert states.is_preparing(1)
    assert not states.is_connection_setup_timeout(1, 10_000.0)
    assert states.is_connection_setup_timeout(1, 10_001.0)
    states.disconnected(1, 10_001.0)
    states.connecting(1, 20_000.0, "a")
    assert states.connection_delay_ms(1, 20_000.0) == 20_000
    states.checking_api_versions(1)
    assert states.is_preparing(1)
    assert not states.is_connecting(1)
    states.disconnected(1, 30_000.0)
    states.connecting(1, 40_000.0, "a")
    assert states.connection_delay_ms(1, 40_000.0) == 10_000
