"""Rules about connections: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Sequence

import pytest

from sluice.journal_events import ProducedBatch
from sluice.protocol.errors import ErrorCode
from tests.support.journals import Journal, closed_connections, starts
from tests.support.rule_cases import RuleCase, rule_tests, texts

GROWING = (50, 100, 200, 400, 800, 1000, 1000, 1000)
CONSTANT = (50,) * 8


def named(client_id: str) -> Journal:
    made = Journal(client_id=client_id)
    made.request("Metadata", 0, 1)
    return made


def short_lived(count: int, requests: int, *, step_ms: float = 100) -> Journal:
    """Return a journal of connections with this many requests each, which the client closes."""
    made = Journal()
    for number in range(count):
        at_ms = number * step_ms
        made.connection(at_ms, at_ms + 50, by_client=True, answers=True)
        made.request("Metadata", at_ms + 2, at_ms + 3)
        for more in range(requests):
            made.batch(at_ms + 4 + more, at_ms + 4.5 + more)
    return made


def refused_versions(waits_ms: Sequence[float], *, healthy_from_ms: float | None = None) -> Journal:
    """Return a journal of connections that the broker closes instead of a response to ApiVersions."""
    made = Journal()
    if healthy_from_ms is not None:
        made.request("Metadata", healthy_from_ms, healthy_from_ms + 1, connection=1000)
    for at_ms in starts(waits_ms, lasting_ms=2):
        one = made.connection(at_ms, at_ms + 2, names=False)
        made.request("ApiVersions", at_ms + 0.5, ended_ms=at_ms + 2, connection=one)
    return made


def answered_versions(waits_ms: Sequence[float]) -> Journal:
    made = Journal()
    for at_ms in starts(waits_ms, lasting_ms=2):
        made.connection(at_ms, at_ms + 2, answers=True)
    return made


def idle(count: int, *, until_ms: float, used: bool = False) -> Journal:
    made = Journal()
    for number in range(count):
        made.connection(number, answers=True)
    for at_ms in range(1000, round(until_ms), 1000):
        for number in range(1, count + 1 if used else 2):
            made.batch(at_ms, at_ms + 1, connection=number)
    return made


def versioned(api: str, version: int) -> Journal:
    made = Journal()
    made.request(api, 0, 1, version=version)
    return made


def logins(count: int, *, errors: Sequence[int] = (ErrorCode.SASL_AUTHENTICATION_FAILED,)) -> Journal:
    made = Journal()
    for number in range(count):
        made.connection(number * 100, number * 100 + 10)
        made.request("SaslAuthenticate", number * 100 + 1, number * 100 + 2, errors=errors)
    return made


CASES = {
    "no-client-id": RuleCase(
        "1 requests with librdkafka's default client id",
        lambda: named("rdkafka"),
        lambda: named("shop"),
        lambda: closed_connections([50], client_id=""),
    ),
    "connection-per-message": RuleCase(
        "30 of 30 connections were closed by the client within 10 s",
        lambda: short_lived(30, 1),
        lambda: short_lived(30, 5),
        lambda: short_lived(29, 1),
    ),
    "reconnects-without-growing-waits": RuleCase(
        "waits about 50 ms each time before it connects again (8 waits)",
        lambda: refused_versions(CONSTANT),
        lambda: refused_versions(GROWING),
        lambda: answered_versions(CONSTANT),
    ),
    "idle-connections": RuleCase(
        "59 of 60 open connections from 10.0.0.1 to broker 1 had no request in the last 60 s",
        lambda: idle(60, until_ms=70_000),
        lambda: idle(60, until_ms=70_000, used=True),
        lambda: idle(60, until_ms=50_000),
    ),
    "ended-versions": RuleCase(
        "requests in versions below those of Kafka 4.0: Produce 2",
        lambda: versioned("Produce", 2),
        lambda: versioned("Produce", 3),
        lambda: versioned("ApiVersions", 0),
    ),
    "logins-refused": RuleCase(
        "5 logins failed within 0.4 s", lambda: logins(5), lambda: logins(5, errors=()), lambda: logins(4)
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "connections")


LIBRARY_DEFAULTS = [
    *("", "rdkafka", "sarama", "kgo", "kafkajs", "aiokafka-producer-2", "aiokafka-0.14.0", "producer-1"),
    *("adminclient-3", "kafka-python-producer-1", "kafka-python-3.0.12"),
]


@pytest.mark.parametrize("client_id", LIBRARY_DEFAULTS)
def test_defaults_of_libraries_are_no_client_ids(client_id: str) -> None:
    assert texts("no-client-id", named(client_id))


@pytest.mark.parametrize("client_id", ["rdkafka-shop", "producer", "my-producer-1", "consumer-g-1"])
def test_other_client_ids_are(client_id: str) -> None:
    assert texts("no-client-id", named(client_id)) == []


class TestReconnects:
    RULE = "reconnects-without-growing-waits"

    def test_of_connections_that_send_nothing_are_found_by_host(self) -> None:
        (found,) = texts(self.RULE, closed_connections(CONSTANT))
        assert found == "waits about 50 ms each time before it connects again (8 waits)"

    def test_of_hosts_are_told_apart(self, journal: Journal) -> None:
        other = journal.beside(client_id="app", host="10.0.0.2")
        for at_ms in starts(GROWING):
            journal.connection(at_ms, at_ms + 1)
            other.connection(at_ms + 25, at_ms + 26)
        assert texts(self.RULE, journal) == []

    def test_after_a_second_each_do_no_harm(self) -> None:
        assert texts(self.RULE, refused_versions((1000,) * 8, healthy_from_ms=-60_000)) == []

    def test_at_the_maximum_are_no_constant_ones_if_the_first_may_be_missing(self) -> None:
        assert texts(self.RULE, refused_versions((700,) * 8)) == []
        assert texts(self.RULE, refused_versions((700,) * 8, healthy_from_ms=-60_000))

    def test_without_a_wait_are_a_storm(self) -> None:
        (found,) = texts(self.RULE, answered_versions((0.1,) * 250))
        assert found == "200 within 0.42 s connections after lost ones"


def test_message_sets_are_named(journal: Journal) -> None:
    journal.batch(0, 1, version=2, batch=ProducedBatch(bytes=100))
    (found,) = texts("ended-versions", journal)
    assert found.endswith("1 batches have message format 0 or 1 (KIP-724)")


def test_a_fleet_that_loses_a_broker_is_no_storm(journal: Journal) -> None:
    for number in range(300):
        client = journal.beside(client_id="app", host=f"10.0.1.{number}")
        client.connection(number, 1000, answers=True)
        client.connection(1050 + number / 10, answers=True)
    assert texts("reconnects-without-growing-waits", journal) == []
