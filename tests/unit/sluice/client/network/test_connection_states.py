"""The addresses of a node; vectors check the other rules of connection states."""

import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.client.network.connection_states import Address, ClusterConnectionStates
from tests.support.client_network import Middle

A: Address = ("10.0.0.1", 9092)
B: Address = ("10.0.0.2", 9092)
C: Address = ("10.0.0.3", 9092)


ADDRESSES = {
    "all addresses in turn, one per attempt": ([[A, B, C]], ["failed", "failed"], [A, B, C]),
    "after the last address the name is resolved again": ([[A, B], [A, B]], ["failed", "failed"], [A, B, A]),
    "the last tried address is skipped": ([[A, B], [B, A]], ["failed", "failed"], [A, B, A]),
    "unless it is the only one": ([[A], [A]], ["failed"], [A, A]),
    "a lost connection resolves the name again": ([[A, B], [A, B]], ["lost"], [A, B]),
}


@pytest.mark.parametrize(("resolving_to", "events", "expected"), ADDRESSES.values(), ids=ADDRESSES)
def test_addresses_of_a_host(resolving_to: list[list[Address]], events: list[str], expected: list[Address]) -> None:
    """The first address, then the address after each event, as the host resolves to these lists in turn."""
    backoff = ExponentialBackoff(50, 2, 1000, 0.2, Middle().uniform)
    states = ClusterConnectionStates(backoff, backoff)
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
