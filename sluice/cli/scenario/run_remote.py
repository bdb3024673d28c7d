"""`sluice run --against`."""

from threading import Event

import click
import msgspec

from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport
from sluice.cli.admin_client import AdminClient

from .text import step_line

_LOOK_EVERY_S = 0.1


def run_against(client: AdminClient, scenario: Scenario, *, keep: bool) -> RunReport:
    """Run to the end; an interrupt stops the scenario. Raises SluiceError if it cannot start."""
    wanted = {"scenario": msgspec.to_builtins(scenario), "keep": keep}
    report = client.post("/api/v1/scenarios/run", wanted, RunReport)
    path = f"/api/v1/scenarios/runs/{report.id}"
    click.echo(f"scenario {scenario.name}, {report.id}: {scenario.description}", err=True)
    for difference in report.differences:
        click.echo(f"the cluster differs from the scenario's: {difference}", err=True)
    printed = 0
    pause = Event()
    while True:
        for step in report.steps[printed:]:
            click.echo(step_line(step, report.duration_ms), err=True)
        printed = len(report.steps)
        if report.done:
            return report
        try:
            pause.wait(_LOOK_EVERY_S)
            report = client.get(path, RunReport)
        except KeyboardInterrupt:
            report = client.delete(path, RunReport)
