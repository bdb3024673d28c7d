"""`sluice pipeline` as a program for spark-submit, and without a broker."""

import subprocess
import sys

from click.testing import CliRunner

from sluice.cli import pipeline
from sluice.cli.main import cli


def test_the_file_of_the_command_is_a_program_for_spark_submit() -> None:
    assert pipeline.__file__ is not None
    done = subprocess.run([sys.executable, pipeline.__file__, "throttle", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: sluice pipeline throttle ")


def test_a_broker_that_is_not_there_is_told_before_spark_is_started() -> None:
    result = CliRunner().invoke(cli, ["pipeline", "throttle", "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: 127.0.0.1:1: could not connect: ")
