"""Find each bug of examples/explore with several seeds, repeat it, and look for failures of the fixed versions.

With --write, it writes the findings to docs/explore/findings.json, from which `make generate` writes the pages.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from sluice.explore.evaluation import in_this_process
from sluice.explore.execution import Outcome, Schedule, execute
from sluice.explore.guided import Guided
from sluice.explore.search import Evaluate, Result, search

from .chance import Chance
from .changes import applied
from .examples import FINDINGS, Example, Finding, examples, findings, steps_of
from .history import FINDINGS as FOUND_IN_AIOKAFKA

# Every bug must be found within this processor time, with its reduction; runs are not limited.
_LIMIT_S = 60.0
_ANY_RUNS = 1_000_000


def main() -> int:
    known = {str(example): example for example in examples()}
    parser = argparse.ArgumentParser(prog="python -m tools.explore", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="number of searches for each bug")
    parser.add_argument("--runs", type=int, default=5000, help="number of runs of each fixed version")
    parser.add_argument("--processes", type=int, default=20, help="number of processes that repeat a failure")
    parser.add_argument("--bug", choices=known, action="append", help="a bug and a client; default: all")
    parser.add_argument("--compare", action="store_true", help="compare the guided search with pure chance, too")
    parser.add_argument("--write", action="store_true", help="write the findings of the documentation")
    parser.add_argument("--repeat", choices=known, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.repeat:
        return _fails_as_committed(known[arguments.repeat])
    failed = 0
    for name in arguments.bug or known:
        example = known[name]
        if arguments.seeds:
            failed += _find(example, arguments.seeds, is_written=arguments.write)
        if arguments.compare:
            _compare(example, arguments.seeds)
        if arguments.processes:
            failed += _repeat(example, arguments.processes)
        if arguments.runs:
            failed += _survive(example, arguments.runs)
    return failed > 0


def _find(example: Example, seeds: int, *, is_written: bool) -> int:
    """Search with several seeds; return the number of seeds without a finding."""
    results: list[Result] = []
    times: list[float] = []
    for seed in range(seeds):
        began = time.process_time()
        results.append(search(_limited(example), _ANY_RUNS, seed))
        times.append(time.process_time() - began)
    found = [result.found for result in results if result.found is not None and result.found.schedule.injections]
    if not found:
        print(f"{example}: not found with {seeds} seeds", flush=True)
        return seeds
    runs = [result.runs for result in results]
    events = [len(each.schedule.injections) for each in found]
    print(
        f"{example}: found with {len(found)} of {seeds} seeds, "
        f"after {median(runs):g} runs ({min(runs)} to {max(runs)}), "
        f"{median(times):.1f} s ({min(times):.1f} to {max(times):.1f}), with {min(events)} to {max(events)} failures",
        flush=True,
    )
    for error in sorted({each.outcome.error for each in found}):
        print(f"  {error}")
    if is_written:
        first = found[0].schedule
        finding = Finding(
            [*map(str, first.injections)],
            first.order,
            dict(first.sizes),
            median(runs),
            max(events),
            found[0].outcome.error,
            steps_of(first, found[0].outcome),
        )
        written = dict(sorted({**findings(), str(example): finding}.items()))
        FINDINGS.write_bytes(msgspec.json.format(msgspec.json.encode(written)) + b"\n")
    return seeds - len(found)


def _limited(example: Example, *, reduces: bool = True) -> Evaluate:
    """Return a function that executes runs of the naive version until the limit, and those of the reduction."""
    evaluate = in_this_process(example.naive, example.options)
    end = time.process_time() + _LIMIT_S
    has_failed = False

    def limited(schedules: Sequence[Schedule]) -> Iterator[Outcome]:
        nonlocal has_failed
        if has_failed and not reduces:
            return
        for outcome in evaluate(schedules):
            has_failed = has_failed or bool(outcome.error)
            yield outcome
            if time.process_time() >= end and not has_failed:
                return

    return limited


def _compare(example: Example, seeds: int) -> None:
    """Search for the naive version's failure by both strategies, and print times and runs until the first one.

    The reduction is that of both, and not part of the comparison. The strategies search in turn, as other processes of
    the machine may slow down either.
    """
    times: dict[str, list[float]] = {}
    runs: dict[str, list[int]] = {}
    for seed in range(seeds):
        for strategy in (Guided, Chance):
            began = time.process_time()
            result = search(_limited(example, reduces=False), _ANY_RUNS, seed, strategy=strategy)
            times.setdefault(strategy.__name__, []).append(time.process_time() - began)
            runs.setdefault(strategy.__name__, []).append(result.runs)
    for name, each in times.items():
        print(f"  {name}: {median(each):.2f} s ({min(each):.2f} to {max(each):.2f}), {median(runs[name]):g} runs")
    print(f"{example}: guided / chance: {median(times['Guided']) / median(times['Chance']):.2f}", flush=True)


def _repeat(example: Example, processes: int) -> int:
    """Repeat the committed finding in other processes; return in how many it did not fail."""
    failed = processes - sum(_repeats(example, number) for number in range(processes))
    print(f"  repeated in {processes - failed} of {processes} processes", flush=True)
    return failed


def _repeats(example: Example, hash_seed: int) -> bool:
    command = [sys.executable, "-W", "ignore", "-m", "tools.explore", "--repeat", str(example)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _fails_as_committed(example: Example) -> int:
    finding = findings()[str(example)]
    return execute(example.naive, finding.schedule, example.options).error != finding.error


def _survive(example: Example, runs: int) -> int:
    """Search for a failure of the fixed version, without the open defects of its client; return how many were found."""
    began = time.process_time()
    with applied(name for name, finding in FOUND_IN_AIOKAFKA.items() if not finding.mended):
        result = search(in_this_process(example.fixed, example.options), runs, 0)
    rate = result.runs / (time.process_time() - began)
    print(f"{example}: fixed version, {result.runs} runs, {rate:.0f} per second of processor time", flush=True)
    if result.found is None:
        return 0
    schedule: Schedule = result.found.schedule
    print(f"  {[*map(str, schedule.injections)]} order {schedule.order}: {result.found.outcome.error}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
