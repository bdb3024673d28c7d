"""`sluice run`: scenarios on new and on running brokers, and wrong usage."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from tests.support.broker_process import CLEAN_ENVIRONMENT, BrokerProcess, running_broker

SHORT = """
name = "short"
description = "A broker stops for a moment."
brokers = 2
seed = 7
steps = [
    { at = "20ms", stop = 2, during = "50ms" },
    { at = "30ms", say = "now" },
]
"""
STEPS = ["broker 2 stops", "now", "broker 2 starts"]
PATIENCE_S = 20


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    return str(path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("run") / "log", "--brokers", "2") as broker:
        yield broker


def run(*words: str, ports: tuple[str, ...] = ("--port", "0", "--admin-port", "0")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sluice", "run", *words, *ports],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=CLEAN_ENVIRONMENT,
    )


def steps_in(stderr: str) -> list[str]:
    return [line.partition("] ")[2] for line in stderr.splitlines() if line.startswith("[")]


def test_run_starts_brokers_prints_their_addresses_and_ends_with_the_scenario(file: str) -> None:
    process = run(file, "--override", "sluice.journal.events=0")
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    ready, summary = stdout.splitlines()
    assert process.returncode == 0
    assert len(json.loads(ready.removeprefix("ready "))["brokers"]) == 2
    assert summary.startswith("scenario short ended after ")
    assert summary.endswith(": 3 steps")
    assert stderr.startswith("scenario short, seed 7: A broker stops for a moment.\n[")
    assert steps_in(stderr) == STEPS


def test_ignored_admin_address_is_reported(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLEAN_ENVIRONMENT, "SLUICE_ADMIN", "http://127.0.0.1:1")
    _, stderr = run(file).communicate(timeout=PATIENCE_S)
    first, *_ = stderr.splitlines()
    assert first == (
        "SLUICE_ADMIN is ignored; starting a new cluster. To use that one, add --against http://127.0.0.1:1"
    )
    assert steps_in(stderr) == STEPS


def test_json_output_is_complete(file: str) -> None:
    process = run(file, "--format", "json", "--seed", "8")
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    _, _, report = stdout.partition("\n")
    output = json.loads(report)
    assert [step["what"] for step in output["steps"]] == STEPS
    assert (output["scenario"], output["state"]) == ("short", "ended")
    assert "seed 8" in stderr


def test_signal_stops_it_cleanly() -> None:
    process = run("rolling-restart")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "scenario rolling-restart stopped after " in stdout


def test_scenario_runs_on_running_brokers(file: str, running: BrokerProcess) -> None:
    done = CliRunner().invoke(cli, ["run", file, "--against", running.admin])
    assert done.exit_code == 0
    assert steps_in(done.stderr) == STEPS
    assert done.stdout.startswith("scenario short ended after ")


def test_failed_step_is_a_failure(running: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"name": "s", "brokers": 2, "topics": [{"name": "a.b"}, {"name": "a_b"}]}')
    done = CliRunner().invoke(cli, ["run", str(file), "--against", running.admin])
    assert done.exit_code == 1
    assert "topic a_b is created: failed: a_b: Topic 'a_b' collides with existing topic: a.b" in done.stderr
    assert done.stdout.endswith(": 2 steps, 1 of which failed\n")
