"""Tests of `sluice fleet`, which starts processes for several seeds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli

RUN = ("run", "leader-ping-pong", "--fleet", "kafka-4.4:20")
SWEEP = ("sweep", "--fleet", "kafka-4.4:20", "--outages", "1", "--loads", "0.3")


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
    assert found["name"] == "kafka-4.4:20"
    assert found["seeds"][0]["completed"] > 0
    (row,) = json.loads(_fleet(*SWEEP, "--seeds", "1", "--format", "json"))
    assert (row["outage_s"], row["load"], row["recovery_s"] >= 0) == (1.0, 0.3, True)


MAP = ("map", "--fleet", "java:30", "--capacity", "100", "--set", "request.timeout.ms=4000")


def test_map_has_the_fleet_in_a_picture_and_in_json(tmp_path: Path) -> None:
    text = _fleet(*MAP, "--simulate", "2", "--out", str(tmp_path))
    rows = text.splitlines()[1:21]
    assert sum("X" in row for row in rows) == 1
    assert {len(row) for row in rows} == {47}
    assert "Here it agrees in 2 of 2." in text
    assert "What the regions mean" in (tmp_path / "map.html").read_text()
    found = json.loads(_fleet(*MAP, "--simulate", "0", "--format", "json"))
    assert (len(found["regions"]), len(found["regions"][0]), found["point"]) == (40, 40, [0.3, 4000])
    assert found["regions"] == json.loads((tmp_path / "map.json").read_text())["regions"]


MAP_MISUSE = {
    "unknown setting": ("--x lod=0.1:0.9", "--x lod: unknown setting; expected one of load,"),
    "no outage": ("--outage 0", "--outage: expected a number from 1 to 600, got 0"),
    "negative sample": ("--simulate -1", "--simulate: expected an integer from 0 to 1000, got -1"),
}


@pytest.mark.parametrize(("arguments", "problem"), MAP_MISUSE.values(), ids=MAP_MISUSE)
def test_misuse_of_a_map_is_one_line(arguments: str, problem: str) -> None:
    done = CliRunner().invoke(cli, ["fleet", *MAP, *arguments.split()])
    assert done.exit_code == 2, done.output
    assert problem in done.stderr
    assert "Traceback" not in done.output


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


SHORT_OUTAGE = """
name = "short"
description = "One of three brokers is killed."
brokers = 3
duration = "15s"

[[steps]]
at = "5s"
kill = 1
during = "2s"
"""


def test_advice_has_a_row_for_each_loop_and_backoff_and_recommends_one_of_them(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT_OUTAGE)
    rows = _fleet("advise", str(tmp_path / "short.toml"), "--fleet", "kip-580-before:3", "--seeds", "1").splitlines()[
        1:
    ]
    backoffs = [
        "as given",
        *(f"retry.backoff.max.ms={ms}, reconnect.backoff.max.ms={ms}" for ms in (1000, 2000, 5000, 10000)),
    ]
    expected = [(loop, backoff) for loop in ("open", "closed") for backoff in backoffs]
    assert [(row.split()[0], row[8:68].strip()) for row in rows[:10]] == expected
    for loop, advice in zip(("open", "closed"), rows[10:], strict=True):
        recommended = advice.removeprefix(f"Recommended for a loop that is {loop}: ")
        assert recommended in backoffs, advice
