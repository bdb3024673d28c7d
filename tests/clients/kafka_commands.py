"""Kafka's own commands, run from its jars in one JVM.

The jars are in .venv/clients/kafka-tools, where `python -m tools.clients.build kafka-tools` puts them, or in
KAFKA_TOOLS_CLASSPATH (a class path). Without jars or Java, the tests are skipped.
"""

import os
import shutil
from functools import cache

import msgspec
import pytest

from tests.clients.external import Process
from tests.support import skips
from tools.clients.built import BUILT, SOURCES, missing

_TIMEOUT_S = 240  # of a command on a busy machine
_OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")  # for its list of shutdown hooks
_RUNNER = SOURCES["kafka-tools"].path / "Commands.java"


class Printed(msgspec.Struct, frozen=True):
    """Output and exit code of a command."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0

    @property
    def text(self) -> str:
        return self.stdout + self.stderr


def run_command(name: str, *arguments: str, stdin: str = "") -> Printed:
    """Run a class of `org.apache.kafka.tools`, or any class with its full name."""
    main = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
    (step,) = _jvm(_class_path()).run({"main": main, "arguments": arguments, "stdin": stdin})
    return msgspec.convert(step, Printed)


def kafka_command(name: str, *arguments: str) -> Printed:
    """Run a command that must succeed."""
    printed = run_command(name, *arguments)
    assert printed.code == 0, printed.text[-2000:]
    return printed


def commands_version() -> str:
    return _jvm(_class_path()).version


@cache
def _started(class_path: str) -> list[Process]:
    return []


def _jvm(class_path: str) -> Process:
    """Return the JVM, or a new one if the last was killed by a timeout."""
    started = _started(class_path)
    if not started or started[-1].process.poll() is not None:
        java = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *_OPENED, "-cp", class_path)
        started[:] = [Process((*java, str(_RUNNER)), BUILT.parent, _TIMEOUT_S)]
    return started[-1]


def _class_path() -> str:
    if shutil.which("java") is None:
        pytest.skip(skips.JAVA)
    given = os.environ.get("KAFKA_TOOLS_CLASSPATH")
    if given:
        return given
    if (reason := missing("kafka-tools")) is not None:
        pytest.skip(skips.build("kafka-tools", reason))
    return f"{BUILT / 'kafka-tools'}/lib/*"
