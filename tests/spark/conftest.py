"""One Spark and one cluster for all these tests, which run in one process (mark `spark`), since Spark starts in 10 s.

The tests are skipped without PySpark, Java or the connector's jars; the reason is the message for users.
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from sluice import SyncBroker
from sluice.errors import SluiceError
from sluice.spark.session import open_session
from tests.support import skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.streams import Folder

# The modules import it.
_THERE = find_spec("pyspark") is not None
collect_ignore_glob = [] if _THERE else ["test_*.py"]

_SETTINGS = {
    # Halves the time of the start and of the first job of each kind: the jobs here are short.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    # Interpreted: generating and compiling the code of such short jobs takes longer than they do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.stopTimeout": "20s",
}

_TIMEOUT_S = 300


def pytest_report_header() -> list[str]:
    return [] if _THERE else ["tests/spark: skipped: PySpark is not installed; run tools/campaign run spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # A query that is stopped by force breaks Spark's gateway for the next one.
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
            if not item.get_closest_marker("spark_long"):
                item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A Spark session that retries tasks three times, as a cluster does; `local[2]` would not retry."""
    folder = str(tmp_path_factory.mktemp("spark"))
    try:
        session = open_session("tests", master="local[2,4]", settings=_SETTINGS | {"spark.sql.warehouse.dir": folder})
    except SluiceError as error:
        pytest.skip(skips.program("Spark", str(error)))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_query_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stop a test's queries at its end."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        for query in session.streams.active:
            query.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[SyncBroker]:
    """Two brokers, so that leaders can move, with short quota windows, so that throttle times are short."""
    config = {"sluice.election.delay.ms": 100, "quota.window.num": 3}
    with SyncBroker(2, config=config) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, broker: SyncBroker) -> str:
    """A new topic with two partitions, replicated on both brokers."""
    name = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.name)[:120] + f"-{crc32(request.node.nodeid.encode()):x}"
    broker.cluster.create_topic(name, 2, replication_factor=2)
    return name


@pytest.fixture
def sink(spark: "SparkSession", tmp_path: Path) -> "Folder":
    """The sink of a stream of numbers."""
    from tests.spark.streams import Folder

    return Folder(spark, tmp_path)
