"""A client library with a driver: in a process of its own, or as a task in virtual time.

A driver is a module with `run(job, tell)`: it makes the client, has it work, and tells what happens, until it is ended.
As a process it reads its job from standard input and tells in lines of JSON (drivers/telling.py).
"""

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from importlib import import_module
from typing import Protocol, cast

import msgspec

from sluice import testing
from sluice.audit.judge.model.observation import Callback, Role, SubjectInfo
from sluice.audit.probes import Setting, Workload

from .client import Client, installed
from .process import SubjectProcess
from .subject import Job, Running, Tell


class DrivenSubject:
    """A client in a process of its own."""

    virtual = False

    def __init__(self, client: Client) -> None:
        self.client = client
        self.name = client.name
        self.roles: frozenset[Role] | None = frozenset(Role)

    def version(self) -> str:
        return installed(self.client.distribution)

    def missing(self) -> str | None:
        if self.version():
            return None
        return f"{self.name}: {self.client.distribution} is not installed: pip install {self.client.distribution}"

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return self.client.info(role, settings, self.version())

    async def begin(
        self, bootstrap: str, role: Role, workload: Workload, settings: Mapping[str, Setting], seed: int, tell: Tell
    ) -> Running:
        job = Job(
            bootstrap=bootstrap, role=role, workload=workload, settings=self.client.own(role, settings), seed=seed
        )
        return await start_driver(self.client.driver, job, tell)

    async def close(self) -> None:
        """Nothing is kept between runs."""


async def start_driver(module: str, job: Job, tell: Tell, **environment: str) -> SubjectProcess:
    """Starts a driver as a process, which has its job from here."""

    def on_line(line: bytes) -> None:
        try:
            told = msgspec.json.decode(line, type=Callback)
        except msgspec.DecodeError:
            return  # what the library prints
        tell(told)

    command = [sys.executable, "-m", module]
    return await SubjectProcess.start(command, on_line, stdin=msgspec.json.encode(job), environment=environment)


class Driver(Protocol):
    """A driver's module, where the client is asyncio."""

    def run(self, job: Job, tell: Tell) -> Coroutine[object, object, None]:
        """Works until it is cancelled."""


class VirtualSubject(DrivenSubject):
    """A client that is asyncio and nothing else, as a task in virtual time, on a host of its own."""

    virtual = True

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.name = f"{client.name}-virtual"

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return msgspec.structs.replace(super().info(role, settings), name=self.name)

    def load(self) -> Driver:
        """Its driver, and so the library: that has to be there before time is virtual."""
        return cast(Driver, import_module(self.client.driver))  # a module is what its attributes are

    async def begin(
        self, bootstrap: str, role: Role, workload: Workload, settings: Mapping[str, Setting], seed: int, tell: Tell
    ) -> Running:
        driver = self.load()
        job = Job(
            bootstrap=bootstrap, role=role, workload=workload, settings=self.client.own(role, settings), seed=seed
        )
        with testing.network().host("client"):
            return RunningTask(asyncio.create_task(driver.run(job, tell)))


class RunningTask:
    """A driver at work as a task."""

    def __init__(self, task: "asyncio.Task[None]") -> None:
        self._task = task

    def ended(self) -> str | None:
        if not self._task.done():
            return None
        error = None if self._task.cancelled() else self._task.exception()
        return "ended" if error is None else f"{type(error).__name__}: {error}"

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
