"""Steps of scenarios that failed."""

from collections.abc import Iterator

from sluice.journal_events import ScenarioStep
from sluice.trace.findings.history import Found, History


def find(history: History) -> Iterator[Found]:
    for event in history.of(ScenarioStep):
        if event.problem:
            title = f"A step of scenario {event.scenario} failed: {event.what}"
            text = f"{event.step}: {event.problem}" if event.step else event.problem
            yield Found("scenario-step-failed", "error", title, text, event.at_ns, [event.seq], [event.scenario])
