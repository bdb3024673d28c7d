"""What is printed of a run: each step as it is done, and at the end what came of it."""

import msgspec

from sluice.broker.scenarios.durations import in_words
from sluice.broker.scenarios.report import RunReport, StepDone


def step_line(step: StepDone, duration_ms: float) -> str:
    """A step that was done, and how far the scenario is."""
    line = f"[{step.at_ms / 1000:6.2f} / {duration_ms / 1000:g} s] {step.what}"
    return f"{line}: failed: {step.problem}" if step.problem else line


def summary(report: RunReport) -> str:
    """The end of a run, for people."""
    count = len(report.problems)
    failed = f", {count} of which failed" if count else ""
    took = in_words(round(report.elapsed_ms))
    return f"scenario {report.scenario} {report.state} after {took}: {len(report.steps)} steps{failed}"


def as_json(report: RunReport) -> str:
    """The same for machines."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
