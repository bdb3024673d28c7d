"""The examples of user jobs, and the command, work as documented. Their code runs in the tests' Spark session."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from sluice import SyncBroker
from sluice.cli.main import cli
from tests.spark.journal_lines import request
from tests.spark.kafka_data import consume, produce
from tests.support.ports import refusing_address

EXAMPLES = Path(__file__).parents[2] / "examples"
# Program -> lines of its story, in this order.
STORIES = {
    "batch_read": (r"\|0 +\|100 ", r"\|2 +\|300 "),
    "steady_stream": (r"records in +\d+\.\d s\n.*records in +\d+\.\d s",),
    "through_a_restart": ("the broker stops", "the broker runs again", "1000 orders, 1000 different ones"),
    "word_count": (r"the job took \d+\.\d s", r"throttled by the Produce quota for [1-9]\d*\.\d s"),
}
STORY_LIMIT_S = 240  # 30 s on an idle machine


def example(name: str, function: str) -> Callable[..., object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))  # of own_broker.py
        found: Callable[..., object] = runpy.run_path(str(EXAMPLES / f"spark_{name}.py"))[function]
    return found


def test_stories_are_those_of_all_programs() -> None:
    assert {f"spark_{name}" for name in STORIES} == {path.stem for path in EXAMPLES.glob("spark_*.py")}


@pytest.mark.spark_long
@pytest.mark.parametrize("name", STORIES)
def test_program_tells_its_story(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"spark_{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STORY_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(".*".join(STORIES[name]), done.stdout, re.DOTALL), done.stdout


def test_address_that_no_broker_answers_is_reported() -> None:
    with refusing_address() as bootstrap:
        command = [sys.executable, str(EXAMPLES / "spark_batch_read.py"), bootstrap, "topic"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STORY_LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith(f"{bootstrap}: no Kafka broker answers: ")


def test_word_count_counts_on_and_tells_how_long_it_waited(spark: SparkSession, tmp_path: Path) -> None:
    with SyncBroker(config={"quota.window.num": 2}, admin_port=0) as broker:
        broker.cluster.create_topic("lines", 1)
        broker.cluster.create_topic("words", 1)
        count_words = example("word_count", "count_words")
        with broker.quota(client_id="word-count", produce=100):
            for line in ("to be or not to be", "that is to say"):
                produce(broker.bootstrap, "lines", [line])
                count_words(spark, broker.bootstrap, str(tmp_path))
        assert dict(consume(broker.bootstrap, "words", 1))[b"to"] == "3"
        waited = example("word_count", "waited_ms")(broker.admin)
        assert isinstance(waited, dict)
        assert waited["Produce"] > 0


def test_the_steady_stream_of_the_compose_file_is_one_client_that_writes(spark: SparkSession, tmp_path: Path) -> None:
    with SyncBroker(config={"sluice.journal.events": 4096}) as broker:
        broker.cluster.create_topic("load", 1)
        query = example("steady_stream", "start")(spark, broker.bootstrap, 20, str(tmp_path))
        assert isinstance(query, StreamingQuery)
        try:
            tries = 60
            while tries and not consume(broker.bootstrap, "load", 1):
                assert not query.awaitTermination(1), "the query stopped"
                tries -= 1
            assert tries, "the query writes nothing"
        finally:
            query.stop()
        assert {one.client_id for one in broker.journal.requests(api="Produce")} == {"spark-stream"}


def test_batch_read_tells_of_each_partition(spark: SparkSession, broker: SyncBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, ["a", "b", "c"], partition=1, timestamp_ms=1_700_000_000_000)
    rows = example("batch_read", "partitions")(spark, broker.bootstrap, topic)
    assert isinstance(rows, DataFrame)
    (row,) = rows.collect()
    assert (row.partition, row.records, row.first.timestamp(), row.last) == (1, 3, 1_700_000_000, row.first)


class _AfterAFailure(StreamingQueryListener):
    """Runs an action when a query has failed."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  (Spark's name)
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  (Spark's name)
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  (Spark's name)
        if event.exception is not None:
            self._do()


@pytest.mark.spark_long
def test_through_a_restart_copies_each_order_once_although_the_query_fails(spark: SparkSession, tmp_path: Path) -> None:
    impatient = {
        "kafka.request.timeout.ms": "1000",
        "kafka.default.api.timeout.ms": "1500",
        "kafkaConsumer.pollTimeoutMs": "1500",
    }
    with SyncBroker() as broker:
        broker.cluster.create_topic("orders", 1)
        produce(broker.bootstrap, "orders", map(str, range(1000)))
        listener = _AfterAFailure(broker.faults.add("black-hole", api="Fetch").remove)
        spark.streams.addListener(listener)
        tries = example("through_a_restart", "copy")(spark, broker.bootstrap, str(tmp_path), **impatient)
        spark.streams.removeListener(listener)
    assert isinstance(tries, int)
    assert tries > 1
    rows = spark.read.parquet(f"{tmp_path}/orders")
    assert sorted(int(row.value) for row in rows.collect()) == [*range(1000)]


class TestTheCommand:
    @pytest.fixture
    def journal(self, broker: SyncBroker, topic: str) -> list[str]:
        produce(broker.bootstrap, topic, [request(1), "{", request(30)])
        return ["pipeline", "throttle", "--bootstrap", broker.bootstrap.split(",")[0], "--topic", topic, "--once"]

    @pytest.mark.usefixtures("spark")
    def test_shows_windows_and_what_is_no_event(self, journal: list[str], broker: SyncBroker) -> None:
        with broker.quota(client_id="shop", produce=3000):
            result = CliRunner(env={"COLUMNS": "120"}).invoke(cli, journal)
        assert result.exit_code == 0, result.output
        heading, *rows, summary = result.stdout.splitlines()
        assert heading.split()[:4] == ["from", "broker", "client", "id"]
        assert [row.split() for row in rows] == [
            [time, "1", "shop", "Produce", "1", "0", "100", "3,000", "0", "5.0"] for time in ("12:00:00", "12:00:30")
        ]
        assert summary == "2 events, 1 quarantined, 0 late, final before 2023-11-15T12:00:20.000Z"
        assert "@1: not JSON" in result.stderr

    @pytest.mark.usefixtures("spark")
    def test_prints_windows_for_programs(self, journal: list[str]) -> None:
        result = CliRunner().invoke(cli, [*journal, "--json"])
        assert result.exit_code == 0, result.output
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(row["client_id"], row["api"], row["requests"]) for row in rows] == [("shop", "Produce", 1)] * 2
        assert "2 events, 1 quarantined" in result.stderr

    @pytest.mark.usefixtures("spark")
    def test_tells_what_spark_fails_with_in_one_line(self, journal: list[str], tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        result = CliRunner().invoke(cli, [*journal, "--output", str(tmp_path / "file")])
        assert result.exit_code == 1
        assert result.stderr == (
            f"Error: ParentNotDirectoryException: Parent path is not a directory: file:{tmp_path}/file\n"
        )

    @pytest.mark.usefixtures("spark")
    def test_ends_when_any_of_its_queries_fails(self, journal: list[str], tmp_path: Path) -> None:
        result = CliRunner().invoke(cli, [*journal, "--output", str(tmp_path), "--to-topic", "no topic"])
        assert result.exit_code == 1
        assert result.stderr == "Error: InvalidTopicException: no topic\n"
