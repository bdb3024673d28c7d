"""`sluice pipeline` without Spark: its jobs, and errors detected before a session starts."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from sluice.cli.pipeline import CONF


def test_spark_properties_are_split_at_the_first_equals_sign() -> None:
    command = CONF(click.Command("job", callback=lambda conf: click.echo(json.dumps(conf))))
    assert CliRunner().invoke(command, ["--conf", "a=1", "--conf", "b=-Dx=y"]).output == '{"a": "1", "b": "-Dx=y"}\n'


WRONG_USAGE = {
    "an unknown job": (["compress"], "unknown command; expected one of backoff, fleet, lint, plan, throttle"),
    "a time": (["throttle", "--window", "10"], "--window: expected a time such as 500ms, 10s, 2m or 1h, got 10"),
    "a topic without a checkpoint folder": (["throttle", "--to-topic", "t"], "--to-topic needs --output DIR"),
    "a journal without an output folder": (["backoff", "a.ndjson"], "INPUT needs --output DIR"),
    "a setting": (["backoff", "--setting", "retries=3"], "--setting: expected one of retry.backoff.ms, "),
    "a value": (["backoff", "--setting", "retry.backoff.ms=1s"], "expected a whole number of milliseconds"),
    "a property without a value": (["throttle", "--conf", "a"], "--conf: expected KEY=VALUE"),
}


@pytest.mark.parametrize(("args", "line"), WRONG_USAGE.values(), ids=WRONG_USAGE)
def test_wrong_usage_is_one_line(args: list[str], line: str) -> None:
    result = CliRunner().invoke(cli, ["pipeline", *args])
    assert result.exit_code == 2
    assert line in result.output


def test_missing_journal_is_reported_before_spark_starts(tmp_path: Path) -> None:
    words = ["pipeline", "backoff", str(tmp_path / "a.ndjson"), "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.output) == (1, f"Error: {tmp_path}/a.ndjson: no such file\n")
    (tmp_path / "a.ndjson").touch()
    (tmp_path / "verdicts").mkdir()
    assert "already has verdicts" in CliRunner().invoke(cli, words).output


def test_missing_log_is_reported_before_spark_starts(tmp_path: Path) -> None:
    words = ["pipeline", "plan", str(tmp_path / "a.log"), "--output", str(tmp_path / "plan"), "--master", "no://master"]
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.output) == (1, f"Error: {tmp_path}/a.log: no such file or folder\n")
