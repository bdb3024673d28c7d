"""The `backoff` job: its rows equal the judge's results on the same journal, each once, for any order of input."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice import SyncBroker
from sluice.cli.journal.export import writer_of
from sluice.journal_events import AnyEvent
from sluice.spark.backoff.job import JobSettings
from sluice.spark.backoff.rows import DEFAULTS, VerdictRow, host_of, rows_of_journal
from sluice.spark.backoff.run import QUARANTINE, VERDICTS, Sinks, judge_files, start
from sluice.spark.backoff.spans import KINDS, HostEvent, Limits
from sluice.spark.progress import Progress, Tally
from sluice.spark.streaming import Journal
from tests.spark.kafka_data import PATIENCE_S, produce
from tests.support.fleet import HostJournal, fleet

HOW = JobSettings(DEFAULTS, Limits(), "10 seconds")
HOSTS = 4  # one of each policy
_MINUTE_MS = 60_000.0


def lines(events: Sequence[AnyEvent]) -> list[str]:
    return [msgspec.json.encode(event).decode() for event in events]


def local(events: Sequence[AnyEvent]) -> list[VerdictRow]:
    """Return the judge's result for each host, without Spark."""
    hosts: dict[str, list[HostEvent]] = {}
    for event in events:
        if isinstance(event, KINDS):
            hosts.setdefault(host_of(event.peer), []).append(event)
    rows = [row for host, of_host in hosts.items() for row in rows_of_journal(host, of_host, DEFAULTS, Limits())]
    return sorted(rows, key=lambda row: (row.host, row.began_us))


def written(spark: SparkSession, output: Path) -> list[VerdictRow]:
    rows = spark.read.parquet(f"{output}/{VERDICTS}").withColumns(
        {"began_us": f.unix_micros("began"), "ended_us": f.unix_micros("ended")}
    )
    found = [VerdictRow(*(row[name] for name in VerdictRow._fields)) for row in rows.collect()]
    return sorted(found, key=lambda row: (row.host, row.began_us))


def later(at_ms: float) -> list[AnyEvent]:
    """Return an event of another host, which advances the watermark."""
    journal = HostJournal("10.9.9.9", "clock", 1)
    journal.opened(at_ms)
    return journal.events


def _nowhere(rows: DataFrame) -> None:
    raise AssertionError(f"{rows.count()} rows are shown, not written")


def run(spark: SparkSession, journal: Journal, output: Path) -> tuple[Progress, Progress]:
    queries = start(spark, journal, HOW, Sinks(str(output), _nowhere, _nowhere), None)
    for query in queries:
        assert query.awaitTermination(PATIENCE_S), "the query does not stop"
    verdicts, quarantine = (Tally(query).poll() for query in queries)
    return verdicts, quarantine


def test_an_exported_journal_has_the_rows_of_the_audit(spark: SparkSession, tmp_path: Path) -> None:
    events = fleet(HOSTS)
    half = len(events) // 2
    text, parquet = str(tmp_path / "first.ndjson"), str(tmp_path / "second.parquet")
    writer_of(text)(text, [*lines(events[:half])])
    writer_of(parquet)(parquet, lines(events[half:]))
    with Path(text).open("a") as file:
        file.write('{"kind":"meteor"}\n')
    judge_files(spark, [text, parquet], HOW, str(tmp_path / "out"))
    assert written(spark, tmp_path / "out") == local(events)
    (bad,) = spark.read.parquet(str(tmp_path / "out" / QUARANTINE)).collect()
    assert (bad.reason, bad.value) == ("not a journal event: unknown kind meteor", '{"kind":"meteor"}')


def test_a_stream_has_the_same_rows_each_once_through_a_restart(
    spark: SparkSession, broker: SyncBroker, topic: str, tmp_path: Path
) -> None:
    """The topic has two partitions, so events come out of order; a span is cut by the restart."""
    events = fleet(HOSTS)
    half = next(at for at, event in enumerate(events) if event.at_ns > events[0].at_ns + 1_500_000_000)
    journal = Journal(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, [*lines(events[:half]), "{"])
    verdicts, quarantine = run(spark, journal, tmp_path)
    assert (verdicts.of("events"), verdicts.of("verdicts"), quarantine.of("quarantined")) == (half, 0, 1)
    # Older than the watermark: late, and dropped.
    old = HostJournal("10.0.0.1", "shop-0", 900)
    old.request(old.opened(-_MINUTE_MS), -_MINUTE_MS, "Metadata", errors=(5,))
    produce(broker.bootstrap, topic, lines([*old.events, *events[half:], *later(10 * _MINUTE_MS)]))
    verdicts, _ = run(spark, journal, tmp_path)
    assert verdicts.late == len(old.events)
    assert written(spark, tmp_path) == local(events)
    assert verdicts.of("verdicts") == len(local(events))
