"""`sluice demo`.

trace.py explains cycles, and why rates are averages over whole cycles.
"""

import asyncio
import json
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec

import click
from rich.console import Console

from sluice.cli.commands import Command
from sluice.cli.options import format_option
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.embedded.sync_broker import SyncBroker
from sluice.errors import SluiceError

from .metrics import read_metrics
from .screen import Screen, open_screen, print_summary
from .trace import FETCH, PRODUCE, Client, Trace
from .verdict import SHORTEST_S, Result, as_json, bursts_within, judge

_QUOTAS = {"quota.producer.default": "1M", "quota.producer.override": "gold:4M", "quota.consumer.default": "2M"}
_TICK_S = 0.25  # four updates a second cost a percent of a core
_TICKS_PER_SCRAPE = 4  # once a second: the broker's metrics change no faster
_WAIT_FOR_BURST_MS = 3000.0  # for a last cycle that is nearly complete


@click.command(cls=Command)
@click.option(
    "--seconds",
    type=int,
    default=35,
    show_default=True,
    help=f"Run time in seconds, at least {SHORTEST_S}; up to 3 s longer to complete a cycle.",
)
@format_option
def demo(seconds: int, output_format: str) -> None:
    """Throttle real clients and check their rates.

    Runs its own broker. Exits with 0 only if every throttled client reached its quota within 5 %, and the client below
    its quota was never throttled. With json, stdout has only the summary, and progress goes to stderr.
    """
    if seconds < SHORTEST_S:
        message = f"expected at least {SHORTEST_S} s, got {seconds}"
        raise click.BadParameter(message, param_hint="--seconds")
    if not (find_spec("aiokafka") and find_spec("kafka")):
        raise click.ClickException("the demo's clients are not installed; run pip install 'kafka-sluice[demo]'")
    clients = _clients()
    try:
        with _silent_libraries():
            results, started_ms = asyncio.run(_run(clients, seconds, Console(stderr=output_format == "json")))
    except asyncio.CancelledError:
        raise click.ClickException("stopped by a signal") from None
    if output_format == "json":
        click.echo(json.dumps(as_json(results, started_ms), indent=2))
    else:
        print_summary(Console(), results, started_ms)
    if any(result.problems for result in results):
        raise click.exceptions.Exit(1)


def _clients() -> list[Client]:
    config = Config.of(_QUOTAS)
    produce, fetch = config.rate("quota.producer.default"), config.rate("quota.consumer.default")
    assert produce is not None
    assert fetch is not None
    gold = config.rates("quota.producer.override")["gold"]
    return [
        Client("bronze", "aiokafka", PRODUCE, produce, Trace()),
        Client("gold", "aiokafka", PRODUCE, gold, Trace()),
        Client("reader", "aiokafka", FETCH, fetch, Trace()),
        Client("steady", "kafka-python", PRODUCE, produce, Trace(), exceeds_quota=False),
    ]


@contextmanager
def _silent_libraries() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


async def _run(clients: list[Client], seconds: int, console: Console) -> tuple[list[Result], float]:
    from .clients import RUN

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):  # asyncio handles SIGINT
        loop.add_signal_handler(number, task.cancel)
    clock = LoopClock(loop)
    with SyncBroker(config=_QUOTAS, admin_port=0) as broker:  # in its own thread, and without the environment's KAFKA_*
        admin = str(broker.admin)
        # The first scrape loads the broker's HTTP stack, which must not happen during the first burst.
        await asyncio.to_thread(read_metrics, admin)
        started_ms = clock.monotonic_ms()
        tasks = {asyncio.create_task(RUN[client.name](client, broker.bootstrap, clock)): client for client in clients}
        try:
            where = f"broker at {broker.bootstrap}, page at {admin}/"
            with open_screen(console, clients, where, started_ms, seconds) as screen:
                await _watch(tasks, admin, clock, screen, partial(_is_over, clients, started_ms, seconds))
        finally:
            for running in tasks:
                running.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        scrape = await asyncio.to_thread(read_metrics, admin)
    return [judge(client, scrape.throttle_s(client.kind, client.name)) for client in clients], started_ms


async def _watch(
    tasks: Mapping["asyncio.Task[None]", Client],
    admin: str,
    clock: LoopClock,
    screen: Screen,
    is_over: Callable[[float], bool],
) -> None:
    """Raise SluiceError if a client ends early."""
    tick = 0
    while not is_over(clock.monotonic_ms()):
        if tick % _TICKS_PER_SCRAPE == 0:
            scrape = await asyncio.to_thread(read_metrics, admin)
        screen.show(scrape, clock.monotonic_ms())
        tick += 1
        ended, _ = await asyncio.wait(tasks, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            raise SluiceError(f"{tasks[task].name} ended: {task.exception()!r}")


def _is_over(clients: list[Client], started_ms: float, seconds: int, now_ms: float) -> bool:
    over_ms = now_ms - started_ms - seconds * 1e3
    if not 0 <= over_ms < _WAIT_FOR_BURST_MS:
        return over_ms >= 0
    throttled = [client for client in clients if client.exceeds_quota]
    return all(len(client.trace.burst_starts(client.quota)) >= bursts_within(seconds) for client in throttled)
