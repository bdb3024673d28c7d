"""Find each bug of the gallery with several seeds, and look for failures of the fixed versions."""

import argparse
import sys
import time
from statistics import median

from sluice.explore.evaluation import in_this_process
from sluice.explore.execution import Options, execute
from sluice.explore.output.regression import repeated
from sluice.explore.search import search

from .gallery import BUGS

# Every bug must be found within so many runs.
_MOST_RUNS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.explore", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="number of searches for each bug")
    parser.add_argument("--runs", type=int, default=5000, help="number of runs of each fixed version")
    parser.add_argument("--bug", choices=BUGS, action="append", help="a bug; default: all")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.bug or BUGS:
        bug = BUGS[name]
        runs, times, marks = [], [], set()
        for seed in range(arguments.seeds):
            options = Options(bug.invariants, seed=seed)
            began = time.perf_counter()
            result = search(in_this_process(bug.naive, options), _MOST_RUNS, seed)
            times.append(time.perf_counter() - began)
            runs.append(result.runs)
            found = result.found
            if found is None or not found.schedule.injections:
                print(f"{name}: seed {seed}: not found in {result.runs} runs")
                failed += 1
            elif execute(bug.naive, found.schedule, options).error != found.outcome.error:
                print(f"{name}: seed {seed}: another outcome when it was repeated: {repeated(found.schedule)}")
                failed += 1
            else:
                marks.add(f"{len(found.schedule.injections)}: {repeated(found.schedule)}")
        print(
            f"{name}: found after {median(runs)} runs ({min(runs)} to {max(runs)}), {median(times):.1f} s", flush=True
        )
        print(*sorted(marks), sep="\n")
        began = time.perf_counter()
        fixed = search(in_this_process(bug.fixed, Options(bug.invariants)), arguments.runs, seed=0)
        rate = fixed.runs / (time.perf_counter() - began)
        print(f"{name}: fixed version, {fixed.runs} runs at {rate:.1f}/s{'' if fixed.found else ': no failure'}")
        if fixed.found is not None:
            print(f"  {repeated(fixed.found.schedule)}: {fixed.found.outcome.error}")
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
