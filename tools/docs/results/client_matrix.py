"""Writes docs/clients.md and the short table of README.md, results of scenarios by client, from a test run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.clients.clients import CLIENTS
from tests.clients.driver import Driver
from tests.clients.scenarios import AREAS, SCENARIOS
from tools.docs.tables import line

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "clients.md"
README = ROOT / "README.md"
SHORT_BEGIN = "<!-- compatibility: written by `tools/campaign run client-matrix` -->\n"
SHORT_END = "<!-- end of compatibility -->\n"
HEAD = """# Client compatibility

This table shows which features of nine Kafka clients work with sluice. Use it to see what your client can test;
[Faults and clients](faults-clients.md) and [the audit](audit-matrix.md) show how clients handle failures.

"ok" means that a test with the real client passes, as it does with Apache Kafka 4.4. A number means that the client
lacks the feature, for the reason below the table. The tests are in `tests/clients/test_matrix.py`; `tools/campaign run
client-matrix` runs them and rewrites this page.
"""

STREAMS, STREAMS_HEAD = "kafka-streams", "## Kafka Streams"
# Titles of the scenarios in tests/clients/test_kafka_streams.py, by processing guarantee.
STREAMS_SCENARIOS = {
    "at_least_once": "word count of two instances, one killed",
    "exactly_once_v2": "exactly-once word count of two instances, one killed",
}

Results = Mapping[tuple[str, str], str]  # "ok", "fails", or why it was not run, by client and scenario


def reasons() -> list[str]:
    """Return the distinct reasons for unsupported scenarios; their positions are their numbers, from 1."""
    return list(dict.fromkeys(reason for client in CLIENTS for reason in client.unsupported.values()))


def rows(results: Results) -> list[list[str]]:
    """Return a row for each scenario: its title, then the cell of each client."""
    number = {reason: str(place) for place, reason in enumerate(reasons(), 1)}
    return [
        [scenario.title]
        + [
            number[client.unsupported[name]]
            if name in client.unsupported
            else results.get((client.name, name), "not run")
            for client in CLIENTS
        ]
        for name, scenario in SCENARIOS.items()
    ]


def render(results: Results, versions: Mapping[str, str]) -> str:
    heads = [f"{client.name}<br>{versions.get(client.name, 'not run')}" for client in CLIENTS]
    table = [line(["", *heads]), line(["---"] + [":-:"] * len(CLIENTS)), *(line(row) for row in rows(results))]
    notes = [f"{place}. The client {reason}.\n" for place, reason in enumerate(reasons(), 1)]
    streams = [
        line([f"`group.protocol=streams` (KIP-1071), {versions.get(STREAMS, 'not run')}", ""]),
        line(["---", ":-:"]),
        *(line([title, results.get((STREAMS, name), "not run")]) for name, title in STREAMS_SCENARIOS.items()),
    ]
    return "\n".join([HEAD, "".join(table), "".join(notes), f"{STREAMS_HEAD}\n", "".join(streams)])


def short_rows(results: Results) -> list[list[str]]:
    """Return the rows of the README's table: passed of supported scenarios, by area and client."""
    areas: list[list[str]] = []
    for name in SCENARIOS:
        if name in AREAS:
            areas.append([])
        areas[-1].append(name)
    titles = AREAS.values()
    return [
        [title, *(_tally(client, names, results) for client in CLIENTS)]
        for title, names in zip(titles, areas, strict=True)
    ]


def _tally(client: Driver, scenarios: Sequence[str], results: Results) -> str:
    has = [name for name in scenarios if name not in client.unsupported]
    return f"{sum(results.get((client.name, name)) == 'ok' for name in has)} of {len(has)}" if has else "none"


def with_short_table(readme: str, results: Results) -> str:
    """Return the README with the table of these results."""
    before, _, rest = readme.partition(SHORT_BEGIN)
    _, end, after = rest.partition(SHORT_END)
    assert end, f"README.md has no {SHORT_BEGIN.strip()} and {SHORT_END.strip()}"
    heads = ["", *(client.name for client in CLIENTS)]
    table = [line(heads), line(["---"] + [":-:"] * len(CLIENTS)), *(line(row) for row in short_rows(results))]
    return f"{before}{SHORT_BEGIN}{''.join(table)}{SHORT_END}{after}"


class TableWriter:
    """Collects the results of the client matrix, and writes the page at the end."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], str] = {}
        self._versions: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = {name: str(value) for name, value in report.user_properties}
        if "scenario" not in found or report.when != "call":
            return
        self._versions |= {found["client"]: found["version"]} if "version" in found else {}
        outcome = {"passed": "ok", "failed": "fails", "skipped": "not run"}[report.outcome]
        self._results[found["client"], found["scenario"]] = outcome

    def pytest_sessionfinish(self) -> None:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(render(self._results, self._versions))
        README.write_text(with_short_table(README.read_text(), self._results))
