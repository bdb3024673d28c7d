"""A subject is a client that is looked at: one that brings its own driver, or any command that is only watched.

A run begins with `begin`, which gives a client at work, and ends with that one's `end`. Between them it tells what
happens, if it can.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from sluice.audit.judge.model.observation import Callback, Role, SubjectInfo
from sluice.audit.probes import Setting, Workload
from sluice.errors import SluiceError

OnCallback = Callable[[Callback], None]


class SubjectError(SluiceError):
    """A subject that there is not, or that does not run; one line that says why."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver is asked to do, until it is ended.

    bootstrap: HOST:PORT of the brokers, separated by commas
    role: what the client is to be
    workload: what it is to do
    settings: the client's own, by its own names, as it takes them
    seed: of a client whose chance can be given
    """

    bootstrap: str
    role: Role
    workload: Workload
    settings: dict[str, Setting]
    seed: int = 0


class Running(Protocol):
    """A client at work."""

    def ended(self) -> str | None:
        """Why it has ended, in one line; None while it runs."""

    async def end(self) -> None:
        """Ends it, and all that it started."""


class Subject(Protocol):
    """A client that can be looked at."""

    @property
    def name(self) -> str:
        """As it is called in reports."""

    @property
    def virtual(self) -> bool:
        """Whether it lives in virtual time."""

    @property
    def roles(self) -> frozenset[Role] | None:
        """What it can be used as; None: that has to be seen."""

    def version(self) -> str:
        """Of the client; "" where nobody can tell."""

    def missing(self) -> str | None:
        """Why it cannot run here, in one line; None where it can."""

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        """Who it is when it is given settings, by Kafka's names."""

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        """Start the client; `job` has its settings by Kafka's names. Raises SubjectError if it does not start."""

    async def close(self) -> None:
        """Lets go of what it keeps between runs."""
