"""What is printed of a run: each step as it is done, and at the end what came of it."""

from sluice.broker.scenarios.durations import format_duration
from sluice.broker.scenarios.report import RunReport, StepDone
from sluice.cli.text_table import table
from sluice.text.json_text import json_text


def step_line(step: StepDone, duration_ms: float) -> str:
    """A step that was done, and how far the scenario is."""
    line = f"[{step.at_ms / 1000:6.2f} / {duration_ms / 1000:g} s] {step.what}"
    return f"{line}: failed: {step.problem}" if step.problem else line


def summary(report: RunReport) -> str:
    """The end of a run, for people."""
    count = len(report.problems)
    failed = f", {count} of which failed" if count else ""
    took = format_duration(round(report.elapsed_ms))
    end = f"scenario {report.scenario} {report.state} after {took}: {len(report.steps)} steps{failed}"
    rows = [(rule.id, rule.action, str(rule.matched), str(rule.hits), rule.problem) for rule in report.rules]
    return "\n".join([*table(("RULE", "ACTION", "MATCHED", "HITS", "PROBLEM"), rows), end] if rows else [end])


def as_json(report: RunReport) -> str:
    """The same for machines."""
    return json_text(report)
