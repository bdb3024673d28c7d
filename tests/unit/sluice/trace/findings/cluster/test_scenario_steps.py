"""Steps of scenarios that failed."""

from typing import Any

import pytest

from sluice.journal_events import ScenarioStep
from sluice.trace.findings.faults import scenario_steps as find
from tests.support.journals import Journal
from tests.support.trace_findings import found

STEPS = {"failed": ("no such broker", ["A step of scenario s failed: stop broker 9"]), "done": ("", [])}


@pytest.mark.parametrize(("problem", "titles"), STEPS.values(), ids=STEPS)
def test_steps(problem: str, titles: list[str]) -> None:
    def make(journal: Journal) -> None:
        step: dict[str, Any] = {"run": "1", "scenario": "s", "step": "steps[0].stop", "what": "stop broker 9"}
        journal.of_cluster(ScenarioStep, 1, problem=problem, **step)

    findings = found(find, make)
    assert [one.title for one in findings] == titles
    assert all(one.text == "steps[0].stop: no such broker" for one in findings)
