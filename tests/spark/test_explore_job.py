"""`sluice explore --spark` finds what a local run finds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from tests.unit.sluice.cli.explore.test_command import ORDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS = 24  # more than a generation


def test_spark_finds_what_a_local_run_finds(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "explored_on_spark.py"
    file.write_text(ORDERS, encoding="utf-8")

    def found(*options: str) -> object:
        args = ["explore", f"{file}::test_orders", "--json", "--runs", str(_RUNS), "--trace", str(tmp_path / "traces")]
        result = CliRunner().invoke(cli, [*args, *options])
        assert result.exit_code == 1, result.output
        return json.loads(result.stdout)

    assert found("--spark") == found("--jobs", "2") == found()
