"""The cases, and the clusters on which they run."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tools.differential.session import Session

Steps = Callable[[Session], None]
MEMORY, DISK = "in memory", "on disk"


class Layout(NamedTuple):
    """What a cluster is made of. Cases of one layout share one cluster, so they need topics and groups of their own.

    A case that changes the whole cluster, or restarts it, gets one to itself by a `name`.
    """

    properties: tuple[str, ...] = ()  # `name=value`
    brokers: int = 1
    racks: tuple[str, ...] = ()  # one for each broker
    features: tuple[str, ...] = ()  # `name=level` of the new cluster
    name: str = ""
    storages: tuple[str, ...] = (MEMORY, DISK)  # not MEMORY if brokers restart, or if names matter as those of files


class Case(NamedTuple):
    """One sequence of requests.

    Args:
        name: `<module>: <the function's name, and the row of its table>`.
        explained: Pattern (fnmatch) of paths such as `3 CreateTopics.topics[0].error_message`, where sluice differs ->
            the reason. A pattern without a difference fails the case.
    """

    name: str
    steps: Steps
    layout: Layout
    explained: Mapping[str, str]

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]


CASES: dict[str, Case] = {}
ONE_BROKER = Layout()


def case(
    layout: Layout = ONE_BROKER, *, row: str = "", explained: Mapping[str, str] | None = None
) -> Callable[[Steps], Steps]:
    """Register a function as a case. `row` names one row of a table whose rows share a function."""

    def register(steps: Steps) -> Steps:
        function = steps.func if isinstance(steps, partial) else steps
        words = function.__name__.replace("_", " ")
        name = f"{function.__module__.rpartition('.')[2]}: {words}" + (f": {row}" if row else "")
        assert name not in CASES, f"two cases have the name {name!r}"
        CASES[name] = Case(name, steps, layout, explained or {})
        return steps

    return register


def load_cases() -> dict[str, Case]:
    """Import all modules of cases."""
    for file in sorted(Path(__file__).with_name("cases").glob("[a-z]*.py")):
        import_module(f"tools.differential.cases.{file.stem}")
    return CASES


def by_layout(cases: list[Case]) -> dict[Layout, list[Case]]:
    """Return the cases by the cluster that they share."""
    found: dict[Layout, list[Case]] = {}
    for each in cases:
        found.setdefault(each.layout, []).append(each)
    return found
