"""Lines of Kafka's request log: a real log, each format, and invalid lines."""

from pathlib import Path

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.spark.charges.charges import USED, Client, Gathered
from sluice.spark.charges.from_journal import NOT_CHARGED
from sluice.spark.charges.from_request_log import FROM_FOLLOWERS, take_line
from sluice.spark.charges.request_sizes import fetch_response_size, produce_request_size
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
TIMES = ";totalTime:{total},requestQueueTime:0.1,localTime:0.2,remoteTime:0.0,throttleTime:{throttle}"
REST = ",responseQueueTime:100.0,sendTime:200.0,securityProtocol:PLAINTEXT,principal:User:bob,listener:PLAINTEXT"
PEER = " from connection 10.0.0.1:9092-10.0.0.9:5000-3"
PRODUCED = "{responses=[],throttle_time_ms=0}"


def text(api: str, version: int, request: str, response: str, throttle: float = 0.0, total: float = 1.0) -> str:
    header = f"RequestHeader(apiKey={api}, apiVersion={version}, clientId=shop, correlationId=7)"
    times = TIMES.format(total=total, throttle=throttle)
    return f"{AT}Completed request:{header} -- {request},response:{response}{PEER}{times}{REST} (kafka.request.logger)"


def fetched(record_set: str) -> str:
    header = "partition_header={partition=0,error_code=0,high_watermark=9,aborted_transactions=null}"
    return f"{{throttle_time_ms=0,responses=[{{topic=t,partition_responses=[{{{header},record_set={record_set}}}]}}]}}"


@pytest.mark.parametrize(
    ("line", "charge"),
    [
        pytest.param(
            text("PRODUCE", 7, "{acks=1,timeout=30000,partitionSizes=[t-0=500,t-1=70]}", PRODUCED),
            (produce_request_size(7, "shop", None, [("t", [500, 70])]), AT_MS - 300, 0),
            id="a Produce request at TRACE",
        ),
        pytest.param(
            text("FETCH", 10, "{replica_id=-1}", fetched("FileRecords(size=900, file=f, start=0, end=900)")),
            (fetch_response_size(10, [("t", [(900, None)])]), AT_MS - 300, 0),
            id="a fetch with the size of the records",
        ),
        pytest.param(
            text("FETCH", 10, "{replica_id=-1}", fetched("FileRecords(file= f, start=100, end=900)")),
            (fetch_response_size(10, [("t", [(800, None)])]), AT_MS - 300, 0),
            id="a fetch with file positions of the records",
        ),
        pytest.param(
            text("FETCH", 3, "{replica_id=-1}", fetched("null"), throttle=1000.0, total=1000.5),
            (fetch_response_size(3, [("t", [(None, None)])]), AT_MS - 1300, 1000),
            id="a delayed fetch, charged before the delay",
        ),
        pytest.param(
            text("FETCH", 10, "{replica_id=-1}", "{throttle_time_ms=700,responses=[]}"),
            (0, AT_MS - 300, 700),
            id="a muted fetch, charged 0",
        ),
    ],
)
def test_text_up_to_kafka_2_7(line: str, charge: tuple[int, int, int]) -> None:
    client, row = taken(line)
    value, at_ms, throttle_ms = charge
    assert client == Client(client.kind, "10.0.0.1:9092", "", "shop")
    assert row == (at_ms * MS, value, row[2], throttle_ms)


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        pytest.param(text("METADATA", 5, "{}", "{}"), NOT_CHARGED, id="another request, as text"),
        pytest.param(text("FETCH", 10, "{replica_id=2}", "{}"), FROM_FOLLOWERS, id="a follower's fetch, as text"),
        pytest.param(
            text("FETCH", 10, "(type=FetchRequest, replicaId=2, maxWait=1)", "{}"),
            FROM_FOLLOWERS,
            id="a follower's fetch, as text since 2.6",
        ),
    ],
)
def test_other_requests_are_counted(line: str, counted: str) -> None:
    gathered = Gathered("client-id", 1000)
    assert take_line(line, gathered) is None
    assert gathered.counts == {counted: 1}


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


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(('"replicaId":-1', '"replicaId":2'), id="up to version 14"),
        pytest.param(('"replicaId":-1', '"replicaState":{"replicaId":2,"replicaEpoch":1}'), id="since version 15"),
    ],
)
def test_a_fetch_of_a_follower(change: tuple[str, str]) -> None:
    gathered = Gathered("client-id", 1000)
    assert take_line(as_json(REAL_FETCH, change), gathered) is None
    assert gathered.counts == {FROM_FOLLOWERS: 1}


@pytest.mark.parametrize(
    ("stamp", "ms"),
    [
        pytest.param("[2026-11-21 12:00:00,500]", 0, id="Kafka's default layout"),
        pytest.param("2026-11-21T12:00:00.500Z", 0, id="ISO 8601, in UTC"),
        pytest.param("2026-11-21T13:30:00.500123+01:30", 0, id="with a zone"),
        pytest.param("[2026-11-21 12:00:00,501]", 1, id="a millisecond later"),
    ],
)
def test_times(stamp: str, ms: int) -> None:
    line = text("PRODUCE", 7, "{partitionSizes=[t-0=1]}", PRODUCED).replace(AT, f"{stamp} ")
    assert taken(line)[1][0] == (AT_MS - 300 + ms) * MS


INVALID_LINES = {
    "a stack trace": ("java.io.IOException: Broken pipe", "neither a journal event nor"),
    "no time": ("Completed request:{}", "without a timestamp"),
    "an invalid date": ("[2026-02-30 12:00:00,500] Completed request:{}", "invalid timestamp"),
    "JSON without a required field": (f"{AT}Completed request:{{}}", "missing required field"),
    "truncated JSON": (f"{AT}Completed request:{{", "malformed completed request"),
    "truncated text": (f"{AT}Completed request:RequestHeader(", "malformed completed request"),
    "a negative version": (as_json(REAL_FETCH, ('"requestApiVersion":11', '"requestApiVersion":-1')), ">= 0"),
    "a negative size": (as_json(REAL_FETCH, ('"recordsSizeInBytes":150000', '"recordsSizeInBytes":-1')), ">= 0"),
    "a time out of range": (as_json(REAL_FETCH, ('"sendTimeMs":', '"sendTimeMs":1e300,"x":')), "<= 1"),
    "an invalid number": (
        text("PRODUCE", 7, "{partitionSizes=[t-0=1]}", PRODUCED).replace("sendTime:200.0", "sendTime:2.0.0"),
        "could not convert string to float",
    ),
    "JSON nested too deeply": (f"{AT}Completed request:" + "[" * 100_000 + "}", "malformed completed request"),
    "a Produce request at DEBUG": (
        text("PRODUCE", 7, "{acks=1,timeout=30000,numPartitions=1}", PRODUCED),
        "only at TRACE",
    ),
    "converted records": (text("FETCH", 3, "{replica_id=-1}", fetched("[(record=...)]")), "without record sizes"),
}


@pytest.mark.parametrize(("line", "reason"), INVALID_LINES.values(), ids=INVALID_LINES)
def test_an_invalid_line_has_a_reason(line: str, reason: str) -> None:
    gathered = Gathered("client-id", 1000)
    found = take_line(line, gathered)
    assert found is not None
    assert reason in found
    assert gathered.counts == {}
