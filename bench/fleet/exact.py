"""`make bench-fleets`: how much faster than real time aiokafka's producers and the broker run in virtual time.

Each producer sends a record per second (linger_ms=0) to one of three brokers, of which one is killed from 10 s to 30 s.
The warm-up of 35 s is part of the run; imports are not. Each run has its own process.
"""

import argparse
import statistics
import subprocess
import sys
import time

import aiokafka  # noqa: F401  (its import is not measured)

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.exact.run import WARM_UP_S, run_exact
from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import AIOKAFKA

RUNS = ((10, 600), (1000, 60))  # clients, and the scenario's seconds


def measure(clients: int, seconds: int) -> float:
    """Return virtual seconds per second."""
    steps = [{"at": "10s", "kill": 1, "during": "20s"}]
    scenario = scenario_of({"name": "bench", "brokers": 3, "duration": f"{seconds}s", "steps": steps})
    began = time.perf_counter()
    run_exact([Group("aiokafka", AIOKAFKA, clients)], scenario, seed=1)
    return (WARM_UP_S + seconds) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet.exact", description=__doc__)
    parser.add_argument("--reps", type=int, default=7, metavar="N", help="Runs of each fleet; default: 7.")
    parser.add_argument("--run", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(measure(*arguments.run))
        return
    for clients, seconds in RUNS:
        command = [sys.executable, "-m", "bench.fleet.exact", "--run", str(clients), str(seconds)]
        found = [float(subprocess.check_output(command, text=True)) for _ in range(arguments.reps)]
        low, median, high = min(found), statistics.median(found), max(found)
        print(f"{clients} clients, {seconds} s: {median:.1f} times real time ({low:.1f} to {high:.1f})", flush=True)


if __name__ == "__main__":
    main()
