"""The script that the planner writes is a valid shell script."""

import os
import subprocess
from pathlib import Path

from sluice.spark.plan import local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.job import plan
from sluice.spark.plan.kafka_configs_script import SCRIPT
from sluice.spark.plan.recommendation import Policy
from tests.support.journal_lines import journal

CLIENTS = {
    "steady": (100, 5_000),
    "bursty": (100, 90_000),
    "a|`b`\n# c <b>": (500, 2_000),
}  # ms between requests, bytes
ASKED = Settings((20_000.0,), ("by-version",), ("closed",), "client-id", Limits(100, 0.05))


def test_the_script_runs_kafka_configs(tmp_path: Path) -> None:
    log, out = tmp_path / "journal.ndjson", tmp_path / "out"
    log.write_bytes(journal(CLIENTS, seconds=120))
    plan([str(log)], out, ASKED, Policy(1, always_default=True), local_engine.run, lambda *_: None)
    tools = {**os.environ, "KAFKA_CONFIGS": "echo"}
    done = subprocess.run(["sh", out / SCRIPT, "b:1"], env=tools, capture_output=True, text=True, check=True)
    assert done.stdout.count("--add-config producer_byte_rate=") == 2
