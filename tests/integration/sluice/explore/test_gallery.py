"""The applications of tools/explore: each bug is found, reduced and repeated, and each fixed version survives."""

import pytest

from sluice.explore.evaluation import in_this_process
from sluice.explore.execution import Options, execute
from sluice.explore.search import search
from tools.explore.gallery import BUGS, Bug

# Each bug is found within 40 runs.
_RUNS, _FIXED_RUNS, _MOST_FAILURES = 100, 12, 2

each_bug = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)


@each_bug
def test_bug_is_found_and_repeated(bug: Bug) -> None:
    options = Options(bug.invariants)
    found = search(in_this_process(bug.naive, options), _RUNS, seed=0).found
    assert found is not None
    assert 1 <= len(found.schedule.injections) <= _MOST_FAILURES
    assert execute(bug.naive, found.schedule, options).error == found.outcome.error
    assert execute(bug.fixed, found.schedule, options).error == "", "the fixed version survives"


@each_bug
def test_fixed_version_survives(bug: Bug) -> None:
    assert search(in_this_process(bug.fixed, Options(bug.invariants)), _FIXED_RUNS, seed=0).found is None
