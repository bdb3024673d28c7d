"""The runs of `sluice run`: on brokers of its own, which stop at the end, or with `--against` on a running cluster."""

import asyncio
import logging
from collections.abc import Sequence
from random import Random, SystemRandom  # noqa: TID251  (the single source of a run's randomness)
from threading import Event

import click
import msgspec
from msgspec import UNSET

from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.broker.scenarios.durations import format_duration
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport, StepDone
from sluice.broker.scenarios.run import Run
from sluice.broker.scenarios.timeline import broker_properties
from sluice.cli.admin_client import AdminClient
from sluice.cli.logs import set_up_logging
from sluice.cli.serve.run import SEEDS, listener_pairs, print_ready, stop_at_signals
from sluice.cli.text_table import table
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.web import load as load_page


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


log = logging.getLogger("sluice.cli")

_JOURNAL = "sluice.journal.events=16384"  # includes each step


def run_scenario(
    scenario: Scenario, host: str | None, port: int | None, admin_port: int, overrides: Sequence[str], seed: int | None
) -> RunReport:
    set_up_logging("text")
    logging.getLogger("sluice").setLevel(logging.WARNING)  # the steps are printed instead
    own = [f"{name}={value}" for name, value in broker_properties(scenario).items()]
    config = Config.load(None, [_JOURNAL, *own, *overrides, *listener_pairs(host, port)])
    for warning in config.warnings:
        log.warning(warning)
    if seed is None:
        seed = SystemRandom().randrange(SEEDS) if scenario.seed is UNSET else scenario.seed
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_run(scenario, config, admin_port, seed))


async def _run(scenario: Scenario, config: Config, admin_port: int, seed: int) -> RunReport:
    loop = asyncio.get_running_loop()
    random = Random(seed)  # noqa: S311  (runs are repeatable)
    server = BrokerProcess(config, LoopClock(loop), random, loop, load_page)
    # Nothing to restore: the brokers stop.
    run = Run(scenario, server, on_step=lambda step: click.echo(step_line(step, run.duration_ms), err=True), keep=True)
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    click.echo(f"scenario {scenario.name}, seed {seed}: {scenario.description}", err=True)
    run.start()
    stop_at_signals(loop, run.stop)
    print_ready(server)  # after the initial topics of the scenario exist
    await run.wait()
    report = run.report()
    await server.stop()
    return report


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
