"""`make check-instructions`: the instructions of a start, of requests and of a scrape, compared with recorded ones.

A real broker runs under callgrind, or with the processor's counter where valgrind is missing. Each kind of request is
sent some hundred times, with fixed hash seeds, addresses and clocks. Counts depend on the build of Python, so each
minor version has its file, which names its build.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.instructions.counters import Counter, UnavailableError, best_counter
from bench.instructions.requests import KINDS, fill_topic
from bench.wire_client import Client, metadata

# A change beyond this is reported. Counts differ by up to 0.7 % on a busy machine, and by 0.1 % otherwise.
TOLERANCE = 0.01
# Measurements after one that differs, each at other addresses: names that share an entry of CPython's attribute cache
# cost 1,000 instructions of each request.
_REPETITIONS = 3
# A lap is repeated until its two lowest counts agree within this; a timer of the loop in a lap adds up to 1 %.
_AGREEMENT = 0.001
_LAPS = 6  # at most
_LEAST_LAPS = 2
_FOLDER = Path(__file__).parent
_ARGUMENTS = ("serve", "--port", "0", "--admin-port", "0", "--seed", "1")
_OVERRIDES = ("group.initial.rebalance.delay.ms=0", "sluice.log.memory.bytes=64MiB")


def build() -> str:
    """Return what the counts depend on."""
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"


def measure(counter: Counter, only: str = "", moved: int = 0) -> Iterator[tuple[str, int]]:
    """Yield names and instructions, of one request where there are several; `moved` objects of each size come first."""
    compile_all = [sys.executable, "-m", "compileall", "-q", "sluice", "broker", "protocol", "purgatory", "quotas"]
    subprocess.run(compile_all, cwd=_FOLDER.parent.parent, check=True)
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    overrides = [word for one in _OVERRIDES for word in ("--override", one)]
    process = counter.start((*_ARGUMENTS, *overrides), environment, moved)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline().removeprefix("ready "))
        client = Client(process.pid, ready["bootstrap"])
        client.call(metadata(), 12)
        yield "start", counter.lap(process)
        fill_topic(client, (1 + _LEAST_LAPS) * max(kind.in_lap for kind in KINDS))
        counter.lap(process)
        lap = counter.lap(process)  # the instructions of a lap itself
        for kind in KINDS:
            if only in kind.name:
                counted = _laps(counter, process, partial(kind.prepare, client, kind.in_lap))
                yield kind.name, (counted - lap) // kind.in_lap
        if only in "scrape":
            scrape = partial(_scrape, f"{ready['admin']}/metrics")
            yield "scrape", _laps(counter, process, lambda: scrape) - lap
    finally:
        process.kill()  # its clock hardly advances, so a stop would take long
        process.wait()


def _laps(counter: Counter, process: "subprocess.Popen[str]", prepare: Callable[[], Callable[[], None]]) -> int:
    """Return the instructions of a lap without timers of the loop: the least of several.

    The first requests, which compile codecs and adapt bytecode, are not counted.
    """
    prepare()()
    laps: list[int] = []
    while len(laps) < _LAPS and (len(laps) < _LEAST_LAPS or laps[1] - laps[0] > laps[0] * _AGREEMENT):
        send = prepare()
        counter.lap(process)
        send()
        laps = sorted([*laps, counter.lap(process)])
    return laps[0]


def _scrape(url: str) -> None:
    with urllib.request.urlopen(url, timeout=120) as response:
        response.read()


def compare(counts: dict[str, int], recorded: dict[str, int]) -> list[str]:
    """Return a line for each count that differs by more than the tolerance."""
    problems = []
    for name, count in counts.items():
        before = recorded.get(name)
        if before is None:
            problems.append(f"{name}: no count is recorded")
        elif abs(count / before - 1) > TOLERANCE:
            problems.append(f"{name}: {count:,} instructions instead of {before:,} ({count / before - 1:+.1%})")
    return problems


def _measure_and_print(only: str, before: dict[str, int], moved: int = 0) -> dict[str, int]:
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, count in measure(best_counter(Path(folder)), only, moved):
            counts[name] = count
            change = f"{count / before[name] - 1:+8.2%}" if name in before else ""
            print(f"{name:<36} {count:>14,} {change}", flush=True)
    return counts


def _closer(recorded: int, one: int, other: int) -> int:
    """Return the count that is closer to the recorded one."""
    return min(one, other, key=lambda count: abs(count - recorded))


def main() -> int:
    """Measure, print a table, and compare or write the counts."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the counts of this version of Python")
    parser.add_argument("--only", default="", help="text that the names of the requests contain")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            counter = best_counter(Path(folder))
        except UnavailableError as reason:
            print(f"instructions: skipped; {reason}")
            return 0
    path = _FOLDER / f"counts-{sys.version_info.major}.{sys.version_info.minor}.json"
    recorded = json.loads(path.read_text()) if path.exists() else {}
    before = recorded.get(counter.name, {}) if recorded.get("build") == build() else {}
    if not before and not arguments.write:
        print(f"instructions: not compared; {path.name} has no counts of {build()} by {counter.name}; use --write")
        return 0
    counts = _measure_and_print(arguments.only, before)
    if arguments.write:
        again = _measure_and_print(arguments.only, before, moved=1)
        counts = {name: min(count, again[name]) for name, count in counts.items()}
        kept = {} if recorded.get("build") != build() else recorded
        kept |= {"build": build(), counter.name: before | counts}
        path.write_text(json.dumps(kept, indent=2) + "\n")
        return 0
    for repetition in range(1, 1 + _REPETITIONS):
        if not compare(counts, before):
            break
        print("instructions: measured again; a change shows in each measurement")
        again = _measure_and_print(arguments.only, before, repetition)
        counts = {name: _closer(before.get(name, count), count, again[name]) for name, count in counts.items()}
    problems = compare(counts, before)
    for problem in problems:
        print(f"instructions: {problem}")
    if problems:
        print("instructions: if this is intended, run python -m bench.instructions --write")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
