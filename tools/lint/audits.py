"""Compare lint with audits: `python -m tools.lint.audits REPORT...` lists contradictions in the journals of their runs.

A rule about conduct contradicts a verdict if it reports a client in a run that passed the statement about the same
conduct. Statements about configured constant waits are left out: there, the rule reports the configuration.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.audit.judge import findings, judge
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import FindingKind, State
from sluice.audit.runs.observation_files import read_observations
from sluice.lint.run import lint

# By rule: the statement about the same conduct, and what the evidence names if the rule is about several.
STATEMENTS_OF: Mapping[str, Sequence[tuple[str, str]]] = {
    "retries-without-growing-waits": [
        ("KIP-580/1", "retries Produce"),
        ("KIP-580/8", "retries Metadata"),
        ("KIP-580/10", "retries FindCoordinator"),
    ],
    "reconnects-without-growing-waits": [("KIP-144/1", "before it connects again")],
    "throttle-ignored": [("KIP-13/20", "")],
}
STORM = "retry-storm"  # has the threshold of the audit's finding


class Contradiction(NamedTuple):
    client: str
    probe: str
    repetition: int
    rule: str
    reports: str
    audit: str


def contradictions(observations: Iterable[Observation]) -> Iterator[Contradiction]:
    """Yield the contradictions in the runs of one client."""
    runs = sorted(observations, key=lambda run: (run.probe, run.repetition))
    passed: dict[str, bool] = {}

    def has_passed(statement: str) -> bool:
        if statement not in passed:
            probes = STATEMENTS[statement].probes
            of_probes = [run for run in runs if run.probe in probes]
            passed[statement] = bool(of_probes) and judge(statement, of_probes).state is State.PASS
        return passed[statement]

    for run in runs:
        if run.problem:
            continue
        for found in lint(run.events).findings:
            for evidence in found.evidence:
                where = run.subject.name, run.probe, run.repetition, found.rule, evidence.text
                for statement, says in STATEMENTS_OF.get(found.rule, ()):
                    if says in evidence.text and run.probe in STATEMENTS[statement].probes and has_passed(statement):
                        yield Contradiction(*where, f"{statement} passes")
                if found.rule == STORM and not any(each.kind is FindingKind.STORM for each in findings([run])):
                    yield Contradiction(*where, "no storm")


def main(reports: Iterable[str]) -> int:
    found, runs = 0, 0
    for report in reports:
        for file in sorted((Path(report) / "observations").iterdir()):
            observations = read_observations(file)
            runs += len(observations)
            for each in contradictions(observations):
                found += 1
                print(
                    f"{each.client}, {each.probe}, run {each.repetition + 1}: {each.rule}: {each.reports}; {each.audit}"
                )
    print(f"{runs} runs, {found} contradictions")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
