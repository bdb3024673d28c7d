"""What `sluice run` does without `--against`: brokers for one scenario, which end with it."""

import asyncio
import logging
from collections.abc import Sequence
from random import Random, SystemRandom  # noqa: TID251  (a run's one source of chance is made here)

import click
from msgspec import UNSET

from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport, StepDone
from sluice.broker.scenarios.run import Run
from sluice.broker.scenarios.timeline import broker_properties
from sluice.cli.logs import set_up_logging
from sluice.cli.serve.run import SEEDS, listener_pairs, print_ready, stop_by_signal
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.web import load as load_page

from .text import step_line

log = logging.getLogger("sluice.cli")

_JOURNAL = "sluice.journal.events=16384"  # in which each step stands


def run_scenario(
    scenario: Scenario, host: str | None, port: int | None, admin_port: int, overrides: Sequence[str], seed: int | None
) -> RunReport:
    """Runs it to its end, or until SIGINT or SIGTERM. Raises SluiceError where the brokers cannot be started."""
    set_up_logging("text")
    logging.getLogger("sluice").setLevel(logging.WARNING)  # of what else happens, the steps are told
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
    random = Random(seed)  # noqa: S311  (a test broker wants to be repeatable)
    server = BrokerProcess(config, LoopClock(loop), random, loop, load_page)

    def print_step(step: StepDone) -> None:
        click.echo(step_line(step, run.duration_ms), err=True)

    run = Run(scenario, server, on_step=print_step, keep=True)  # the brokers end with it
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    click.echo(f"scenario {scenario.name}, seed {seed}: {scenario.description}", err=True)
    run.start()
    stop_by_signal(run.stop)
    print_ready(server)  # with the topics that the scenario has from the beginning
    await run.wait()
    report = run.report()
    await server.stop()
    return report
