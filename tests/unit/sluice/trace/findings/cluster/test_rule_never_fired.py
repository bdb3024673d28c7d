"""A fault rule that never fired: the finding names the condition that failed on the nearest request."""

from typing import Any

import msgspec
import pytest

from sluice.journal_events import Fault, RuleChange, TopicPartition
from sluice.trace.findings.faults import rule_never_fired as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found

ORDERS = TopicPartition(topic="orders", partition=0)


def rule(journal: Journal, at_ms: float = 0, **fields: object) -> None:
    text = msgspec.json.encode({"action": "close", **fields}).decode()
    journal.of_cluster(RuleChange, at_ms, rule_id="r", change="added", rule=text)


def produce(journal: Journal, at_ms: float = 10) -> None:
    journal.connection(1, names=False)
    journal.request("Produce", at_ms, at_ms + 1, partitions=[ORDERS], version=9)


CASES = [
    ({"client_id": "shop2"}, "client_id is app, expected shop2"),
    ({"client_id": "shop*"}, "client_id is app, expected shop*"),
    ({"api": "Fetch"}, "No client sent Fetch. Client app sent Produce."),
    ({"api": ["Fetch", "Metadata"]}, "No client sent Fetch or Metadata. Client app sent Produce."),
    ({"api": "Produce", "version": "3-8"}, "version is 9 of Produce, expected 3-8"),
    ({"broker": 2}, "broker is 1, expected 2"),
    ({"topic": "order"}, "topic is orders, expected order"),
    ({"partition": [1, 2]}, "partition is 0, expected [1, 2]"),
    ({"group": "readers"}, "group is not in the request, expected readers"),
    ({"transactional_id": "tx"}, "transactional_id is not in the request, expected tx"),
    ({"software_name": "librdkafka"}, 'software_name is "", expected librdkafka'),
    ({"software_version": "2.*"}, 'software_version is "", expected 2.*'),
    ({"principal": "User:alice"}, "principal is User:ANONYMOUS, expected User:alice"),
    ({"listener": "SSL"}, "listener is PLAINTEXT, expected SSL"),
    ({"connection_older_than": "1s"}, "the connection's age is 9 ms, expected above 1s"),
    ({"connection_younger_than": "5ms"}, "the connection's age is 9 ms, expected below 5ms"),
    ({"client_id": "shop", "topic": "order"}, "client_id is app, expected shop; topic is orders, expected order"),
    ({"on": [3]}, "but on=[3] selected none of them"),
    ({"schedule": "2 pass, 1 fail"}, "but schedule=2 pass, 1 fail selected none of them"),
    ({"request": 2}, "but request=2 selected none of them"),
    ({"after": "1m"}, "before `after` (1m) had elapsed"),
    ({"until": "5ms"}, "No client sent a request while it was active."),
]


@pytest.mark.parametrize(("fields", "why"), CASES, ids=[str(fields) for fields, _ in CASES])
def test_the_condition_that_failed_is_named(fields: dict[str, Any], why: str) -> None:
    def make(journal: Journal) -> None:
        rule(journal, **fields)
        produce(journal)

    (one,) = found(find, make)
    assert (one.id, one.severity, one.title) == ("rule-never-fired", "error", "Fault rule r never fired")
    assert why in one.text


def too_late(journal: Journal) -> None:
    produce(journal, at_ms=1)
    rule(journal, at_ms=10)


def nearest(journal: Journal) -> None:
    rule(journal, client_id="shop", api="Produce")
    journal.request("Metadata", 2, 3)
    produce(journal)


def bytes_of_another_version(journal: Journal) -> None:
    journal.of_cluster(RuleChange, 0, rule_id="r", change="added", rule='{"action": "unknown"}')


def of_a_newer_version(journal: Journal) -> None:
    rule(journal, action={"kind": "error", "code": 6})
    journal.request("Produce", 2, 3, version=99)


def ended(journal: Journal) -> None:
    rule(journal)
    journal.of_cluster(RuleChange, 5, rule_id="r", change="ended", rule="")
    produce(journal)


REASONS = {
    "without requests": (lambda journal: rule(journal), "No client sent a request"),
    "added too late": (too_late, "1 request preceded it. Add the rule earlier"),
    "ended before the request": (ended, "No client sent a request while it was active"),
    "not served": (of_a_newer_version, "api is Produce, expected one that error can affect"),
    "the nearest has the API": (nearest, "Produce v9 of client app at +0.010 s: client_id"),
}


@pytest.mark.parametrize(("make", "why"), REASONS.values(), ids=REASONS)
def test_why_a_rule_without_conditions_on_requests_did_not_fire(make: Make, why: str) -> None:
    (one,) = found(find, make)
    assert why in one.text


def fired(journal: Journal) -> None:
    rule(journal)
    produce(journal)
    request: dict[str, Any] = {"api": "Produce", "version": 9, "correlation_id": 1}
    journal.of_client(Fault, 10, rule_id="r", action="close", **request)


SILENT = {
    "it fired": fired,
    "no rule": produce,
    "a rule that this version does not know": bytes_of_another_version,
    "a state begins at once": lambda journal: rule(journal, action="broker-down", broker=1),
}


@pytest.mark.parametrize("make", SILENT.values(), ids=SILENT)
def test_silent(make: Make) -> None:
    assert not found(find, make)


def test_an_api_that_no_client_sent_is_named_with_what_was_sent() -> None:
    def make(journal: Journal) -> None:
        rule(journal, api="Fetch", client_id="app")
        journal.request("ApiVersions", 2, 3)
        journal.request("Metadata", 4, 5)
        produce(journal)

    (one,) = found(find, make)
    assert one.text.endswith("No client sent Fetch. Client app sent Produce, ApiVersions, Metadata.")
