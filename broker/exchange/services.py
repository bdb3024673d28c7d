"""The interface that exchange/ requires of its broker. Imported by type checkers only."""

from collections.abc import Mapping
from typing import Protocol

from sluice.broker.handlers.services import AllServices
from sluice.purgatory.scheduler import Scheduler


class ExchangeHost(AllServices, Protocol):
    @property
    def served(self) -> Mapping[int, tuple[int, int]]: ...
    @property
    def scheduler(self) -> Scheduler: ...
