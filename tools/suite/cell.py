"""Run tests of one client against one broker, and print the figures as a line of JSON.

    python -m tools.suite.cell CLIENT new|reset|HOST:PORT

`new` starts a SyncBroker for each test, `reset` one that is reset after each test; HOST:PORT is a running broker. With
`new` and `reset`, the journal shows how much of each phase the client waited for the broker.
"""

import argparse
import json
import threading
import time

from sluice import SyncBroker
from tools.suite.clients import CLIENTS, Run
from tools.suite.figures import Figures


def run_new(run: Run, tests: int, figures: Figures) -> None:
    for number in range(tests):
        broker = SyncBroker()
        with figures.timed("start"):
            broker.__enter__()
        _run_embedded(run, broker, number, figures)
        with figures.timed("stop"):
            broker.__exit__(None, None, None)


def run_reset(run: Run, tests: int, figures: Figures) -> None:
    with SyncBroker() as broker:
        for number in range(tests):
            _run_embedded(run, broker, number, figures)
            with figures.timed("reset"):
                broker.reset()


def _run_embedded(run: Run, broker: SyncBroker, number: int, figures: Figures) -> None:
    (thread,) = [each for each in threading.enumerate() if each.name == "sluice"]
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    bootstrap = broker.bootstrap
    cpu_ns, begin = time.clock_gettime_ns(clock), time.time_ns()
    ends = run(bootstrap, f"suite-{number}", True)
    figures.broker_cpu_ns += time.clock_gettime_ns(clock) - cpu_ns
    figures.add_test(begin, ends, broker.journal.requests())


def run_against(run: Run, tests: int, figures: Figures, bootstrap: str, *, creates: bool) -> None:
    started = time.time_ns()
    for number in range(tests):
        begin = time.time_ns()
        figures.add_test(begin, run(bootstrap, f"suite-{started}-{number}", creates), ())


def main() -> None:
    """Run the tests."""
    parser = argparse.ArgumentParser(prog="python -m tools.suite.cell", description=__doc__)
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("broker", metavar="new|reset|HOST:PORT")
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--auto-create", action="store_true", help="for a broker without CreateTopics")
    arguments = parser.parse_args()
    run, figures = CLIENTS[arguments.client](), Figures()
    if arguments.broker == "new":
        run_new(run, arguments.tests, figures)
    elif arguments.broker == "reset":
        run_reset(run, arguments.tests, figures)
    else:
        run_against(run, arguments.tests, figures, arguments.broker, creates=not arguments.auto_create)
    print(json.dumps({"client": arguments.client, "broker": arguments.broker} | figures.as_json(arguments.tests)))


if __name__ == "__main__":
    main()
