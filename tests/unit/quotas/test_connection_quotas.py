"""Connection limits (KIP-402, KIP-612): arithmetic only. The acceptor's tests cover delayed connections."""

from math import isnan

import pytest

from sluice.quotas.connection_quotas import UNLIMITED, ConnectionQuotas
from sluice.quotas.entity import DEFAULT
from sluice.quotas.manager import QuotaConfig

A, B = "EXTERNAL", "INTERNAL"
HOST, OTHER = "10.0.0.1", "10.0.0.2"
HOUR_MS = 3_600_000


def quotas_of(**limits: float) -> ConnectionQuotas:
    quotas = ConnectionQuotas(QuotaConfig(), (A, B), B)
    for name, limit in limits.items():
        sensor = {"rate": quotas.rate, "rate_a": quotas.listeners[A].rate, "rate_b": quotas.listeners[B].rate}[name]
        sensor.hold_to(limit)
    return quotas


def waits(quotas: ConnectionQuotas, count: int, listener: str = A, now_ms: int = 0) -> int:
    """Return the delay of the last of `count` connections opened at the same moment."""
    return [quotas.record(listener, now_ms) for _ in range(count)][-1]


DELAYS = {
    "no limit": ({}, A, 10_000, 0),
    "ten seconds of the rate at once": ({"rate": 2.0}, A, 20, 0),
    "one connection more waits for the rate": ({"rate": 2.0}, A, 21, 500),
    "the delay is capped at one window": ({"rate": 2.0}, A, 30, 1_000),
    "a listener's own rate": ({"rate_a": 2.0}, A, 21, 500),
    "another listener's": ({"rate_a": 2.0}, B, 21, 0),
    "the longer of two delays applies": ({"rate": 2.0, "rate_a": 1.9}, A, 20, 526),
    "the inter-broker listener is exempt from the broker's rate": ({"rate": 2.0}, B, 100, 0),
    "the inter-broker listener has its own rate": ({"rate_b": 2.0}, B, 21, 500),
}


@pytest.mark.parametrize(("limits", "listener", "count", "throttle_ms"), DELAYS.values(), ids=DELAYS)
def test_new_connection_delay(limits: dict[str, float], listener: str, count: int, throttle_ms: int) -> None:
    assert waits(quotas_of(**limits), count, listener) == throttle_ms


@pytest.mark.parametrize(("listeners", "protected"), [((A, B), True), ((B,), False)])
def test_inter_broker_listener_is_protected_only_beside_another_listener(
    listeners: tuple[str, ...], protected: bool
) -> None:
    assert ConnectionQuotas(QuotaConfig(), listeners, B).is_protected(B) == protected


def test_connection_delays_are_averaged_in_metrics() -> None:
    quotas = quotas_of(rate_a=2.0)
    assert isnan(quotas.listeners[A].throttle_time.peek(0))
    waits(quotas, 22)
    assert quotas.listeners[A].throttle_time.peek(0) == 750.0


def test_connections_are_accepted_until_the_listener_or_the_broker_is_full() -> None:
    quotas = quotas_of()
    quotas.max_connections, quotas.listeners[A].max_connections = 3, 2
    room = []
    for _ in range(4):
        room.append((quotas.has_room(A), quotas.has_room(B)))
        quotas.add(A if quotas.has_room(A) else B, HOST)
    assert room == [(True, True), (True, True), (False, True), (False, True)]
    quotas.remove(A, HOST)
    quotas.remove(B, HOST)
    assert (quotas.connections, quotas.has_room(A)) == (2, True)


def test_address_uses_its_own_connection_limit_or_the_default() -> None:
    quotas = quotas_of()
    quotas.max_connections_per_address, quotas.overrides = 1, {OTHER: 2}
    assert [quotas.add(A, HOST) for _ in range(2)] == [True, False]
    assert [quotas.add(A, OTHER) for _ in range(3)] == [True, True, False]
    quotas.remove(A, HOST)  # the connection over the limit
    quotas.remove(A, HOST)
    assert quotas.add(A, HOST)


def test_rejected_connection_of_an_address_is_not_counted() -> None:
    quotas = quotas_of(rate=1_000.0)
    quotas.limit_address(HOST, 1.0)
    quotas.limit_address(DEFAULT, 2.0)
    assert [waits(quotas, 1) + quotas.record_address(A, HOST, 0) for _ in range(12)] == [0] * 10 + [1_000, 1_000]
    assert quotas.rate.rate.peek(0) == quotas.listeners[A].rate.rate.peek(0) == 1.0, "ten connections in ten seconds"
    assert quotas.address_rates[HOST].rate.peek(0) == 1.0
    assert quotas.listeners[A].address_throttle_time.peek(0) == 1_000.0
    assert [quotas.record_address(A, OTHER, 0) for _ in range(21)][-2:] == [0, 500]


def test_rejected_address_on_the_inter_broker_listener_is_not_subtracted_from_the_broker_rate() -> None:
    quotas = quotas_of()
    quotas.limit_address(HOST, 1.0)
    for _ in range(12):
        quotas.record(B, 0)
        quotas.record_address(B, HOST, 0)
    assert (quotas.rate.rate.peek(0), quotas.listeners[B].rate.rate.peek(0)) == (0.0, 1.0)


CHANGED_LIMITS = {
    "its own": ([(HOST, 5.0)], 5.0),
    "the default": ([(DEFAULT, 7.0)], 1.0),
    "its own limit removed: the default": ([(DEFAULT, 7.0), (HOST, None)], 7.0),
    "both removed": ([(HOST, None)], UNLIMITED),
}


@pytest.mark.parametrize(("changes", "bound"), CHANGED_LIMITS.values(), ids=CHANGED_LIMITS)
def test_changed_address_limit_keeps_recorded_connections(changes: list[tuple[object, float]], bound: float) -> None:
    quotas = quotas_of()
    quotas.limit_address(HOST, 1.0)
    quotas.record_address(A, HOST, 0)
    for address, rate in changes:
        quotas.limit_address(address, rate)  # type: ignore[arg-type]  # a table of both
    assert quotas.address_rates[HOST].bound == bound
    assert quotas.address_rates[HOST].rate.peek(0) == 0.1


def test_address_expires_after_more_than_an_hour() -> None:
    quotas = quotas_of()
    quotas.limit_address(DEFAULT, 1.0)
    quotas.record_address(A, HOST, 0)
    quotas.expire(HOUR_MS)
    assert list(quotas.address_rates) == [HOST]
    quotas.expire(HOUR_MS + 1)
    assert quotas.address_rates == {}
