"""Runs in several processes: the same result as in one, and programs that end their process."""

import os

import pytest

from sluice.errors import ArgumentError, ExploreError
from sluice.explore import AtLeastOnce, Run, evaluation, explore
from sluice.explore.evaluation import evaluating
from sluice.explore.execution import Options
from sluice.explore.search import Result, search
from tests.unit.sluice.explore.test_explore import consuming

RESULTS = {"a failure is found": (True, 60), "no failure is found": (False, 8)}


@pytest.mark.parametrize(("commits_first", "runs"), RESULTS.values(), ids=RESULTS)
def test_several_processes_have_the_same_result(commits_first: bool, runs: int) -> None:
    def result(jobs: int) -> Result:
        program, options = consuming(commits_first=commits_first), Options([AtLeastOnce("orders")])
        with evaluating(program, options, jobs) as evaluate:
            return search(evaluate, runs, seed=1)

    found = result(1)
    assert (found.found is not None) == commits_first
    assert result(2) == result(3) == found


async def exiting(run: Run) -> None:
    os._exit(3)


def test_program_that_ends_its_process_is_reported() -> None:
    with pytest.raises(ExploreError, match="the program ended its process; run it with jobs=1 to see how"):
        explore(exiting, jobs=2)


def test_system_without_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ArgumentError, match="jobs: expected 1, because this system cannot fork processes, got 2"):
        explore(exiting, jobs=2)
