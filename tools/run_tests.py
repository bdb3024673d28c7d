"""The whole suite (`make test`), repetitions of it under load (campaign `stress`), or the unit tests (`make check`).

All kinds of tests run beside each other:

- The unit tests only compute, so they get the processor time that the others leave, in one process per core.
- The tests with a browser, with Kafka's commands and with Spark share one Chromium, one JVM and one Spark, so each kind
  runs in one process.
- The others wait more than they compute, so they have more processes than a small machine has cores.

The output of the last is shown as it comes; that of the others follows when they have ended.
"""

import json
import os
import secrets
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from tests.support import skips
from tools.locks import HAS_SPARK, install

ROOT = Path(__file__).parents[1]
UNIT = "tests/unit"
# On macOS, forks may crash (https://github.com/python/cpython/issues/77906): tests run in one process there.
CAN_FORK = sys.platform != "darwin"
# Tests spend half of their time waiting for clients, so there are more workers than a small machine has cores.
WORKERS = 4 if CAN_FORK else 1
# The lowest priority that still gets a tenth of a busy core's time, so that no unit test meets its timeout.
UNIT_NICENESS = 10
NO_TESTS_COLLECTED = 5
FEW_EXAMPLES = ("--hypothesis-profile", "few")
# `make test` has the same result each time; the other commands try new seeds.
SEED_OF_TEST = 0
SEEDS = 10**6  # short to copy
# What marks exclude from every phase.
DESELECTED = (
    f"skipped: tests/ecosystem but for Kafka's commands: {skips.campaign('ecosystem')}",
    f"skipped: tests/spark with long timeouts: {skips.campaign('spark')}",
    f"skipped: tests/property and docs/fleets.md with many clients: {skips.campaign('fleet-models')}",
)
# Ends also if this process is killed.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


class Phase(NamedTuple):
    """One pytest, with its forks."""

    name: str
    arguments: list[str]
    niceness: int = 0


def main_phase(workers: int) -> Phase:
    """Return the phase of the tests that wait for clients and processes, and share nothing."""
    others = "browser", "failing_tests", "kafka_commands", "many_clients", "spark", "spark_long", "tools"
    marks = " and ".join(f"not {mark}" for mark in others)
    ignored = [argument for folder in ("browser", "spark", "unit") for argument in ("--ignore", f"tests/{folder}")]
    return Phase("main", ["--lanes", str(workers), "-m", marks, *ignored])


def unit_phase(niceness: int = 0) -> Phase:
    """Return the phase of the unit tests."""
    return Phase("unit tests", ["-q", "--lanes", str(usable_cores() if CAN_FORK else 1), UNIT], niceness)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


BROWSER = Phase("browser", ["-m", "browser", "tests/browser"])
# Only the files with such tests: collecting the other tests of clients takes 3 s.
COMMANDS = Phase(
    "Kafka's commands",
    [
        *("-m", "kafka_commands"),
        *(
            str(file.relative_to(ROOT))
            for folder in ("clients", "ecosystem")
            for file in sorted(ROOT.glob(f"tests/{folder}/test_*.py"))
            if "pytest.mark.kafka_commands" in file.read_text()
        ),
    ],
)
SPARK = Phase("Spark", ["-m", "spark", "tests/spark"])


class Outcome(NamedTuple):
    """The result of a phase."""

    phase: Phase
    output: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class Suite:
    """Runs of all phases.

    Args:
        workers: Number of processes of the main phase.
        seed: The examples of Hypothesis and the order of Python's sets depend on it.
        options: Further arguments of each pytest process.
        unit_niceness: Priority of the unit tests beside the others.
    """

    def __init__(self, workers: int, seed: int, options: tuple[str, ...] = (), unit_niceness: int = 0) -> None:
        self._main = main_phase(workers)
        self._variables = {"PYTHONHASHSEED": str(seed)}
        self._options = ["--hypothesis-seed", str(seed), *options]
        self._unit_niceness = unit_niceness

    def run_unit_tests(self) -> list[Outcome]:
        """Run the unit tests."""
        outcomes = [self._run_phase(unit_phase(), is_shown=True)]
        self._print_end(outcomes)
        return outcomes

    def run(self) -> list[Outcome]:
        """Run all phases once, and print the parts that were skipped and the sums."""
        with ThreadPoolExecutor(3) as beside:
            shared = [
                beside.submit(self._run_spark),
                beside.submit(self._run_browser_and_commands),
                beside.submit(lambda: [self._run_phase(unit_phase(self._unit_niceness), is_shown=False)]),
            ]
            outcomes = [self._run_phase(self._main, is_shown=True)]
            if not all(lane.done() for lane in shared):
                print("waiting for unit tests, or those with a browser, Kafka's commands or Spark", flush=True)
            outcomes += [outcome for lane in shared for outcome in lane.result()]
        self._print_end(outcomes)
        return outcomes

    def command(self, phase: Phase) -> str:
        """Return the command that repeats a phase."""
        variables = " ".join(f"{name}={value}" for name, value in self._variables.items())
        return f"{variables} {shlex.join(['.venv/bin/pytest', *phase.arguments, *self._options])}"

    def _run_browser_and_commands(self) -> list[Outcome]:
        outcomes = [self._run_phase(BROWSER, is_shown=False)]
        subprocess.run(
            [sys.executable, "-m", "tools.clients.build", "kafka-tools", "kafka-broker"],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        return [*outcomes, self._run_phase(COMMANDS, is_shown=False)]

    def _run_spark(self) -> list[Outcome]:
        return [self._install_spark() or self._run_phase(SPARK, is_shown=False)] if HAS_SPARK else []

    def _install_spark(self) -> Outcome | None:
        try:
            install("spark")
        except subprocess.CalledProcessError:
            return Outcome(SPARK, "", failed=("PySpark was not installed; see above",))
        return None

    def _run_phase(self, phase: Phase, *, is_shown: bool) -> Outcome:
        with TemporaryDirectory() as folder:
            results = Path(folder, "outcomes.json")
            command = [sys.executable, "-m", "pytest", *phase.arguments, *self._options, "--outcomes", str(results)]
            output = None if is_shown else subprocess.PIPE
            with subprocess.Popen(
                command, cwd=ROOT, env=os.environ | self._variables, stdout=output, stderr=subprocess.STDOUT, text=True
            ) as done:
                if phase.niceness:
                    os.setpriority(os.PRIO_PROCESS, done.pid, phase.niceness)
                text, _ = done.communicate()
            found = [json.loads(file.read_text()) for file in Path(folder).iterdir()]
        failed = tuple(name for lane in found for name in lane["failed"])
        if done.returncode not in (0, NO_TESTS_COLLECTED) and not failed:
            failed = (f"{phase.name}: pytest ended with exit code {done.returncode}",)
        return Outcome(
            phase,
            text or "",
            sum(lane["passed"] for lane in found),
            failed,
            tuple(reason for lane in found for reason in lane["skipped"]),
        )

    def _print_end(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes[1:]:
            print(f"\n{outcome.phase.name}:\n{outcome.output}", flush=True)
        skipped = [part for outcome in outcomes for part in outcome.skipped]
        reasons = Counter(reason for reason in skipped if not reason.startswith("feature: "))
        lacking = len(skipped) - reasons.total()
        for reason, number in sorted(reasons.items()):
            print(f"skipped: {number} tests: {reason}")
        if lacking:
            print(f"skipped: {lacking} tests: feature: the client lacks it; docs/clients.md has the reasons")
        if outcomes[0].phase is self._main:
            print(*DESELECTED, *([] if HAS_SPARK else [f"skipped: tests/spark: {skips.JAVA}"]), sep="\n")
        failed = [name for outcome in outcomes for name in outcome.failed]
        for name in failed:
            print(f"failed: {name}")
        passed = sum(outcome.passed for outcome in outcomes)
        print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep cores busy with other processes."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def one_core() -> Iterator[None]:
    """Let this process and the processes that it starts use one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def stress(workers: int, runs: int, first_seed: int) -> bool:
    """Run the suite with random seeds, alternately beside busy processes and on one core, and report each failure.

    Returns:
        Whether no test failed in any run.
    """
    cores = os.cpu_count() or 1
    report = []
    for run in range(runs):
        seed = first_seed + run
        on_one_core = run % 2 == 1 and hasattr(os, "sched_setaffinity")
        load = "one core" if on_one_core else f"{cores} busy processes"
        print(f"stress: run {run + 1} of {runs}: --order-seed {seed}, {load}", flush=True)
        # With the others' priority: busy processes would leave them a tenth of their cores.
        suite = Suite(workers, seed, ("--order-seed", str(seed)))
        with one_core() if on_one_core else busy_processes(cores):
            outcomes = suite.run()
        report += [
            f"{name}\n    run {run + 1}, {load}: {suite.command(outcome.phase)}"
            for outcome in outcomes
            for name in outcome.failed
        ]
    print(f"stress: {runs} runs, {len(report)} failures", *report, sep="\n", flush=True)
    return not report


@click.command()
@click.option("--workers", default=WORKERS, show_default=True, envvar="WORKERS", help="Processes of the main phase.")
@click.option("--stress", "runs", type=int, help="Repetitions in random order under load.")
@click.option("--unit", is_flag=True, help="Run the unit tests only, with fewer examples of each property.")
@click.option("--order-seed", "seed", type=int, help="Seed of the first repetition. Default: random.")
def main(workers: int, runs: int | None, unit: bool, seed: int | None) -> None:
    """Run all tests."""
    random_seed = secrets.randbelow(SEEDS)
    if runs is not None:
        sys.exit(not stress(workers, runs, random_seed if seed is None else seed))
    if unit:
        outcomes = Suite(workers, random_seed, FEW_EXAMPLES).run_unit_tests()
    else:
        outcomes = Suite(workers, SEED_OF_TEST, FEW_EXAMPLES, UNIT_NICENESS).run()
    sys.exit(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    main()
