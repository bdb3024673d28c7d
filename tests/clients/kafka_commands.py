"""Kafka's own commands, run from its jars.

The jars are in .venv/clients/kafka-tools, where `python -m tests.clients.build` puts them, or in KAFKA_TOOLS_CLASSPATH
(a class path). Without jars or Java, the tests are skipped.
"""

import os
import shutil
import subprocess
from typing import NamedTuple

import pytest

from tests.clients.built import BUILT, missing

_TIMEOUT_S = 100


class Printed(NamedTuple):
    """The output of a command that succeeded."""

    stdout: str
    stderr: str


def kafka_command(name: str, *arguments: str) -> Printed:
    """Run a class of `org.apache.kafka.tools`."""
    if shutil.which("java") is None:
        pytest.skip("no Java found; install a JDK of version 17 or later")
    java = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", _class_path(), f"org.apache.kafka.tools.{name}")
    done = subprocess.run([*java, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Printed(done.stdout, done.stderr)


def _class_path() -> str:
    given = os.environ.get("KAFKA_TOOLS_CLASSPATH")
    if given:
        return given
    if (reason := missing("kafka-tools")) is not None:
        pytest.skip(f"kafka-tools: {reason}")
    return f"{BUILT / 'kafka-tools'}/lib/*"
