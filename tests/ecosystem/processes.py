"""Processes of the tools under test, and what they wrote to topics."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support import skips
from tools.clients.built import BUILT, missing

TIMEOUT_S = 240  # for a step on a busy machine


def build_folder(name: str) -> Path:
    """Return the folder of a build, or skip the test if it is missing."""
    if (reason := missing(name)) is not None:
        pytest.skip(skips.build(name, reason))
    return BUILT / name


def find_java(version: int) -> str:
    """Return a Java of at least this version, or skip the test."""
    for found in filter(None, (shutil.which("java"), *map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java"))))):
        printed = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
        if int(re.findall(r'version "(\d+)', printed)[0]) >= version:
            return found
    pytest.skip(skips.program(f"Java {version}", f"install a JDK of version {version} or later"))


def java(class_path: str, *arguments: str, version: int = 17) -> list[str]:
    """Return a command that runs a class."""
    # Flink and Spark reflect into these packages.
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("util", "lang", "time")]
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *opened]
    return [find_java(version), *options, *(["-cp", class_path] if class_path else []), *arguments]


class Running:
    """A process whose output goes to a file."""

    def __init__(self, command: list[str], log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        self._command = command[0]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | env,
                cwd=log.parent,
            )

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds while the process runs."""
        deadline = monotonic() + TIMEOUT_S
        while not condition():
            assert self.process.poll() is None, f"{self._command} ended: {self.tail()}"
            assert monotonic() < deadline, f"waited {TIMEOUT_S} s for {what}: {self.tail()}"
            sleep(0.1)

    def wait(self) -> None:
        """Wait until the process ends without an error."""
        code = self.process.wait(TIMEOUT_S)
        assert code == 0, f"exit code {code}: {self.tail()}"

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


@contextmanager
def running(command: list[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a process, and kill it at the end."""
    started = Running(command, log, env or {})
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def properties(path: Path, **values: object) -> Path:
    """Write a file of properties; `_` in a name stands for a dot."""
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in values.items()))
    return path


def write(bootstrap: str, topic: str, values: list[str]) -> None:
    """Write records with an idempotent producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value.encode(), key=value.encode())
    assert producer.flush(TIMEOUT_S) == 0


def committed_values(bootstrap: str, topic: str) -> list[str]:
    """Return the values of all committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        known = consumer.list_topics(topic, TIMEOUT_S).topics[topic]
        consumer.assign([TopicPartition(topic, number, 0) for number in known.partitions])
        values, unread = [], set(known.partitions)
        while unread:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            if message.error():
                unread.discard(message.partition())
            else:
                values.append((message.value() or b"").decode(errors="replace"))
        return values
    finally:
        consumer.close()
