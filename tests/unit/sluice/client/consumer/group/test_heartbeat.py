"""Heartbeat timing: the interval, the session timeout and the poll interval."""

import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.client.consumer.group.heartbeat import Heartbeats


@pytest.fixture
def heartbeats() -> Heartbeats:
    heartbeats = Heartbeats(3000, 10_000, 60_000, ExponentialBackoff(100, 2, 1000, 0, lambda low, _high: low))
    heartbeats.polled(0)
    heartbeats.begin(0)
    return heartbeats


def test_heartbeat_is_due_after_each_interval(heartbeats: Heartbeats) -> None:
    assert heartbeats.next_ms() == 3000
    heartbeats.sent(3000)
    assert heartbeats.next_ms() == 10_000, "the session timeout, while a response is pending"
    heartbeats.succeeded(3100)
    assert (heartbeats.due_ms, heartbeats.session_expires_ms) == (6000, 13_100)


def test_failed_heartbeats_back_off_exponentially_until_one_succeeds(heartbeats: Heartbeats) -> None:
    waits = []
    for _ in range(5):
        heartbeats.sent(3000)
        heartbeats.failed(3000)
        waits.append(heartbeats.due_ms - 3000)
    assert waits == [100, 200, 400, 800, 1000]
    heartbeats.succeeded(3000)
    heartbeats.failed(4000)
    assert heartbeats.due_ms == 4100


def test_session_expires_without_responses_and_poll_timeout_expires_without_polls(heartbeats: Heartbeats) -> None:
    assert not heartbeats.is_session_over(9999)
    assert heartbeats.is_session_over(10_000)
    assert not heartbeats.is_poll_overdue(59_999)
    assert heartbeats.is_poll_overdue(60_000)
