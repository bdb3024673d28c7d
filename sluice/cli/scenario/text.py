"""The output of a run: its steps, and a summary at the end."""

from sluice.broker.scenarios.durations import format_duration
from sluice.broker.scenarios.report import RunReport, StepDone
from sluice.cli.text_table import table
from sluice.text.json_text import json_text


def step_line(step: StepDone, duration_ms: float) -> str:
    line = f"[{step.at_ms / 1000:6.2f} / {duration_ms / 1000:g} s] {step.what}"
    return f"{line}: failed: {step.problem}" if step.problem else line


def summary(report: RunReport) -> str:
    count = len(report.problems)
    failed = f", {count} of which failed" if count else ""
    took = format_duration(round(report.elapsed_ms))
    end = f"scenario {report.scenario} {report.state} after {took}: {len(report.steps)} steps{failed}"
    rows = [(rule.id, rule.action, str(rule.matched), str(rule.hits), rule.problem) for rule in report.rules]
    return "\n".join([*table(("RULE", "ACTION", "MATCHED", "HITS", "PROBLEM"), rows), end] if rows else [end])


def as_json(report: RunReport) -> str:
    return json_text(report)
