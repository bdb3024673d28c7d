"""`sluice run` without `--against`: brokers for one scenario, which stop at its end."""

import asyncio
import logging
from collections.abc import Sequence
from random import Random, SystemRandom  # noqa: TID251  (the single source of a run's randomness)

import click
from msgspec import UNSET

from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport, StepDone
from sluice.broker.scenarios.run import Run
from sluice.broker.scenarios.timeline import broker_properties
from sluice.cli.logs import set_up_logging
from sluice.cli.serve.run import SEEDS, listener_pairs, print_ready, stop_at_signals
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.web import load as load_page

from .text import step_line

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

    def print_step(step: StepDone) -> None:
        click.echo(step_line(step, run.duration_ms), err=True)

    run = Run(scenario, server, on_step=print_step, keep=True)  # nothing to restore: the brokers stop
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    click.echo(f"scenario {scenario.name}, seed {seed}: {scenario.description}", err=True)
    run.start()
    stop_at_signals(loop, run.stop)
    print_ready(server)  # after the initial topics of the scenario exist
    await run.wait()
    report = run.report()
    await server.stop()
    return report
