"""The tables of docs/testing.md: the awaited members, and the exceptions."""

import inspect
import re
from pathlib import Path

import sluice
from sluice import Broker
from sluice.embedded.client import LocalClient
from sluice.embedded.cluster_control import ClusterControl
from sluice.embedded.fault_control import LocalFault, LocalFaults
from sluice.embedded.quota_control import LocalQuota
from sluice.embedded.scenario_control import LocalScenario

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
_NAMES = re.compile(r"`(\w+)`")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table in a section, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def awaited(cls: type) -> set[str]:
    members = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
    return {name for name, member in members.items() if inspect.iscoroutinefunction(member)}


def test_table_lists_the_awaited_members() -> None:
    listed = {name for row in rows("Members of a broker") for name in _NAMES.findall(row[1])}
    classes = (Broker, ClusterControl, LocalClient, LocalScenario, LocalFaults, LocalFault, LocalQuota)
    assert listed == set().union(*map(awaited, classes))


def test_table_lists_each_exception() -> None:
    listed = {name for row in rows("Errors") for name in _NAMES.findall(row[0])}
    assert listed == {name for name in sluice.__all__ if name.endswith(("Error", "Exception"))}
