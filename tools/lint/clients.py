"""The nine clients of the lint matrix, and how each does a job."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from tools.clients.built import BUILT, JAVA, ROOT, missing
from tools.lint.drivers import aiokafka_driver
from tools.lint.job import Job

GRACE_S = 60.0  # more than any job takes beyond its own times on a busy machine
LINE_BYTES = 1 << 20


class Client(Protocol):
    """A client library."""

    @property
    def name(self) -> str:
        """Its name, as in docs/clients.md."""

    @property
    def virtual(self) -> bool:
        """Whether it runs in virtual time."""

    def missing(self) -> str | None:
        """Return why it cannot run here; None if it can."""

    async def prepare(self, jobs: int) -> None:
        """Start processes for so many jobs, which takes seconds on a busy machine."""

    async def do(self, bootstrap: str, job: Job) -> None:
        """Do a job; an error raises."""

    async def end_run(self, bootstrap: str) -> None:
        """Close the clients that jobs have left open."""

    async def close(self) -> None:
        """End its processes."""


class InLoop:
    """aiokafka, in the harness' event loop."""

    name = "aiokafka"
    virtual = True

    def missing(self) -> str | None:
        return None

    async def prepare(self, jobs: int) -> None:
        pass

    async def do(self, bootstrap: str, job: Job) -> None:
        await aiokafka_driver.run(bootstrap, job)

    async def end_run(self, bootstrap: str) -> None:
        await aiokafka_driver.close_left_open()

    async def close(self) -> None:
        pass


class Workers:
    """A client with processes, each of which does one job at a time."""

    virtual = False

    def __init__(self, name: str, command: Sequence[str], folder: Path, build: str = "") -> None:
        self.name = name
        self._command = command
        self._folder = folder
        self._build = build
        self._idle: list[asyncio.subprocess.Process] = []
        self._left_open: dict[str, list[asyncio.subprocess.Process]] = {}  # by the run's bootstrap address

    def missing(self) -> str | None:
        return missing(self._build) if self._build else None

    async def prepare(self, jobs: int) -> None:
        while len(self._idle) < jobs:
            self._idle.append(await self._start())

    async def do(self, bootstrap: str, job: Job) -> None:
        worker = self._idle.pop() if self._idle else await self._start()
        reusable = False
        try:
            assert worker.stdin is not None
            call = {"bootstrap": bootstrap, "verb": "work", "given": _given(job, self.name)}
            worker.stdin.write(json.dumps(call).encode() + b"\n")
            line = await asyncio.wait_for(_line(worker), GRACE_S)
            reusable = "end" in line and job.leave
            if "failure" in line:
                raise RuntimeError(str(line["failure"]))
        finally:
            if reusable:
                self._idle.append(worker)
            elif job.role == "produce" and not job.leave:
                self._left_open.setdefault(bootstrap, []).append(worker)
            else:
                await _end(worker)

    async def end_run(self, bootstrap: str) -> None:
        for worker in self._left_open.pop(bootstrap, []):
            await _end(worker)

    async def _start(self) -> asyncio.subprocess.Process:
        worker = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=self._folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_BYTES,
        )
        await _line(worker)  # its version
        return worker

    async def close(self) -> None:
        for worker in self._idle:
            await _end(worker)
        self._idle.clear()


def _given(job: Job, client: str) -> Mapping[str, object]:
    """Return the argument of the verb: the drivers in other languages have it beside those of other verbs."""
    plain: dict[str, object] = msgspec.to_builtins(job)
    return plain if "python" in client or client == "confluent-kafka" else {"job": plain}


async def _line(worker: asyncio.subprocess.Process) -> dict[str, object]:
    assert worker.stdout is not None
    line = await worker.stdout.readline()
    if not line:
        raise RuntimeError("the driver terminated")
    found: dict[str, object] = json.loads(line)
    return found


async def _end(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is None:
        worker.kill()
    await worker.wait()


# The lightest processes first.
CLIENTS: Sequence[Client] = (
    InLoop(),
    Workers("confluent-kafka", (sys.executable, "-m", "tools.lint.drivers.confluent_driver"), ROOT),
    Workers("kafka-python", (sys.executable, "-m", "tools.lint.drivers.kafka_python_driver"), ROOT),
    *[Workers(name, ("./driver",), BUILT / name, name) for name in ("franz-go", "sarama")],
    Workers("kafkajs", ("node", "main.js"), BUILT / "kafkajs", "kafkajs"),
    *[Workers(name, JAVA, BUILT / name, name) for name in ("java-4", "java-3.9")],
    Workers(
        "kafka-python-2",
        ("venv/bin/python", "-m", "tools.lint.drivers.kafka_python_driver"),
        BUILT / "kafka-python-2",
        "kafka-python-2",
    ),
)
BY_NAME: Mapping[str, Client] = {each.name: each for each in CLIENTS}
