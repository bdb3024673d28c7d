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


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("run", "nothing", "--fleet", "kafka-4.4:1"), 2, "nothing: unknown scenario"),
        (("run", "leader-ping-pong"), 2, "--fleet"),
        (("run", "leader-ping-pong", "--fleet", "x:1"), 2, "--fleet x:1: unknown model"),
        (("run", "coordinator-loss", "--fleet", "kafka-4.4:1"), 2, "expected the topic of the fleet, orders"),
        (
            ("run", "leader-ping-pong", "--fleet", "kafka-4.4:1", "--capacity", "0"),
            2,
            "--capacity: expected a number above 0, got 0",
        ),
        (
            ("run", "leader-ping-pong", "--fleet", "kafka-4.4:1", "--backlog", "70000"),
            2,
            "--backlog: expected an integer from 0 to 65535, got 70000",
        ),
        (
            ("run", "quota-squeeze", "--fleet", "kafka-4.4:5", "--seeds", "1"),
            1,
            "quota-squeeze: quota: no client was throttled",
        ),
        (("run", "leader-ping-pong", "--fleet", "kafka-4.4:1", "--seeds", "0"), 2, "--seeds"),
        ((*RUN, "--out", "/dev/null/x"), 1, "--out /dev/null/x: "),
        (("compare", "a"), 2, "expected at least two results, got 1"),
        (("compare", "a", "b"), 2, "a: No such file or directory"),
        ((*SWEEP, "--loads", "3"), 2, "--loads: expected shares of the capacity above 0, up to 2, got 3"),
        ((*SWEEP, "--outages", "x"), 2, "--outages: expected numbers above 0, separated by commas, got x"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage_is_reported_in_one_line(arguments: tuple[str, ...], code: int, problem: str) -> None:
    done = CliRunner().invoke(cli, ["fleet", *arguments])
    assert (done.exit_code, problem in done.stderr) == (code, True), done.output
    assert "Traceback" not in done.output


def test_models_that_differ_from_their_clients_are_named(tmp_path: Path) -> None:
    sweep = ("sweep", "--fleet", "librdkafka:20", "--outages", "1", "--loads", "0.3", "--seeds", "1")
    for arguments in (sweep, (*sweep, "--out", str(tmp_path))):
        done = CliRunner().invoke(cli, ["fleet", *arguments], catch_exceptions=False)
        assert "Model librdkafka: connections and Metadata requests come at other times" in done.stderr
    assert "Model librdkafka: connections" in (tmp_path / "sweep.html").read_text()
