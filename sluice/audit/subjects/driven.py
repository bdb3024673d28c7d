"""A client library with a driver: in its own process, or as a task in virtual time.

A driver is a module with `run(job, on_callback)`: it creates the client, runs the workload, and reports callbacks until
it ends. A driver process reads its job from standard input and writes callbacks as JSON lines (drivers/reporting.py).
"""

import asyncio
import sys
from collections.abc import Coroutine, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

import msgspec

from sluice import testing
from sluice.audit.judge.model.observation import Callback, Role, SubjectInfo
from sluice.audit.probes.probe import Setting

from .client import Client, installed
from .process import SubjectProcess
from .subject import Job, OnCallback, Running, Subject


class DrivenSubject(Subject):
    def __init__(self, client: Client) -> None:
        super().__init__(client.name, client.roles)
        self.client = client

    def version(self) -> str:
        return installed(self.client.distribution)

    def missing(self) -> str | None:
        if self.version():
            return None
        return f"{self.name}: {self.client.distribution} is not installed; run pip install {self.client.distribution}"

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return self.client.info(role, settings, self.version())

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        return await start_driver(self.client, job, on_callback)


def _own(client: Client, job: Job) -> Job:
    return msgspec.structs.replace(job, settings=client.own(job.role, job.settings))


async def start_driver(
    client: Client, job: Job, on_callback: OnCallback, command: Sequence[str] = (), **environment: str
) -> SubjectProcess:

    def on_line(line: bytes) -> None:
        try:
            callback = msgspec.json.decode(line, type=Callback)
        except msgspec.DecodeError:
            return  # output of the library
        on_callback(callback)

    stdin = msgspec.json.encode(_own(client, job))
    command = command or [sys.executable, "-m", client.driver]
    return await SubjectProcess.start(command, on_line, stdin=stdin, environment=environment)


class Driver(Protocol):
    def run(self, job: Job, on_callback: OnCallback) -> Coroutine[object, object, None]:
        """Run until cancelled."""


class VirtualSubject(DrivenSubject):
    """A pure asyncio client as a task in virtual time, on its own host."""

    virtual = True

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.name = f"{client.name}-virtual"

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return msgspec.structs.replace(super().info(role, settings), name=self.name)

    def load(self) -> Driver:
        """Import driver and library, which must happen before time is virtual."""
        return cast(Driver, import_module(self.client.driver))  # mypy does not see a module's functions as a protocol

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        driver = self.load()
        with testing.network().host("client"):
            return RunningTask(asyncio.create_task(driver.run(_own(self.client, job), on_callback)))


class RunningTask:
    def __init__(self, task: "asyncio.Task[None]") -> None:
        self._task = task

    def ended(self) -> str | None:
        if not self._task.done():
            return None
        error = None if self._task.cancelled() else self._task.exception()
        return "ended" if error is None else f"{type(error).__name__}: {error}"

    def last_output(self) -> str:
        return ""

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
