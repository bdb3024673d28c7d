"""Requests without a response."""

import msgspec
import pytest

from sluice.journal_events import BrokerState, RuleChange
from sluice.trace.findings.responses import unanswered as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found, kinds


def lost(api: str, waited_ms: float, *, by_client: bool = True, rule_id: str = "", **sent: int) -> Make:
    def make(journal: Journal) -> None:
        journal.connection(0, waited_ms + 1, by_client=by_client, reason="" if by_client else "frame too large")
        journal.request(api, 1, ended_ms=waited_ms + 1, rule_id=rule_id, sent=sent)

    return make


def recovered(journal: Journal) -> None:
    lost("Produce", 100)(journal)
    journal.connection(200)
    journal.request("Produce", 201, 202)


def open_at_end(journal: Journal) -> None:
    journal.connection(0)
    journal.request("Produce", 1, ended_ms=50)


ERROR = [("unanswered-request", "error")]
WARNING = [("unanswered-request", "warning")]
CASES = {
    "a timeout of the client": (lost("Produce", 5_010), ERROR, "probably request.timeout.ms=5000"),
    "closed by the client early": (lost("Produce", 120), ERROR, "120 ms after the request."),
    "closed by the broker": (lost("Produce", 10, by_client=False), ERROR, "frame too large"),
    "by a fault rule": (lost("Produce", 10, rule_id="r"), ERROR, "Fault rule r hit it."),
    "the client succeeded later": (recovered, WARNING, ""),
    "a connection that is still open": (open_at_end, ERROR, "still open at the end"),
    "a Fetch above its wait": (lost("Fetch", 2_000, max_wait_ms=500), ERROR, ""),
    "a Fetch within its wait": (lost("Fetch", 400, max_wait_ms=500), [], ""),
    "a Fetch within its wait, of a broker that stopped": (lost("Fetch", 9, by_client=False, max_wait_ms=500), [], ""),
    "a Fetch hit by a rule": (lost("Fetch", 400, rule_id="r", max_wait_ms=500), ERROR, ""),
    "a rebalance that just began": (lost("JoinGroup", 3_000), [], ""),
    "a rebalance that hangs": (lost("JoinGroup", 6_000), ERROR, ""),
    "answered": (lambda journal: journal.request("Produce", 1, 2), [], ""),
}


@pytest.mark.parametrize(("make", "expected", "text"), CASES.values(), ids=CASES)
def test_requests_without_response(make: Make, expected: list[tuple[str, str]], text: str) -> None:
    findings = found(find, make)
    assert kinds(findings) == expected
    assert all(text in one.text for one in findings)


def delayed(journal: Journal) -> None:
    text = msgspec.json.encode({"action": {"kind": "delay", "ms": 5000}, "api": "Produce"}).decode()
    journal.of_cluster(RuleChange, 0, rule_id="r", change="added", rule=text)
    lost("Produce", 2_250, rule_id="r")(journal)


def test_the_end_of_a_connection_after_the_failure_is_no_evidence() -> None:
    (one,) = found(find, delayed, failed_ms=2_045)
    assert one.title == "1 Produce request of client app had no response when the test failed, by fault rule r"
    assert one.text == (
        "The test failed at +2.045 s, 2.044 s after the request. A delivery timeout of at most 2.044 s fits "
        "(delivery.timeout.ms, message.timeout.ms in librdkafka).\n"
        "Fault rule r hit it: delay ms=5000: api=Produce."
    )


BROKERS_DOWN = {
    "two are down": ([(2, "stopped"), (3, "isolated")], "in-sync replicas: broker 2 is stopped, broker 3 is isolated."),
    "started again": ([(2, "stopped"), (2, "running")], "in-sync replicas."),
    "none is down": ([], "in-sync replicas."),
}


@pytest.mark.parametrize(("states", "text"), BROKERS_DOWN.values(), ids=BROKERS_DOWN)
def test_brokers_that_are_down_are_named(states: list[tuple[int, str]], text: str) -> None:
    def make(journal: Journal) -> None:
        for number, (broker, state) in enumerate(states):
            journal.of_cluster(BrokerState, number / 10, broker=broker, state=state)
        lost("Produce", 120, acks=-1)(journal)

    (one,) = found(find, make)
    assert one.text.endswith(text)
