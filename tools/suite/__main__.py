"""How long a test suite takes: `python -m tools.suite [NAME=COMMAND...]`, or `tools/campaign run suite` with peers.

A test creates a topic, produces 100 records, consumes them in a group, commits and closes. Each client runs the tests
with a new SyncBroker per test, with one that is reset, with `sluice serve`, and with each command (processes.py). A
name that ends with `!` is a broker without CreateTopics. The brokers take turns; the process of the client is always
new.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tools.suite.clients import CLIENTS
from tools.suite.processes import SLUICE, NotReadyError, cpu_s, running

_SECONDS_PER_TEST = 4  # a client that needs more does not work with the broker
_TIMED_OUT = 124  # status of timeout(1)
_EMBEDDED = ("new", "reset")

Row = dict[str, object]


def run_cell(client: str, name: str, broker: str, tests: int) -> Row:
    command = [sys.executable, "-W", "ignore", "-m", "tools.suite.cell", client, broker, f"--tests={tests}"]
    if name.endswith("!"):
        command.append("--auto-create")
    limit_s = tests * _SECONDS_PER_TEST
    result = subprocess.run(["timeout", str(limit_s), *command], capture_output=True, check=False)  # ends Java, too
    if result.returncode == _TIMED_OUT:
        return {"client": client, "broker": name, "problem": f"not done after {limit_s} s"}
    if result.returncode:
        return {"client": client, "broker": name, "problem": result.stderr.decode().strip().rpartition("\n")[2]}
    figures: Row = json.loads(result.stdout)
    return figures | {"broker": name}


def run_with_process(client: str, name: str, command: str, tests: int) -> Row:
    try:
        with running(command) as (bootstrap, pid):
            before_s = cpu_s(pid)
            row = run_cell(client, name, bootstrap, tests)
            return row | {"broker_cpu_s": round(cpu_s(pid) - before_s, 3)}
    except NotReadyError as problem:
        return {"client": client, "broker": name, "problem": str(problem)}


def measure(arguments: argparse.Namespace) -> Iterator[Row]:
    commands = {"process": SLUICE} | dict(one.split("=", 1) for one in arguments.commands)
    names = [*_EMBEDDED, *commands]
    for repetition in range(arguments.repetitions):
        turn = repetition % len(names)
        for client in arguments.client or CLIENTS:
            for name in names[turn:] + names[:turn]:
                if name in _EMBEDDED:
                    row = run_cell(client, name, name, arguments.tests)
                else:
                    row = run_with_process(client, name, commands[name], arguments.tests)
                yield row | {"repetition": repetition}


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the medians of seconds, and of the broker's CPU seconds, by client and broker."""
    for figure in ("seconds", "broker_cpu_s"):
        yield figure
        for client, name in dict.fromkeys((str(row["client"]), str(row["broker"])) for row in rows):
            found = [row for row in rows if (row["client"], row["broker"]) == (client, name)]
            values = [float(str(row[figure])) for row in found if "problem" not in row]
            problems = {str(row["problem"]) for row in found if "problem" in row}
            shown = f"{statistics.median(values):8.2f} ({min(values):.2f} to {max(values):.2f})" if values else ""
            yield f"  {client:<16} {name:<8} {shown}{'; '.join(problems)}"


def main() -> None:
    """Measure, and print a line of JSON for each cell, and a table."""
    parser = argparse.ArgumentParser(prog="python -m tools.suite", description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="NAME=COMMAND")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=1)
    rows = []
    for row in measure(parser.parse_args()):
        rows.append(row)
        print(json.dumps(row), flush=True)
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    main()
