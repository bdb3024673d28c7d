"""Settings: each one from the requests that show it, with how sure it is."""

from collections.abc import Callable

import pytest

from sluice.journal_events import ProducedBatch, Value
from sluice.lint.run import lint
from tests.support.journals import BEGAN_MS, Journal, fetched

Make = Callable[[Journal], None]
BATCH = ProducedBatch(
    records=10, bytes=900, compression="lz4", first_timestamp_ms=BEGAN_MS, max_timestamp_ms=BEGAN_MS + 5
)
HEARTBEATS = "times between heartbeats: 9"
COMMITS = "times between commits: 9"
FETCH: dict[str, Value] = {
    "max_wait_ms": 500,
    "min_bytes": 1,
    "max_bytes": 52_428_800,
    "isolation_level": 1,
    "partition_max_bytes": 1_048_576,
}
JOIN: dict[str, Value] = {
    "member_id": "m",
    "session_timeout_ms": 45_000,
    "rebalance_timeout_ms": 300_000,
    "protocols": ["range", "cooperative-sticky"],
}


def produces(*acks: int, sequences: bool = True) -> Make:
    def make(journal: Journal) -> None:
        for at, each in enumerate(acks):
            sequence = at if sequences else -1
            sent: dict[str, Value] = {"acks": each, "timeout_ms": 30_000}
            journal.batch(10 * at, 10 * at + 5, sequence=sequence, batch=BATCH, sent=sent)

    return make


def overlaps(journal: Journal) -> None:
    for at in range(3):
        journal.batch(at, at + 10, sequence=at, batch=BATCH, sent={"acks": -1, "timeout_ms": 30_000})


def fetches(journal: Journal) -> None:
    for at in range(3):
        journal.request("Fetch", at, at + 0.5, sent=FETCH, partitions=[fetched("t", 0, at, 100, at + 1)])


def every(api: str, ms: int, **fields: object) -> Make:
    def make(journal: Journal) -> None:
        for number in range(10):
            journal.request(api, number * ms, number * ms + 1, **fields)  # type: ignore[arg-type]

    return make


def joins(journal: Journal) -> None:
    journal.request("JoinGroup", 0, 1, group_id="g", sent=JOIN, returned={"member_id": "m", "generation_id": 1})


def retries(journal: Journal) -> None:
    """Ten batches fail once each, and are sent again 100 ms later."""
    for number in range(10):
        at = number * 1000
        journal.batch(at, at + 1, sequence=number, errors=[7], batch=BATCH)
        journal.batch(at + 101, at + 102, sequence=number, batch=BATCH)


def transacts(journal: Journal) -> None:
    journal.request("InitProducerId", 0, 1, transactional_id="tx", sent={"transaction_timeout_ms": 60_000})


def is_throttled(journal: Journal) -> None:
    for number in range(2):
        journal.request("Metadata", number * 1000, number * 1000 + 1, throttle_ms=500)


@pytest.mark.parametrize(
    ("make", "name", "value", "certainty", "basis"),
    [
        (produces(-1, -1), "acks", "all", "stated", "Produce requests: 2"),
        (produces(1, 1, 1, 0), "acks", "1 (75%), 0 (25%)", "stated", "Produce requests: 4"),
        (produces(-1), "enable.idempotence", "true", "stated", "batches: 1"),
        (produces(-1, sequences=False), "enable.idempotence", "false", "stated", "batches: 1"),
        (produces(-1), "request.timeout.ms", "30000", "stated", "Produce requests: 1"),
        (produces(-1), "compression.type", "lz4", "stated", "bytes of batches: 900"),
        (produces(*[-1] * 5), "linger.ms", "5", "measured", "timestamps of batches: 5"),
        (produces(-1), "batch.size", "at least 900", "bound", "batches: 1"),
        (overlaps, "max.in.flight.requests.per.connection", "at least 3", "bound", "Produce requests: 3"),
        (transacts, "transaction.timeout.ms", "60000", "stated", "transactional ids: 1"),
        (fetches, "fetch.max.wait.ms", "500", "stated", "Fetch requests: 3"),
        (fetches, "fetch.min.bytes", "1", "stated", "Fetch requests: 3"),
        (fetches, "fetch.max.bytes", "52428800", "stated", "Fetch requests: 3"),
        (fetches, "max.partition.fetch.bytes", "1048576", "stated", "Fetch requests: 3"),
        (fetches, "isolation.level", "read_committed", "stated", "Fetch requests: 3"),
        (
            every("OffsetCommit", 50, group_id="g"),
            "auto.commit.interval.ms",
            "50",
            "measured",
            "times between commits: 9",
        ),
        (joins, "group.protocol", "classic", "stated", "joins: 1"),
        (joins, "partition.assignment.strategy", "range,cooperative-sticky", "stated", "joins: 1"),
        (joins, "session.timeout.ms", "45000", "stated", "joins: 1"),
        (joins, "max.poll.interval.ms", "300000", "stated", "joins: 1"),
        (
            every("Heartbeat", 30, group_id="g"),
            "heartbeat.interval.ms",
            "30",
            "measured",
            "times between heartbeats: 9",
        ),
        (every("Metadata", 40), "metadata.max.age.ms", "40", "measured", "times between Metadata requests: 8"),
        (retries, "retry.backoff.ms", "100", "measured", "first retries of Produce requests: 10"),
        (retries, "retry.backoff.max.ms", "at least 100", "bound", "retry 1 of Produce requests"),
        (is_throttled, "throttle times", "obeyed in 2 of 2", "measured", "responses with a throttle time: 2"),
    ],
    ids=lambda each: each if isinstance(each, str) and "." in each and " " not in each else "",
)
def test_settings_of_a_client(make: Make, name: str, value: str, certainty: str, basis: str, journal: Journal) -> None:
    make(journal)
    (client,) = lint(journal.events).clients
    (found,) = [each for each in client.settings if each.name == name]
    assert (found.value, str(found.certainty), found.basis) == (value, certainty, basis)


def test_the_first_reconnect_backoff_is_measured(journal: Journal) -> None:
    for number in range(10):
        journal.connection(number * 10_000, number * 10_000 + 5000, answers=True)
        journal.connection(number * 10_000 + 5050, number * 10_000 + 9000, answers=True, by_client=True)
    (client,) = [each for each in lint(journal.events).clients if each.key.client_id]
    (found,) = [each for each in client.settings if each.name == "reconnect.backoff.ms"]
    assert found.value.startswith("50")


def test_a_few_values_do_not_measure_a_setting(journal: Journal) -> None:
    for number in range(5):
        journal.request("Heartbeat", number * 30, number * 30 + 1, group_id="g")
    (client,) = lint(journal.events).clients
    assert "heartbeat.interval.ms" not in {each.name for each in client.settings}


def test_an_old_journal_without_fields_of_requests_shows_none(journal: Journal) -> None:
    for number, api in enumerate(("Produce", "Fetch", "JoinGroup", "Metadata")):
        journal.request(api, number, number + 0.5)
    (client,) = lint(journal.events).clients
    assert client.settings == []
