"""The programs of examples/explore: a test each, whose applications are naive and fixed, for two clients."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from sluice.explore.execution import Options, Outcome, Program, Schedule
from sluice.explore.injection import parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "explore"
FINDINGS = ROOT / "docs" / "explore" / "findings.json"
_BEFORE, _MOST_STEPS = 3, 14  # steps before the first failure, and in total
CLIENTS: Mapping[str, str] = {"aiokafka": "aiokafka", "sluice": "sluice.client"}


class Example(NamedTuple):
    """A bug in programs with one client.

    module: of examples/explore, whose test has the applications `CLIENT_naive` and `CLIENT_fixed`
    client: its name in these
    """

    module: ModuleType
    client: str

    @property
    def bug(self) -> str:
        return self.module.__name__.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.bug}-{self.client}"

    @property
    def test(self) -> Callable[..., Coroutine[Any, Any, object]]:
        (test,) = (value for name, value in vars(self.module).items() if name.startswith("test_"))
        return test  # type: ignore[no-any-return]

    @property
    def options(self) -> Options:
        """The arguments of the mark."""
        marks = {mark.name: mark for mark in self.test.pytestmark}  # type: ignore[attr-defined]
        return Options(**marks["kafka_explore"].kwargs)

    @property
    def naive(self) -> Program:
        return partial(self.test, application=self.application("naive"))

    @property
    def fixed(self) -> Program:
        return partial(self.test, application=self.application("fixed"))

    def application(self, version: str) -> Callable[..., Coroutine[Any, Any, object]]:
        return getattr(self.module, f"{self.client}_{version}")  # type: ignore[no-any-return]


class Finding(msgspec.Struct, frozen=True):
    """What a search has found: a schedule, as arguments of the mark, and what it took.

    runs: median of the runs of several seeds, with those of the reduction
    most_failures: largest number of failures of these
    error: how the program failed
    steps: what happened; the sets of aiokafka make times and order of some steps depend on PYTHONHASHSEED
    """

    replay: list[str]
    order: int
    sizes: dict[str, int]
    runs: float
    most_failures: int
    error: str
    steps: list[str]

    @property
    def schedule(self) -> Schedule:
        return Schedule(tuple(parse(each) for each in self.replay), self.order, tuple(sorted(self.sizes.items())))


def steps_of(schedule: Schedule, outcome: Outcome) -> list[str]:
    """Return what happened from a little before the first failure."""
    sentences = {each.sentence for each in schedule.injections}
    first = next((number for number, (_, text) in enumerate(outcome.happened) if text in sentences), 0)
    shown = outcome.happened[max(0, first - _BEFORE) :][:_MOST_STEPS]
    return [f"{at_s:7.3f} s  {text}" for at_s, text in shown]


def findings() -> Mapping[str, Finding]:
    """Return the committed findings by example."""
    return msgspec.json.decode(FINDINGS.read_bytes(), type=dict[str, Finding]) if FINDINGS.exists() else {}


def examples() -> Iterator[Example]:
    for file in sorted(FOLDER.glob("*.py")):
        module = import_module(f"examples.explore.{file.stem}")
        for client in CLIENTS:
            yield Example(module, client)
