"""What `sluice lint` reports about the client under test, and whether it is what a plant, or a default, must have."""

import asyncio
import re
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from sluice.lint.findings import Finding
from sluice.lint.rule import Severity
from sluice.lint.run import lint
from tools.lint.clients import BY_NAME, CLIENTS
from tools.lint.defaults import SCENES
from tools.lint.examples import EXAMPLES
from tools.lint.plant import Plant
from tools.lint.scene import FEEDER, Run, Scene, play, play_virtually

BESIDE = 6  # runs in real time; they mostly sleep
PROCESSES = 2

T = TypeVar("T")


class Task(NamedTuple):
    """One run."""

    name: str
    client: str
    seed: int
    scene: Scene


def run_all(tasks: Sequence[Task], judge: Callable[[Task, Run], T]) -> Iterator[T]:
    """Yield what `judge` returns of each task and its run, in any order; journals are not kept."""
    virtual = [task for task in tasks if BY_NAME[task.client].virtual]
    if virtual:
        with ProcessPoolExecutor(PROCESSES) as pool:
            yield from pool.map(partial(_virtual, judge), virtual)
    real = [task for task in tasks if not BY_NAME[task.client].virtual]
    if real:
        with asyncio.Runner() as runner:
            results = _real(real, judge)
            while (found := runner.run(_next(results))) is not None:
                yield found


def _virtual(judge: Callable[[Task, Run], T], task: Task) -> T:
    try:
        run = play_virtually(task.scene, BY_NAME[task.client], task.seed)
    except Exception:  # not every exception can pass to another process
        run = Run([], [traceback.format_exc()])
    return judge(task, run)


async def _next(results: AsyncIterator[T]) -> T | None:
    return await anext(results, None)


async def _real(tasks: Sequence[Task], judge: Callable[[Task, Run], T]) -> AsyncIterator[T]:
    places = asyncio.Semaphore(BESIDE)

    async def one(task: Task) -> T:
        async with places:
            return judge(task, await play(task.scene, BY_NAME[task.client]))

    try:
        for each in asyncio.as_completed([one(task) for task in tasks]):
            yield await each
    finally:
        for client in CLIENTS:
            await client.close()


PLANTED, REMEDIED = "planted", "remedied"


class Verdict(msgspec.Struct, frozen=True):
    """The result of a plant for one client and seed."""

    rule: str
    client: str
    seed: int
    is_found: bool
    is_gone: bool
    others: Sequence[str]  # other findings of severity error in the planted run
    problems: Sequence[str]  # errors of the jobs, in scenes without failures

    @property
    def passes(self) -> bool:
        return self.is_found and self.is_gone and not self.others and not self.problems


class Reported(NamedTuple):
    """A finding about a client with its defaults."""

    rule: str
    client: str
    scene: str
    text: str


class Half(NamedTuple):
    """The planted, or the remedied, run of a plant."""

    task: Task
    rules: frozenset[str]  # that found something
    errors: frozenset[str]  # those of severity error
    problems: Sequence[str]


def findings_of(run: Run) -> list[Finding]:
    """Return the findings, except those about a helper alone."""
    found = lint(run.events).findings
    return [each for each in found if not each.clients or any(key.client_id != FEEDER for key in each.clients)]


def half_of(task: Task, run: Run) -> Half:
    found = findings_of(run)
    return Half(
        task,
        frozenset(each.rule for each in found),
        frozenset(each.rule for each in found if each.severity is Severity.ERROR),
        () if task.scene.fails else run.failures,
    )


def chosen_cells(plants: Iterable[Plant], clients: Sequence[str], most: int) -> dict[tuple[str, str], Plant]:
    """Return the plants by rule and client: of each rule, at most so many of the clients, the first ones."""
    found: dict[str, dict[str, Plant]] = {}
    for plant in plants:
        found.setdefault(plant.rule, {}).update(dict.fromkeys(plant.cells, plant))
    return {
        (rule, client): cells[client]
        for rule, cells in found.items()
        for client in [each for each in clients if each in cells][:most]
    }


def judge_plants(plants: Iterable[Plant], clients: Sequence[str], most: int, seeds: Sequence[int]) -> Iterator[Verdict]:
    """Run the plants that these clients have, planted and remedied, and yield a verdict for each seed."""
    chosen = chosen_cells(plants, [each for each in clients if each in runnable()], most)
    tasks = [
        Task(f"{rule} {state}", client, seed, plant.scene_of(client, seed, is_planted=state == PLANTED))
        for (rule, client), plant in chosen.items()
        for seed in seeds
        for state in (PLANTED, REMEDIED)
    ]
    halves: dict[tuple[str, str, int], dict[str, Half]] = {}
    for half in run_all(tasks, half_of):
        rule, state = half.task.name.split()
        key = (rule, half.task.client, half.task.seed)
        both = halves.setdefault(key, {})
        both[state] = half
        if len(both) == 2:
            yield verdict_of(chosen[rule, half.task.client], **halves.pop(key))


def verdict_of(plant: Plant, planted: Half, remedied: Half) -> Verdict:
    return Verdict(
        rule=plant.rule,
        client=planted.task.client,
        seed=planted.task.seed,
        is_found=plant.rule in planted.rules,
        is_gone=plant.rule not in remedied.rules,
        others=sorted(planted.errors - {plant.rule} - plant.also),
        problems=[*planted.problems, *remedied.problems],
    )


def judge_defaults(clients: Iterable[str], journals: Path | None) -> Iterator[Sequence[Reported]]:
    """Run the ordinary uses of these clients with their defaults, and their examples; yield the findings of each run.

    Journals are kept in the folder, if there is one.
    """
    tasks = [
        Task(name, client, 1, scene)
        for client in clients
        if client in runnable()
        for name, scene in [*SCENES.items(), *((f"example: {title}", scene) for title, _, scene in EXAMPLES[client])]
    ]
    yield from run_all(tasks, partial(_reported, journals))


def _reported(journals: Path | None, task: Task, run: Run) -> Sequence[Reported]:
    if journals is not None:
        journals.mkdir(parents=True, exist_ok=True)
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in run.events)
        (journals / f"{task.client}--{re.sub(r'[^a-z]+', '-', task.name.lower())}.ndjson").write_bytes(lines)
    return [
        Reported(each.rule, task.client, task.name, evidence.text)
        for each in findings_of(run)
        for evidence in each.evidence
    ]


def runnable() -> set[str]:
    """Return the names of the clients that are built."""
    return {each.name for each in CLIENTS if each.missing() is None}


def rate(verdicts: Sequence[Verdict]) -> float:
    """Return the share of passed verdicts."""
    return sum(each.passes for each in verdicts) / len(verdicts)
