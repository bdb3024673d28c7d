"""Journal assertions of a test, and their error messages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from sluice import SyncBroker
from sluice.embedded.assertions.journal_assertions import last_events
from sluice.errors import ArgumentError
from tests.support.local_broker import send_metadata

# 2 MB over a quota of 100 kB/s with ten seconds of it at once: a throttle of about 10 s, which no test waits for.
_BYTES = bytes(1_000_000)


@pytest.fixture(scope="module")
def broker() -> Iterator[SyncBroker]:
    """Start one broker, to which `shop` has sent too much and `cook` nothing."""
    with SyncBroker() as broker:
        broker.quota(client_id="shop", produce="1M")
        for _ in range(12):
            broker.client("shop").send("orders", _BYTES, partition=0)
        send_metadata(broker.bootstrap, "cook")
        broker.wait_for(lambda: broker.journal.requests(client_id="cook"))
        yield broker


def test_passing_assertion_returns_the_events(broker: SyncBroker) -> None:
    throttles = broker.assert_throttled("shop", at_least_ms=100)
    assert sum(each.throttle_time_ms for each in throttles) >= 100
    assert broker.assert_throttled("shop", quota="Produce") == throttles
    broker.assert_not_throttled("shop", quota="Fetch")
    broker.assert_not_throttled("shop", after=broker.journal.requests(client_id="shop")[-1].seq - 1)
    broker.assert_not_throttled("cook")
    produced = broker.assert_requests("Produce", client_id="shop", exactly=12)
    assert {request.api for request in produced} == {"Produce"}
    broker.assert_requests("Metadata", client_id="cook")
    broker.assert_requests(("Produce", "Fetch"), client_id="cook", exactly=0)
    broker.assert_requests("Produce", at_most=12, at_least=1, where=lambda request: request.request_bytes > 1_000_000)
    broker.assert_requests("Fetch", at_most=0)


@dataclass(frozen=True)
class Wrong:
    """A failing assertion, and lines of its message in order."""

    does: Callable[[SyncBroker], object]
    lines: tuple[str, ...]


WRONG = {
    "throttled for too short a time": Wrong(
        lambda broker: broker.assert_throttled("shop", at_least_ms=1_000_000),
        (
            "expected: client shop throttled for 1000000 ms or more",
            "observed: throttled for ",
            "its requests: ",
            "matching events:",
            " broker 1 #",
            " shop throttled for ",
            " ms by its Produce quota, for Produce",
        ),
    ),
    "throttled by another quota": Wrong(
        lambda broker: broker.assert_throttled("shop", quota="Fetch"),
        (
            "expected: client shop throttled for 1 ms or more by its Fetch quota",
            "observed: not throttled",
            "the last events of client shop:",
            "Produce v",
        ),
    ),
    "throttled, of a client with another name": Wrong(
        lambda broker: broker.assert_throttled("shpo"),
        ("expected: client shpo", "no events of client shpo; clients in the journal: ", "shop", "cook"),
    ),
    "not throttled, and it was": Wrong(
        lambda broker: broker.assert_not_throttled("shop"),
        ("expected: client shop not throttled", "observed: throttled for ", "matching events:", "shop throttled for "),
    ),
    "not throttled, of a client that never came": Wrong(
        lambda broker: broker.assert_not_throttled("absent"),
        ("expected: client absent not throttled", "no events of client absent; clients in the journal: "),
    ),
    "too few requests": Wrong(
        lambda broker: broker.assert_requests("Metadata", client_id="cook", exactly=2),
        (
            "expected: 2 Metadata requests of client cook",
            "observed: 1",
            "its requests: 1 Metadata",
            "matching events:",
            "cook Metadata v9",
        ),
    ),
    "too many requests": Wrong(
        lambda broker: broker.assert_requests("Metadata", client_id="cook", at_most=0),
        ("expected: 0 Metadata requests of client cook", "observed: 1"),
    ),
    "requests for which it is false": Wrong(
        lambda broker: broker.assert_requests("Metadata", broker=1, client_id="cook", where=lambda request: False),
        (
            "expected: 1 or more Metadata requests of client cook to broker 1 for which `where` is true",
            "observed: 0; `where` is false for 1 more",
            "the last events of client cook:",
        ),
    ),
    "requests between two numbers": Wrong(
        lambda broker: broker.assert_requests(("Heartbeat", "JoinGroup"), at_least=2, at_most=3),
        ("expected: 2 to 3 Heartbeat or JoinGroup requests", "observed: 0", "the last events:", "  ... ", "earlier"),
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_failing_assertion_reports_the_observations(broker: SyncBroker, wrong: Wrong) -> None:
    with pytest.raises(AssertionError) as raised:
        wrong.does(broker)
    rest = str(raised.value)
    for words in wrong.lines:
        before, found, rest = rest.partition(words)
        assert found, f"{words!r} is not in:\n{before}"


MISUSED: dict[str, tuple[Callable[[SyncBroker], object], str]] = {
    "an unknown quota": (
        lambda broker: broker.assert_throttled("shop", quota="produce"),
        r"quota: expected one of Produce, Fetch, Request, ControllerMutation, .*got produce. Did you mean Produce",
    ),
    "an unknown API": (
        lambda broker: broker.assert_requests("Prodce"),
        r"api: expected one of Produce, .*, got Prodce. Did you mean Produce",
    ),
    "a number with bounds": (
        lambda broker: broker.assert_requests("Produce", exactly=1, at_most=2),
        "exactly excludes at_least and at_most",
    ),
}


@pytest.mark.parametrize(("does", "lines"), MISUSED.values(), ids=MISUSED)
def test_invalid_assertion_is_reported(broker: SyncBroker, does: Callable[[SyncBroker], object], lines: str) -> None:
    with pytest.raises(ArgumentError, match=lines):
        does(broker)


def test_absence_is_not_asserted_after_lost_events() -> None:
    with SyncBroker(config={"sluice.journal.events": 4}) as broker:
        for _ in range(3):
            send_metadata(broker.bootstrap, "shop")
        broker.wait_for(lambda: broker.journal.last_seq >= 9)
        with pytest.raises(AssertionError, match=r"\n\d events are no longer kept; increase sluice\.journal\.events"):
            broker.assert_not_throttled("shop")
        with pytest.raises(AssertionError, match="no longer kept"):
            broker.assert_requests("Produce", exactly=0)
        broker.assert_requests("Metadata", at_least=1)
        broker.assert_requests("Produce", exactly=0, after=broker.journal.last_seq - 1)


def test_missing_client_is_reported() -> None:
    with (
        SyncBroker() as broker,
        pytest.raises(AssertionError, match="no events of client shop; no client has sent a request"),
    ):
        broker.assert_throttled("shop")


def test_last_events_of_a_stopped_broker_are_reported() -> None:
    with SyncBroker() as broker:
        send_metadata(broker.bootstrap, "shop")
    assert last_events(broker).startswith(f"broker {broker.bootstrap}: ")
    assert "shop Metadata v9" in last_events(broker)
    with SyncBroker(config={"sluice.journal.events": 0}) as silent:
        assert last_events(silent).startswith("there is no journal")
