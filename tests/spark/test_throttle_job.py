"""The `throttle` job: equal to the broker's counters, exactly once, and every dropped line is reported."""

import json
from pathlib import Path
from urllib.request import urlopen

from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from sluice import SyncBroker
from sluice.journal_events import Request, Throttle
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.spark.events import REASON, parsed
from sluice.spark.progress import Progress, Tally
from sluice.spark.streaming import Journal
from sluice.spark.throttle.byte_quotas import byte_quota
from sluice.spark.throttle.job import Windows
from sluice.spark.throttle.run import Queries, Sinks, start
from tests.spark.journal_lines import request, throttle
from tests.spark.kafka_data import PATIENCE_S, consume, produce

PER_SECOND = 200_000
WINDOWS = Windows("10 seconds", "5 seconds")
NO_QUOTAS: dict[str, dict[QuotaEntity, float]] = {"Produce": {}, "Fetch": {}}


def run(spark: SparkSession, journal: Journal, sinks: Sinks, settings: Windows = WINDOWS) -> tuple[Progress, Progress]:
    """The progress of the first window query and of the quarantine query."""
    queries = start(spark, journal, settings, NO_QUOTAS, sinks, None)
    return ended(queries)


def ended(queries: Queries) -> tuple[Progress, Progress]:
    for query in queries.all:
        assert query.awaitTermination(PATIENCE_S), "the query does not stop"
    return Tally(queries.windows[0]).poll(), Tally(queries.quarantine).poll()


def test_bytes_and_throttle_times_are_those_of_the_brokers_own_counters(spark: SparkSession) -> None:
    config: dict[str, str | float] = {"sluice.journal.topic": "true", "quota.window.num": 60}
    with (
        SyncBroker(config=config, admin_port=0) as broker,
        broker.quota(client_id="shop", produce=PER_SECOND),
        broker.quota(client_id="till", fetch=PER_SECOND),
    ):
        broker.cluster.create_topic("orders", 1)
        _work(broker)
        broker.wait_for(lambda: _is_written(broker))
        rows = _last_rows(spark, broker.bootstrap)
        for client_id, api in (("shop", "Produce"), ("till", "Fetch")):
            found = [row for row in rows if (row.client_id, row.api) == (client_id, api)]
            expected = _counted_bytes(broker, client_id, api), _counted_throttle_ms(broker, client_id, api)
            assert expected[1] > 0
            assert (sum(row.quota_bytes for row in found), sum(row.throttle_ms_sum for row in found)) == expected


def _work(broker: SyncBroker) -> None:
    """Write, then read, until requests are throttled. The first sixty seconds' worth of the quota is free."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "shop"})
    while len(broker.journal.events(kind="throttle", client_id="shop")) < 3:
        producer.produce("orders", bytes(PER_SECOND // 2))
        assert producer.flush(PATIENCE_S) == 0
    settings = {"bootstrap.servers": broker.bootstrap, "client.id": "till", "group.id": "none"}
    consumer = Consumer({**settings, "fetch.message.max.bytes": PER_SECOND // 2})
    consumer.assign([TopicPartition("orders", 0, 0)])
    while len(broker.journal.events(kind="throttle", client_id="till")) < 2:
        consumer.poll(1)
    # Responses are in order, so no response to a Fetch is lost when the connection is closed.
    consumer.pause(consumer.assignment())
    for _ in range(2):  # the client may send one more Fetch while it pauses
        consumer.get_watermark_offsets(consumer.assignment()[0], PATIENCE_S)
    consumer.close()


def _is_written(broker: SyncBroker) -> bool:
    """Return whether the topic has the whole journal; reading it adds only connection events."""
    records = consume(broker.bootstrap, "__sluice_journal", 1)
    last = max(event.seq for event in broker.journal.requests(client_id=("shop", "till")))
    return bool(json.loads(records[-1][1])["seq"] >= last)


def _last_rows(spark: SparkSession, bootstrap: str) -> list[Row]:
    rows: dict[tuple[object, ...], Row] = {}

    def note(batch: DataFrame) -> None:
        for row in batch.collect():
            rows[row.start, row.client_id, row.api] = row

    run(spark, Journal(bootstrap), Sinks(show_windows=note, show_quarantine=lambda _: None))
    return [*rows.values()]


def _counted_bytes(broker: SyncBroker, client_id: str, kind: str) -> int:
    with urlopen(f"{broker.admin}/api/v1/quotas/explain?client_id={client_id}") as response:
        (seen,) = json.load(response)["brokers"]
    (quota,) = (each for each in seen["quotas"] if each["kind"] == kind)
    return sum(int(sample["value"]) for sample in quota["samples"])


def _counted_throttle_ms(broker: SyncBroker, client_id: str, resource: str) -> int:
    with urlopen(f"{broker.admin}/metrics") as response:
        families = {family.name: family for family in text_string_to_metric_families(response.read().decode())}
    labels = {"resource": resource, "user": "", "client_id": client_id}
    (sample,) = (one for one in families["sluice_throttle_seconds"].samples if one.labels == labels)
    return round(sample.value * 1000)


def test_windows_are_written_once_and_what_is_no_event_is_kept(
    spark: SparkSession, broker: SyncBroker, topic: str, tmp_path: Path
) -> None:
    broker.cluster.create_topic(f"{topic}-out", 1)
    journal, sinks = Journal(broker.bootstrap, topic), Sinks(str(tmp_path), f"{topic}-out")
    first = [request(1), request(2, error_codes=[6, 3]), throttle(2, 30), throttle(3, 70), "{", request(21)]
    produce(broker.bootstrap, topic, first)
    windows, quarantine = run(spark, journal, sinks)
    assert (windows.of("events"), windows.of("lost"), quarantine.of("quarantined")) == (5, 0, 1)
    # In-between events are in their window, events of written windows are late, and the last window is still open.
    produce(
        broker.bootstrap,
        topic,
        [request(22), request(4), "[]", '{"kind":"gap","seq":9,"at_ns":1,"broker":-1,"lost":7}'],
    )
    produce(broker.bootstrap, topic, [request(60)])
    windows, quarantine = run(spark, journal, sinks)
    assert (windows.of("events"), windows.of("lost"), quarantine.of("quarantined")) == (4, 7, 1)
    assert windows.late == 1
    rows = spark.read.parquet(f"{tmp_path}/windows").orderBy("start").collect()
    written = [
        (row.start.second, row.user, row.requests, row.errors, row.error_codes, row.quota_bytes, row.rate)
        for row in rows
    ]
    assert written == [(0, "alice", 2, 1, [3, 6], 2000, 200.0), (20, "alice", 2, 0, [], 2000, 200.0)]
    waits = [(row.throttled, row.throttle_ms_sum, row.throttle_ms_avg, row.throttle_ms_max) for row in rows]
    assert waits == [(2, 100, 50.0, 70), (0, 0, None, None)]
    assert [(row.latency_ms_p50, row.latency_ms_p99, row.latency_ms_max) for row in rows] == [(5.0, 5.0, 5.0)] * 2
    sent = [(key, json.loads(value)["requests"]) for key, value in consume(broker.bootstrap, f"{topic}-out", 1)]
    assert sent == [(b"shop", 2), (b"shop", 2)]
    kept = spark.read.parquet(f"{tmp_path}/quarantine").orderBy("offset").collect()
    assert [(row.offset, bytes(row.value), row.reason) for row in kept] == [
        (4, b"{", "not JSON"),
        (8, b"[]", "not a journal event: expected a JSON object"),
    ]


def test_a_line_that_is_no_event_has_the_reason(spark: SparkSession) -> None:
    version = "event of another journal version"
    expected: list[tuple[str | None, str | None]] = [
        (request(1), None),
        (request(1, answered_ns=None), None),
        ('{"kind":"broker-state","seq":1,"at_ns":1,"broker":1,"state":"running"}', None),
        (None, "no value"),
        (" ", "no value"),
        ("{'kind': 'request'}", "not JSON"),
        ("17", "not a journal event: expected a JSON object"),
        ("{}", "not a journal event: no kind"),
        ('{"kind":"meteor"}', "not a journal event: unknown kind meteor"),
        (request(1).replace('"api":"Produce",', ""), f"request {version}: missing api"),
        (request(1).replace('"version":9', '"version":"9"'), f"{version}: a field has another type"),
    ]
    lines = spark.createDataFrame([(line,) for line, _ in expected], "value string")
    rows = parsed(lines, f.col("value"), (Request, Throttle)).select("value", REASON).collect()
    assert [tuple(row) for row in rows] == expected


def test_the_quota_of_a_client_is_the_one_that_holds_it_in_the_broker(spark: SparkSession) -> None:
    names = (None, DEFAULT, "alice")
    entities = [
        QuotaEntity(user, client_id)
        for user in names
        for client_id in (None, DEFAULT, "shop")
        if (user, client_id) != (None, None)
    ]
    clients = [(user, client_id) for user in ("alice", "bob") for client_id in ("shop", "till", "*", "=shop")]
    # Each case adds one quota, the most specific last, so that each decides once.
    cases = [{entity: float(100 + at) for at, entity in enumerate(entities[:count])} for count in range(1, 9)]
    rows = spark.createDataFrame(clients, "user string, client_id string")
    bounds = [
        byte_quota({"Produce": case}, f.lit("Produce"), f.col("user"), f.col("client_id")).alias(f"case {at}")
        for at, case in enumerate(cases)
    ]
    found = [list(row) for row in rows.select(*bounds).collect()]
    assert found == [[_limit(case, *client) for case in cases] for client in clients]


def _limit(quotas: dict[QuotaEntity, float], user: str, client_id: str) -> float | None:
    table = QuotaTable("shares_default")
    for entity, bound in quotas.items():
        table.set(entity, bound)
    return table.limit(table.bucket(user, client_id))
