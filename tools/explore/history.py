"""Search versions of aiokafka for failures, with programs that know no defect: `python -m tools.explore.history`.

Each old version is installed in a folder below .venv/history. `--repeat` repeats the failures that were found: in the
version in which they were found, and in the one that has mended them.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import aiokafka

from sluice.explore import ExploreError, explore
from sluice.explore.execution import Options, Outcome, Schedule, execute
from sluice.explore.injection import KINDS, parse

from .history_programs import PROGRAMS

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".venv" / "history"
_CURRENT = "current"
# kafka-python 2.0.2 is the last version that aiokafka before 0.9 can import.
_OLD = ("kafka-python==2.0.2",)
_NEEDS = {"0.7.2": _OLD, "0.8.0": _OLD, "0.8.1": _OLD}
_SEARCHED = ("0.7.2", "0.10.0", "0.12.0", "0.13.0", _CURRENT)
# Of the cluster, and ends of processes: what most applications are prepared for.
_FAILURES = (
    "response-lost",
    "request-lost",
    "kill-before",
    "kill-after",
    "session-expired",
    "broker-killed",
    "broker-lost",
)


class Finding(NamedTuple):
    """A failure that a search has found.

    program: name of the program that fails
    version: of aiokafka, in which it was found
    mended: the first version without it; "" if there is none
    error: how the program fails
    replay, order, seed: the reduced schedule
    """

    program: str
    version: str
    mended: str
    error: str
    replay: Sequence[str]
    order: int = 0
    seed: int = 0

    def outcome(self) -> Outcome:
        """Repeat it with the version that is imported."""
        program = PROGRAMS[self.program]
        schedule = Schedule(tuple(map(parse, self.replay)), self.order)
        return execute(program.run, schedule, Options(program.invariants, seed=self.seed))


# By the issue of aiokafka, or by what happens.
FINDINGS = {
    "#781": Finding(
        "writes", "0.7.2", "0.8.0", "reader-1 failed: KeyError: 0", ["kill-after shop AddPartitionsToTxn 1"]
    ),
    "#983": Finding(
        "consumes",
        "0.10.0",
        "0.11.0",
        "AtLeastOnce: orders-0 offset 1 (b'1') was not processed",
        ["broker-killed shop OffsetCommit 1", "session-expired shop OffsetCommit 1"],
        seed=1,
    ),
    "#1134": Finding(
        "writes",
        "0.12.0",
        "0.13.0",
        "WaitTimeoutError: after 240 s, the condition is not true",
        ["broker-lost shop EndTxn 1"],
    ),
    "#1151": Finding(
        "copies",
        "0.13.0",
        "0.14.0",
        "shop-1 failed: KafkaError: KafkaError: Unexpected error during batch delivery",
        ["leader-moved shop Fetch 1", "broker-killed shop TxnOffsetCommit 1"],
    ),
    "#796": Finding(
        "patterns",
        "0.14.0",
        "",
        "right-1 failed: KafkaError: KafkaError: Unexpected error during coordination AssertionError()",
        ["response-lost right OffsetCommit 1"],
        seed=1,
    ),
    "a failed lookup of offsets resets positions": Finding(
        "consumes",
        "0.14.0",
        "",
        "MonotonicCommits: group shop committed offset 0 of orders-0 after 6",
        ["session-expired shop OffsetCommit 7", "coordinator-moved shop OffsetFetch 2"],
    ),
    "a member that joins again commits without its id": Finding(
        "consumes",
        "0.14.0",
        "",
        "MonotonicCommits: group shop committed offset 1 of orders-1 after 5",
        ["second-instance shop OffsetCommit 1", "paused shop OffsetCommit 7", "paused shop OffsetCommit 11"],
        order=295,
        seed=1,
    ),
    "a reset of positions does not look for the leader": Finding(
        "consumes",
        "0.14.0",
        "",
        "AtLeastOnce: orders-0 offset 0 (b'0') was not processed",
        ["leader-moved shop ListOffsets 1"],
    ),
    "a lost lookup of a coordinator ends the producer": Finding(
        "copies",
        "0.14.0",
        "",
        "shop-1 failed: KafkaError: KafkaError: Unexpected error during batch delivery",
        ["response-lost shop FindCoordinator 3"],
    ),
    "send raises KeyError": Finding(
        "consumes",
        "0.14.0",
        "",
        "shop-1 failed: KeyError: (3, <ConnectionGroup.COORDINATION: 1>)",
        ["paused shop Fetch 1", "response-lost shop OffsetCommit 1"],
        order=29,
    ),
    "stop raises CancelledError": Finding(
        "jobs", "0.14.0", "", "shop-1 was cancelled by its own code", ["broker-killed shop Fetch 16"]
    ),
}


def _search(runs: int, seeds: int, programs: Sequence[str], failures: Sequence[str]) -> None:
    for name in programs:
        program = PROGRAMS[name]
        survived = [kind for kind in failures if kind not in program.needless]
        for seed in range(seeds):
            try:
                result = explore(program.run, runs=runs, invariants=program.invariants, failures=survived, seed=seed)
                found = f"nothing found in {result.runs} runs"
            except ExploreError as error:
                found = f"\n{error}"
            print(f"== aiokafka {aiokafka.__version__}, {name}, seed {seed}: {found}", flush=True)


def _repeat() -> None:
    for name, finding in FINDINGS.items():
        if aiokafka.__version__ in (finding.version, finding.mended):
            outcome = finding.outcome()
            missed = f"; not injected: {', '.join(map(str, outcome.missed))}" if outcome.missed else ""
            print(f"aiokafka {aiokafka.__version__}, {name}: {outcome.error or 'no failure'}{missed}", flush=True)


def installed(version: str) -> Path:
    """Install a version, if it is not; return its folder."""
    folder = _FOLDER / version
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--target", str(folder)]
        subprocess.run([*pip, f"aiokafka=={version}", *_NEEDS.get(version, ())], check=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.explore.history", description=__doc__)
    parser.add_argument("--runs", type=int, default=150, help="runs of each search (default: 150)")
    parser.add_argument("--seeds", type=int, default=4, help="searches of each program (default: 4)")
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="a program (default: all)")
    parser.add_argument("--version", action="append", help=f"a version (default: {', '.join(_SEARCHED)})")
    parser.add_argument("--failures", choices=KINDS, nargs="+", help="kinds of failures (default: 7 of them)")
    parser.add_argument("--repeat", action="store_true", help="repeat what was found, in place of searches")
    parser.add_argument("--installed", action="store_true", help="use the version that is imported")
    arguments = parser.parse_args()
    if arguments.installed and arguments.repeat:
        _repeat()
    elif arguments.installed:
        _search(arguments.runs, arguments.seeds, arguments.program or [*PROGRAMS], arguments.failures or [*_FAILURES])
    else:
        of_findings = [version for each in FINDINGS.values() for version in (each.version, each.mended) if version]
        for version in arguments.version or (sorted({*of_findings}) if arguments.repeat else _SEARCHED):
            _start(version)


def _start(version: str) -> None:
    """Run this command with a version of aiokafka."""
    # The order of sets of brokers in old versions depends on hashes.
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    if version not in (_CURRENT, aiokafka.__version__):
        env["PYTHONPATH"] = str(installed(version))
    command = [sys.executable, "-W", "ignore", "-m", "tools.explore.history", "--installed", *sys.argv[1:]]
    subprocess.run(command, check=True, cwd=_ROOT, env=env)


if __name__ == "__main__":
    main()
