"""The `plan` job on Spark has the same results as in one process for any input, and runs by spark-submit."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyarrow import dataset

from sluice.cli import pipeline
from sluice.spark import splits
from sluice.spark.plan import local_engine, spark_engine
from sluice.spark.plan.analysis import Engine, Limits, Settings
from sluice.spark.plan.tables import DEMAND, NEEDS, QUARANTINE, REPLAYS
from sluice.spark.splits import splits_of
from tests.support.journal_lines import journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENTS = {f"client-{number}": (50 + 10 * number, 2_000 * number + 500) for number in range(7)}
BAD = b'{"kind":"party"}\n{"kind":"request"}\nno\n'
REQUEST_LOG = Path(__file__).parents[1] / "fixtures" / "kafka-4.4.0-request.log"
ASKED = Settings((20_000.0, 100_000.0), ("by-version", "kip-13"), ("closed", "open"), "client-id", Limits(100, 0.05))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A journal of three brokers with invalid lines, and a real request log."""
    file = tmp_path_factory.mktemp("journals") / "journal.ndjson"
    lines = journal(CLIENTS, seconds=20, brokers=3)
    middle = lines.index(b"\n", len(lines) // 2) + 1
    file.write_bytes(lines[:middle] + BAD + lines[middle:])
    return [str(file), str(REQUEST_LOG)]


def found_by(run: Engine, inputs: list[str], out: Path) -> tuple[Mapping[str, int], dict[str, list[str]]]:
    """Return the counts, and the unordered rows of each table."""
    progress_calls: list[tuple[str, int, int]] = []
    counts = run(splits_of(inputs), ASKED, out, lambda *progress: progress_calls.append(progress))
    tables = {
        name: sorted(map(repr, dataset.dataset(out / name, format="parquet").to_table().to_pylist()))
        for name in (REPLAYS, NEEDS, DEMAND, QUARANTINE)
    }
    return counts, tables


def test_both_engines_find_the_same(
    spark: "SparkSession", inputs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "_SPLIT_BYTES", 300_000)  # several splits, made by the driver
    counts, tables = found_by(local_engine.run, inputs, tmp_path / "local")
    assert found_by(spark_engine.engine_on(spark), inputs, tmp_path / "spark") == (counts, tables)
    assert counts["quarantined"] == len(tables[QUARANTINE]) == 3
    assert len(tables[NEEDS]) == 3 * len(CLIENTS) + 4
    assert len(tables[REPLAYS]) == len(tables[NEEDS]) * len(ASKED.candidates)


@pytest.mark.spark_long
@pytest.mark.timeout(300)
def test_spark_submit_runs_it_unchanged(inputs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    options += ["--conf", "spark.driver.bindAddress=127.0.0.1"]
    done = subprocess.run(
        [submit, *options, str(Path(pipeline.__file__)), "plan", *inputs, "--output", str(out), "--quota", "20k"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{out / 'report.html'}" in done.stdout
    assert "Seen briefly: " in done.stdout
