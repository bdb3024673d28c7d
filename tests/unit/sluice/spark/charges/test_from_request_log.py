"""Lines of Kafka's request log: a real log, other releases, and invalid lines."""

from pathlib import Path

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.spark.charges.charges import USED, Client, Gathered
from sluice.spark.charges.from_journal import NOT_CHARGED
from sluice.spark.charges.from_request_log import FROM_FOLLOWERS, take_line
from tests.support.packed_charges import Row, rows_of

# Written by Apache Kafka 4.4.0 at DEBUG in its default layout. Clients: aiokafka and librdkafka, with a quota of 10,000
# bytes/s for `big` and 15,000 for `reader`. Most lines of other requests are omitted.
KAFKA_4_4 = Path(__file__).parents[4] / "fixtures" / "kafka-4.4.0-request.log"
ODD_ID = "shop ü, correlationId=7) -- x"

MS = 1_000_000


def taken(line: str) -> tuple[Client, Row]:
    gathered = Gathered("client-id", 1000)
    assert take_line(line, gathered) is None
    ((client, (row,)),) = rows_of(gathered).items()
    return client, row


@pytest.fixture(scope="module")
def real() -> dict[Client, list[Row]]:
    gathered = Gathered("client-id", 1000)
    with KAFKA_4_4.open(encoding="utf-8") as lines:
        assert [reason for line in lines if (reason := take_line(line, gathered))] == []
    assert gathered.counts == {USED: 16, NOT_CHARGED: 5}
    return rows_of(gathered)


def test_a_real_log_is_read_completely(real: dict[Client, list[Row]]) -> None:
    assert {(client.kind, client.broker, client.client_id) for client in real} == {
        ("Produce", "127.0.0.1:29392", ODD_ID),
        ("Produce", "127.0.0.1:29392", "big"),
        ("Produce", "127.0.0.1:29392", "fast"),
        ("Fetch", "127.0.0.1:29392", "reader"),
    }


def test_charges_of_a_real_log_reproduce_the_throttle_times_of_kafka(real: dict[Client, list[Row]]) -> None:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=DEFAULT), 10_000.0)
    rows = real[Client("Produce", "127.0.0.1:29392", "", "big")]
    again = [manager.record("", "big", float(value), at_ns // MS) for at_ns, value, _, _ in rows]
    told = [throttle_ms for *_, throttle_ms in rows]
    assert told == [0, 16, 5007, 10010]
    assert again == pytest.approx(told, abs=3)  # the log's timestamps are the times of writing, in whole milliseconds


def test_a_muted_fetch_is_charged_0(real: dict[Client, list[Row]]) -> None:
    rows = real[Client("Fetch", "127.0.0.1:29392", "", "reader")]
    assert [(value, throttle_ms) for _, value, _, throttle_ms in rows] == [
        (0, 5),
        (150_072, 0),
        (0, 6637),
        (0, 5998),
        (100_216, 0),
    ]


AT = "[2026-11-21 12:00:00,500] DEBUG "
AT_MS = 1_795_262_400_500


def as_json(line: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in line
        line = line.replace(before, after, 1)
    return line


REAL_FETCH = next(line for line in KAFKA_4_4.read_text("utf-8").splitlines() if '"recordsSizeInBytes":150000' in line)


def test_a_fetch_of_kafka_2_8_has_other_field_names() -> None:
    older = as_json(REAL_FETCH, ('"partitions":[{"partitionIndex"', '"partitionResponses":[{"partition"'))
    older = as_json(older, ("recordsSizeInBytes", "recordSetSizeInBytes"))
    assert taken(older) == taken(REAL_FETCH)


FOLLOWERS = {
    "up to version 14": ('"replicaId":-1', '"replicaId":2'),
    "since version 15": ('"replicaId":-1', '"replicaState":{"replicaId":2,"replicaEpoch":1}'),
}


@pytest.mark.parametrize("change", FOLLOWERS.values(), ids=FOLLOWERS)
def test_a_fetch_of_a_follower(change: tuple[str, str]) -> None:
    gathered = Gathered("client-id", 1000)
    assert take_line(as_json(REAL_FETCH, change), gathered) is None
    assert gathered.counts == {FROM_FOLLOWERS: 1}


TIMES = {
    "Kafka's default layout": ("[2026-11-21 12:00:00,500]", 0),
    "ISO 8601, in UTC": ("2026-11-21T12:00:00.500Z", 0),
    "with a zone": ("2026-11-21T13:30:00.500123+01:30", 0),
    "a millisecond later": ("[2026-11-21 12:00:00,501]", 1),
}


@pytest.mark.parametrize(("stamp", "ms"), TIMES.values(), ids=TIMES)
def test_times(stamp: str, ms: int) -> None:
    body = as_json(REAL_FETCH[REAL_FETCH.index("Completed") :], ('"sendTimeMs":', '"sendTimeMs":200.0,"x":'))
    body = as_json(body, ('"responseQueueTimeMs":', '"responseQueueTimeMs":100.0,"y":'))
    assert taken(f"{stamp} {body}")[1][0] == (AT_MS - 300 + ms) * MS


INVALID_LINES = {
    "a stack trace": ("java.io.IOException: Broken pipe", "neither a journal event nor"),
    "no time": ("Completed request:{}", "without a timestamp"),
    "an invalid date": ("[2026-02-30 12:00:00,500] Completed request:{}", "invalid timestamp"),
    "JSON without a required field": (f"{AT}Completed request:{{}}", "missing required field"),
    "truncated JSON": (f"{AT}Completed request:{{", "malformed completed request"),
    "the text of Kafka before 2.8": (f"{AT}Completed request:RequestHeader(", "text form of Kafka before 2.8"),
    "a negative version": (as_json(REAL_FETCH, ('"requestApiVersion":11', '"requestApiVersion":-1')), ">= 0"),
    "a negative size": (as_json(REAL_FETCH, ('"recordsSizeInBytes":150000', '"recordsSizeInBytes":-1')), ">= 0"),
    "a time out of range": (as_json(REAL_FETCH, ('"sendTimeMs":', '"sendTimeMs":1e300,"x":')), "<= 1"),
    "JSON nested too deeply": (
        f"{AT}Completed request:" + '{"request":' + "[" * 100_000 + "}",
        "malformed completed request",
    ),
}


@pytest.mark.parametrize(("line", "reason"), INVALID_LINES.values(), ids=INVALID_LINES)
def test_an_invalid_line_has_a_reason(line: str, reason: str) -> None:
    gathered = Gathered("client-id", 1000)
    found = take_line(line, gathered)
    assert found is not None
    assert reason in found
    assert gathered.counts == {}
