"""The script that the planner writes is a valid shell script."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice.pipeline.plan import local_engine
from sluice.pipeline.plan.analysis import Limits, Settings
from sluice.pipeline.plan.job import plan
from sluice.pipeline.plan.kafka_configs_script import SCRIPT
from tests.support.journal_lines import journal

HOSTILE = "a|`b`\n# c <b>"
CLIENTS = {"steady": (100, 5_000), "bursty": (100, 90_000), HOSTILE: (500, 2_000)}  # ms between requests, bytes
ASKED = Settings((20_000.0, 200_000.0, 2e6), ("by-version",), ("closed",), "client-id", Limits(100, 0.05))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "journal.ndjson"
    file.write_bytes(journal(CLIENTS, seconds=30) + b"what is this\n")
    return file


@pytest.fixture(scope="module")
def out(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output folder of a plan."""
    folder = tmp_path_factory.mktemp("plans") / "out"
    run(log, folder)
    return folder


def run(log: Path, out: Path, settings: Settings = ASKED, overrides: int = 1) -> list[tuple[str, int, int]]:
    steps: list[tuple[str, int, int]] = []
    plan([str(log)], out, settings, overrides, local_engine.run, lambda *done: steps.append(done))
    return steps


def test_the_script_runs_kafka_configs(out: Path) -> None:
    tools = {**os.environ, "KAFKA_CONFIGS": "echo"}
    done = subprocess.run(["sh", out / SCRIPT, "b:1"], env=tools, capture_output=True, text=True, check=True)
    assert done.stdout.count("--add-config producer_byte_rate=") == 2


# -- the command -------------------------------------------------------------------------------------------------------
