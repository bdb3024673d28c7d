"""Additional runs for undecided verdicts, and recovery times of clients."""

import pytest

from sluice.audit.judge.model.observation import Observation, Role, SubjectInfo
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.probes import PROBES
from sluice.audit.runs.subject_audit import _more_runs, least_runs, recovered_after_ms
from sluice.audit.subjects import subject_of
from sluice.journal_events import Request
from tests.support import journal_lines


def verdict(state: State, runs_needed: int | None = None) -> Verdict:
    return Verdict(statement="KIP-580/1", state=state, why="", runs_needed=runs_needed)


PASSES, DEVIATES = verdict(State.PASS), verdict(State.DEVIATES)


VERDICTS = {
    "passes": (PASSES, None, 0),
    "deviates once: may be one bad minute": (DEVIATES, None, 1),
    "deviates again": (DEVIATES, DEVIATES, 0),
    "changed": (PASSES, DEVIATES, 1),
    "passes again": (PASSES, PASSES, 0),
    "needs three more": (verdict(State.INCONCLUSIVE, 3), None, 3),
    "is undecidable by more runs": (verdict(State.INCONCLUSIVE), DEVIATES, 0),
    "is unobservable": (verdict(State.NOT_OBSERVABLE), None, 0),
}


@pytest.mark.parametrize(("found", "before", "more"), VERDICTS.values(), ids=VERDICTS)
def test_verdict_that(found: Verdict, before: Verdict | None, more: int) -> None:
    assert _more_runs(found, before) == more


LEAST_RUNS = {
    "judged": ("sluice", "delivery-mute", 2),
    "without the judged settings, for findings": ("kafkajs", "delivery-mute", 1),
    "as often as needed anyway": ("kafkajs", "delivery-config", 1),
    "for findings only": ("kafkajs", "fetch-error", 2),
    "of a command, whose settings may become known": ("app {bootstrap}", "delivery-mute", 2),
}


@pytest.mark.parametrize(("subject", "probe", "runs"), LEAST_RUNS.values(), ids=LEAST_RUNS)
def test_least_runs_of_a_probe(subject: str, probe: str, runs: int) -> None:
    assert least_runs(PROBES[probe], subject_of(subject)) == runs


def produced(seq: int, at_ms: int, *codes: int, api: str = "Produce") -> Request:
    return journal_lines.produced(at_ms * 1_000_000, seq, error_codes=[*codes], api=api)


RECOVERIES = {
    "is from the end of the fault to the first success": (150, 250),
    "is unknown if the fault outlasted the run": (None, None),
    "is unknown without a success": (500, None),
}


@pytest.mark.parametrize(("until_ms", "recovered_ms"), RECOVERIES.values(), ids=RECOVERIES)
def test_recovery(until_ms: int | None, recovered_ms: float | None) -> None:
    observation = Observation(
        probe="p",
        subject=SubjectInfo(name="s", role=Role.PRODUCER),
        events=[produced(1, 100), produced(2, 200, 7), produced(3, 300, api="Metadata"), produced(4, 400)],
        fault_until_ns=None if until_ms is None else until_ms * 1_000_000,
    )
    assert recovered_after_ms(observation, Role.PRODUCER) == recovered_ms
