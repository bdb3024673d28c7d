"""The comparison of lint with audits."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sluice.audit.judge.model.observation import Observation
from sluice.audit.runs.observation_files import observation_file, write_observations
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, starts
from tools.lint.audits import contradictions, main

GROWING: Sequence[float] = (100, 200, 400, 800, 1000, 1000)
CONSTANT: Sequence[float] = (100,) * 6


def run(waits: Sequence[float], *, maximum_ms: float = 1000, repetition: int = 0) -> Observation:
    """Return a run in which batches fail with these waits; the client is to wait up to `maximum_ms`."""
    made = Journal()
    for sequence, from_ms in enumerate((0, 9000, 18_000)):
        for at_ms in starts(waits, from_ms=from_ms):
            made.batch(at_ms, at_ms + 1, sequence=sequence, errors=[19])
    settings = {**SETTINGS, "retry.backoff.max.ms": maximum_ms}
    return observed("produce-not-leader", made.events, settings=settings, repetition=repetition)


CONTRADICTIONS = {
    "both find growing waits": (GROWING, 1000, []),
    "both find constant waits": (CONSTANT, 1000, []),
    "the audit was configured to expect constant waits": (CONSTANT, 100, ["KIP-580/1 passes"]),
}


@pytest.mark.parametrize(("waits", "maximum_ms", "found"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_rule_contradicts_a_verdict_that_passes(waits: Sequence[float], maximum_ms: float, found: list[str]) -> None:
    runs = [run(waits, maximum_ms=maximum_ms, repetition=number) for number in range(2)]
    assert [each.audit for each in contradictions(runs)] == found * 2


def test_a_storm_is_one_for_both() -> None:
    made = Journal()
    for at_ms in starts((3,) * 250):
        made.batch(at_ms, at_ms + 1, sequence=0, errors=[19])
    assert list(contradictions([observed("produce-mute", made.events)])) == []


def test_the_exit_code_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = observation_file(tmp_path, 0)
    file.parent.mkdir()
    write_observations(file, [run(CONSTANT, maximum_ms=100)])
    assert main([str(tmp_path)]) == 1
    assert "1 runs, 1 contradictions" in capsys.readouterr().out
