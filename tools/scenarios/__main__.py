"""`python -m tools.scenarios [NAME...]`: run scenarios of the catalogue with real clients, and print the results.

Exit code 1: a scenario did not do what it claims.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import msgspec

from sluice.broker.scenarios.files import load, names
from sluice.broker.scenarios.report import RunReport
from sluice.broker.scenarios.timeline import broker_properties
from sluice.cli.admin_client import AdminClient
from sluice.cli.journal.export import JournalClient
from sluice.journal_events import decode
from tests.support.broker_process import overrides, running_broker
from tools.scenarios.claims import CLAIMS, Seen, problems
from tools.scenarios.workload import Observed, Workload

_RUN, _RUNS = "/api/v1/scenarios/run", "/api/v1/scenarios/runs"
_PATIENCE_S, _LOOK_EVERY_S = 15.0, 0.05


@dataclass
class Played:
    """The result of a run."""

    name: str
    took_s: float
    steps: int
    hits: int
    observed: Observed
    problems: list[str]


def play(name: str, folder: Path) -> Played:
    """Run a scenario with a producer and a consumer; logs go to the folder."""
    began = monotonic()
    scenario, claim = load(name), CLAIMS[name]
    properties = {"sluice.journal.events": "131072", **broker_properties(scenario)}
    given = overrides(*(f"{key}={value}" for key, value in properties.items()))
    with running_broker(folder / f"{name}.log", *given) as brokers:
        admin = AdminClient(brokers.admin, None)
        # Create the scenario's topics first, in a separate scenario: the clients must be running when it starts.
        topics = {"name": "topics", "brokers": scenario.brokers, "topics": msgspec.to_builtins(scenario.topics)}
        _run(admin, topics)
        workload = Workload(",".join(brokers.ready["brokers"]), claim.producer)
        try:
            workload.start(_PATIENCE_S)
            report = _run(admin, msgspec.to_builtins(scenario))
            ended = monotonic()
            workload.continue_until_accepted(ended, _PATIENCE_S)
            workload.finish(_PATIENCE_S)
        except AssertionError as error:  # a client that hangs
            return Played(name, monotonic() - began, 0, 0, workload.observed, [str(error)])
        journal = [decode(line) for line in JournalClient(brokers.admin, None).lines({})]
    seen = Seen(scenario, report, workload.observed, ended, journal)
    hits = sum(rule.hits for rule in report.rules)
    found = list(problems(seen, claim))
    return Played(name, monotonic() - began, len(report.steps), hits, workload.observed, found)


def _run(admin: AdminClient, document: object) -> RunReport:
    """Run the scenario to its end."""
    report = admin.post(_RUN, {"scenario": document}, RunReport)
    while not report.done:
        sleep(_LOOK_EVERY_S)
        report = admin.get(f"{_RUNS}/{report.id}", RunReport)
    return report


_AT_ONCE = 2  # runs mostly wait
_HEAD = ("scenario", "seconds", "steps", "hits", "written", "refused", "read", "lost", "")
_WIDTHS = (24, 8, 6, 6, 8, 8, 6, 5, 0)


def main(wanted: list[str]) -> int:
    """Run the scenarios and return the exit code."""
    failed = []
    print(_line(_HEAD))
    with TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as runs:
        for played in runs.map(lambda name: play(name, Path(folder)), wanted):
            print(_line(_cells(played)), flush=True)
            if played.problems:
                failed.append(played.name)
    print(f"{len(wanted) - len(failed)} as claimed, {len(failed)} not{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _cells(played: Played) -> tuple[object, ...]:
    observed = played.observed
    return (
        played.name,
        f"{played.took_s:.1f}",
        played.steps,
        played.hits,
        len(observed.acknowledged),
        len(observed.failed),
        len(observed.read),
        len(observed.lost),
        "; ".join(played.problems) or "as claimed",
    )


def _line(cells: tuple[object, ...]) -> str:
    name, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return " ".join([f"{name.strip():<{_WIDTHS[0]}}", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or names()))
