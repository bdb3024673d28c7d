"""`sluice pipeline` as a spark-submit program, and without a broker."""

import subprocess
import sys

from click.testing import CliRunner

from sluice.cli import pipeline
from sluice.cli.main import cli


def test_command_file_is_a_spark_submit_program() -> None:
    assert pipeline.__file__ is not None
    done = subprocess.run([sys.executable, pipeline.__file__, "throttle", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: sluice pipeline throttle ")


def test_unreachable_broker_is_reported_before_spark_starts() -> None:
    result = CliRunner().invoke(cli, ["pipeline", "throttle", "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: 127.0.0.1:1: could not connect: ")
