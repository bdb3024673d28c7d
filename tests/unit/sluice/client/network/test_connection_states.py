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
