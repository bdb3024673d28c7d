"""The mutation check: campaign `mutation`.

Samples mutants and runs unit tests on each, in a copy of the tree: first the tests of its module, then those of its
folder, then the others that execute the changed line, or all others, if it runs at import. Reports the mutants that no
test kills. Given names of mutants, runs all unit tests on each of them.

A run without a mutant records which tests execute which lines. A line that runs once per process, for example in a
cached function, is recorded for one test.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from queue import SimpleQueue

import click
from coverage import Coverage, CoverageData

from tools.mutation.mutants import PACKAGES, ROOT, Mutant, by_name, sample

BUILD = ROOT / "build" / "mutation"
UNIT = Path("tests/unit")
# A test that neither ends nor uses processor time. The plugin limits that, so a busy machine changes no outcome.
TEST_LIMIT_S = 1800
NOT_FOUND = 4  # pytest's exit code for unknown test ids
LEAST_KILLED = 0.9
NOT_IN_COPIES = shutil.ignore_patterns(".*", "build", "dist")


def pytest(copy: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a copy, with the same test ids each time."""
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONHASHSEED": "0", **environment}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutation.plugin"]
    options = ["--hypothesis-profile", "mutants", "--hypothesis-seed", "0", "--timeout", str(TEST_LIMIT_S), "--tb=line"]
    return subprocess.run([*command, *options, *arguments], cwd=copy, env=variables, text=True, capture_output=True)


def recorded_coverage(copy: Path, workers: int) -> CoverageData:
    """Return which tests execute which lines: from the last campaign, if no file has changed since."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(copy.rglob("*.py"))))
    file = BUILD / f"{digest.hexdigest()[:16]}.coverage"
    if not file.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        data_file = str(copy / ".coverage")
        done = pytest(copy, str(UNIT), "-n", str(workers), MUTATION_COVERAGE=data_file)
        if done.returncode:
            sys.exit(f"{UNIT}: failures without a mutant; expected none\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        Coverage(data_file=data_file).combine([str(copy)])
        shutil.move(data_file, file)
    data = CoverageData(str(file))
    data.read()
    return data


def executing_tests(coverage: CoverageData, mutant: Mutant) -> list[str] | None:
    """Return the tests that execute a mutated statement; None if it runs at import."""
    if mutant.lines is None:
        return None
    file = next((file for file in coverage.measured_files() if file.endswith(f"/{mutant.path}")), "")
    by_line = coverage.contexts_by_lineno(file)
    return sorted({context for line in mutant.lines for context in by_line.get(line, [])} - {""})


def stages(mutant: Mutant, tests: list[str] | None) -> list[list[str]]:
    """Return arguments for up to three runs of pytest."""
    mirrored = UNIT / mutant.path
    module = mirrored.with_name(f"test_{mirrored.name}")
    folder = next(parent for parent in mirrored.parents if (ROOT / parent).exists())
    others = [str(UNIT)] if tests is None else [test for test in tests if not test.startswith(f"{folder}/")]
    first = [[str(module)]] if (ROOT / module).exists() else []
    return [*first, [str(folder)], *([others] if others else [])]


def check(mutant: Mutant, tests: list[str] | None, copies: SimpleQueue[Path]) -> str:
    """Return the outcome of the tests of a mutant."""
    if tests == []:
        return "executed by no unit test"
    copy = copies.get()
    file, arguments = copy / mutant.path, copy / "arguments.txt"
    before = file.stat()
    file.write_text(mutant.mutated)
    try:
        for stage in stages(mutant, tests):
            arguments.write_text("\n".join(stage))
            done = pytest(copy, "-x", f"@{arguments}", PYTHONDONTWRITEBYTECODE="1")
            if done.returncode == NOT_FOUND:  # ids contain values of the mutant
                arguments.write_text("\n".join({test.split("::")[0]: None for test in stage}))
                done = pytest(copy, "-x", f"@{arguments}", PYTHONDONTWRITEBYTECODE="1")
            if done.returncode:
                is_endless = done.returncode == -signal.SIGPROF or "Failed: Timeout (>" in done.stdout
                return "killed by the time limit" if is_endless else "killed"
    finally:
        file.write_text(mutant.source)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # compiled originals are valid again
        copies.put(copy)
    return "survived"


@click.command()
@click.option("--mutants", default=200, show_default=True, help="Number of mutants to sample.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@click.option("--workers", default=2, show_default=True, help="Number of parallel test runs.")
@click.argument("names", nargs=-1)
def main(mutants: int, seed: int, workers: int, names: tuple[str, ...]) -> None:
    """Sample mutants and run the unit tests on each, or run all of them on the mutants NAMES."""
    os.nice(10)
    sampled = [by_name(name) for name in names] or sample(mutants, seed)
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        first = shutil.copytree(ROOT, Path(folder) / "0", symlinks=True, ignore=NOT_IN_COPIES)
        tests: list[list[str] | None] = [None for _ in sampled]
        if not names:
            coverage = recorded_coverage(first, workers)
            tests = [executing_tests(coverage, mutant) for mutant in sampled]
        for number in range(1, workers):
            copies.put(shutil.copytree(first, Path(folder) / str(number), symlinks=True))
        copies.put(first)
        with ThreadPoolExecutor(workers) as pool:
            outcomes = pool.map(check, sampled, tests, repeat(copies))
            failed = report(zip(sampled, outcomes, strict=True), seed)
    sys.exit(failed)


def report(results: Iterator[tuple[Mutant, str]], seed: int) -> bool:
    """Print survivors as they are found, then the rates, and return whether fewer than 90 % were killed."""
    killed, total = Counter[str](), Counter[str]()
    for mutant, outcome in results:
        package = next(package for package in PACKAGES if mutant.path.startswith(f"{package}/"))
        for row in (package, "all"):
            total[row] += 1
            killed[row] += outcome.startswith("killed")
        print(f"{outcome}: {mutant.name}", flush=True)
        if not outcome.startswith("killed"):
            print(f"{mutant.diff}    reproduce: python -m tools.mutation {mutant.name}\n", flush=True)
    print(f"mutants killed by {UNIT}, seed {seed}:")
    for row in (*PACKAGES, "all"):
        print(f"{row:18}{killed[row]:5} of {total[row]:4}  {killed[row] / max(total[row], 1):6.1%}")
    return killed["all"] < total["all"] * LEAST_KILLED


main()
