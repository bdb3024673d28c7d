"""Search correct applications with `sluice.client` for failures: `python -m tools.explore.own_client`.

A search is a program with a seed. Its result is a line of the results file, and searches that are in this file are not
repeated. A finding is a defect of the client, the broker, the explorer or the program.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import msgspec

from sluice.explore.evaluation import in_this_process
from sluice.explore.execution import Options
from sluice.explore.search import search

from .own_programs import PROGRAMS


class Searched(msgspec.Struct, frozen=True):
    """The result of a search.

    program, seed, most_runs: what was searched
    runs: number of runs, with those of the reduction
    states: number of different states of the cluster
    error: how the program failed, or ""
    replay, order: the reduced failure
    """

    program: str
    seed: int
    most_runs: int
    runs: int
    states: int
    error: str = ""
    replay: list[str] = []
    order: int = 0

    def __str__(self) -> str:
        found = f"{self.replay} order {self.order}: {self.error}" if self.error else "nothing found"
        return f"{self.program}, seed {self.seed}, {self.runs} runs, {self.states} states: {found}"


Task = tuple[str, int, int]  # program, seed, maximum number of runs


def searched(task: Task) -> Searched:
    name, seed, most_runs = task
    program = PROGRAMS[name]
    options = Options(program.invariants, config=program.config, seed=seed)
    result = search(in_this_process(program.run, options), most_runs, seed, program.failures)
    if result.found is None:
        return Searched(name, seed, most_runs, result.runs, result.covered)
    schedule = result.found.schedule
    replay = [*map(str, schedule.injections)]
    return Searched(
        name, seed, most_runs, result.runs, result.covered, result.found.outcome.error, replay, schedule.order
    )


def _known(results: Path) -> Iterator[Searched]:
    if results.exists():
        decoder = msgspec.json.Decoder(Searched)
        yield from map(decoder.decode, results.read_bytes().splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.explore.own_client", description=__doc__)
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="a program (default: all)")
    parser.add_argument("--seeds", type=int, default=10, help="searches of each program (default: 10)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first search (default: 0)")
    parser.add_argument("--runs", type=int, default=1000, help="runs of each search (default: 1000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes (default: one per core)")
    parser.add_argument("--results", type=Path, default=Path("build/own-client.jsonl"), help="file of results")
    arguments = parser.parse_args()
    known = list(_known(arguments.results))
    done = {(each.program, each.seed, each.most_runs) for each in known}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    # A seed of each program first, so that a search that is ended early has seen all programs.
    tasks = [(name, seed, arguments.runs) for seed in seeds for name in arguments.program or PROGRAMS]
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    with get_context("fork").Pool(arguments.jobs) as pool, arguments.results.open("ab") as file:
        for result in pool.imap_unordered(searched, [task for task in tasks if task not in done]):
            known.append(result)
            file.write(msgspec.json.encode(result) + b"\n")
            file.flush()
            print(result, flush=True)
    for name in PROGRAMS:
        of_program = [each for each in known if each.program == name]
        failed = sum(bool(each.error) for each in of_program)
        print(f"{name}: {sum(each.runs for each in of_program)} runs, {failed} findings")
    return any(each.error for each in known)


if __name__ == "__main__":
    sys.exit(main())
