"""The subjects of an audit: clients with a driver, or commands without.

A run starts with `start`, which returns a running client, and ends with `end`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from sluice.audit.judge.model.observation import Callback, Role, SubjectInfo
from sluice.audit.probes.probe import Setting, Workload

OnCallback = Callable[[Callback], None]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a driver, until it is ended.

    bootstrap: HOST:PORT of the brokers, separated by commas
    seed: seed of clients that support one
    """

    bootstrap: str
    role: Role
    workload: Workload
    settings: dict[str, Setting]
    seed: int = 0


class Running(Protocol):
    def ended(self) -> str | None:
        """Return why it ended, in one line; None while it runs."""

    def last_output(self) -> str:
        """Return the last line of its standard error; "" if it wrote none."""

    async def end(self) -> None:
        """End it with everything that it started."""


class Subject(ABC):
    """A client that can be audited.

    name: name in reports
    virtual: whether it runs in virtual time
    roles: roles that it supports; None: to be detected
    """

    virtual = False

    def __init__(self, name: str, roles: frozenset[Role] | None) -> None:
        self.name = name
        self.roles = roles

    def version(self) -> str:
        """Return the client's version; "" if not known."""
        return ""

    def missing(self) -> str | None:
        """Return why it cannot run here, in one line; None if it can."""
        return None

    @abstractmethod
    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        """Return the client with these settings, by Kafka's names."""

    async def prepare(self) -> None:  # noqa: B027  (most build nothing)
        """Build what runs need, before the first. Raises SubjectError."""

    @abstractmethod
    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        """Start the client; `job` has its settings by Kafka's names. Raises SubjectError if it does not start."""

    async def close(self) -> None:  # noqa: B027  (most keep nothing)
        """Release the resources kept between runs."""
