"""Tests of `sluice fleet`, which starts processes for several seeds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli

RUN = ("run", "leader-ping-pong", "--fleet", "kafka-4.4:50")
SWEEP = ("sweep", "--fleet", "kafka-4.4:50", "--outages", "1", "--loads", "0.3")


def _fleet(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["fleet", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fleet(*RUN, "--seeds", "2", "--out", str(tmp_path / "two"))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    _fleet(*RUN, "--seeds", "2", "--out", str(tmp_path / "one"))
    assert (tmp_path / "one/result.json").read_bytes() == (tmp_path / "two/result.json").read_bytes()
    assert "one" in _fleet("compare", str(tmp_path / "one"), str(tmp_path / "two"))


def test_json_has_the_figures_of_each_seed_and_cell() -> None:
    (found,) = json.loads(_fleet(*RUN, "--seeds", "1", "--format", "json"))
    assert found["name"] == "kafka-4.4:50"
    assert found["seeds"][0]["completed"] > 0
    (row,) = json.loads(_fleet(*SWEEP, "--seeds", "1", "--format", "json"))
    assert (row["outage_s"], row["load"], row["recovery_s"] >= 0) == (1.0, 0.3, True)


def test_quota_that_throttles_no_client_is_an_error() -> None:
    done = CliRunner().invoke(cli, ["fleet", "run", "quota-squeeze", "--fleet", "kafka-4.4:5", "--seeds", "1"])
    assert done.exit_code == 1, done.output
    assert "quota-squeeze: quota: no client was throttled" in done.stderr
    assert "Traceback" not in done.output


def test_models_that_differ_from_their_clients_are_named(tmp_path: Path) -> None:
    sweep = ("sweep", "--fleet", "librdkafka:20", "--outages", "1", "--loads", "0.3", "--seeds", "1")
    for arguments in (sweep, (*sweep, "--out", str(tmp_path))):
        done = CliRunner().invoke(cli, ["fleet", *arguments], catch_exceptions=False)
        assert "Model librdkafka: connections and Metadata requests come at other times" in done.stderr
    assert "Model librdkafka: connections" in (tmp_path / "sweep.html").read_text()
