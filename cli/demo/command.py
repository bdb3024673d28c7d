"""`sluice demo`: throttles real clients for 35 s, and checks that each got what its quota says.

A broker of its own with three of KIP-13's properties, and four clients side by side. What a cycle is, and why the rates
are averages over whole ones, is told in trace.py.
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
from sluice.errors import SluiceError

from .broker import DemoBroker, running_broker
from .screen import Screen, open_screen, print_summary
from .trace import FETCH, PRODUCE, Client, Trace
from .verdict import SHORTEST_S, Result, as_json, bursts_within, judge

_OVERRIDES = ("quota.producer.default=1M", "quota.producer.override=gold:4M", "quota.consumer.default=2M")
_JOURNAL = "sluice.journal.events=16384"  # for who watches the page meanwhile
_TICK_S = 0.25  # four times a second looks alive and costs a percent of a core
_TICKS_PER_SCRAPE = 4  # a second: what the broker tells moves no faster
_WAIT_FOR_BURST_MS = 3000.0  # a last cycle that is nearly whole is waited for: bursts are 11 to 12 s apart


@click.command(cls=Command)
@click.option(
    "--seconds",
    type=int,
    default=35,
    show_default=True,
    help=f"How long the clients run, {SHORTEST_S} or more; up to 3 s are added for a cycle that is nearly whole.",
)
@format_option
def demo(seconds: int, output_format: str) -> None:
    """Throttles real clients and checks what they got.

    Starts a broker of its own, and stops it. Exits with 0 only if every throttled client got its quota, give or take
    5 %, and the client that asks for less than its quota was never throttled. With json the summary has stdout to
    itself: what is shown before goes to stderr.
    """
    if seconds < SHORTEST_S:
        message = f"{seconds} s are too short to judge: must be {SHORTEST_S} or more"
        raise click.BadParameter(message, param_hint="--seconds")
    if not (find_spec("aiokafka") and find_spec("kafka")):
        raise click.ClickException("the clients of the demo are not installed: pip install 'kafka-sluice[demo]'")
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
    config = Config.load(overrides=_OVERRIDES)
    produce, fetch = config.rate("quota.producer.default"), config.rate("quota.consumer.default")
    assert produce is not None
    assert fetch is not None
    gold = config.rates("quota.producer.override")["gold"]
    return [
        Client("bronze", "aiokafka", PRODUCE, produce, Trace()),
        Client("gold", "aiokafka", PRODUCE, gold, Trace()),
        Client("reader", "aiokafka", FETCH, fetch, Trace()),
        Client("steady", "kafka-python", PRODUCE, produce, Trace(), asks_for_more=False),
    ]


@contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keeps what the client libraries log off the screen: that a client ended, and why, is told by the demo."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


async def _run(clients: list[Client], seconds: int, console: Console) -> tuple[list[Result], float]:
    """Returns the results, and when the clients started in ms of the loop's clock."""
    from .clients import RUN  # what they need comes with the extra `demo`

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):  # SIGINT does the same by itself
        loop.add_signal_handler(number, task.cancel)
    clock = LoopClock(loop)
    async with running_broker((*_OVERRIDES, _JOURNAL)) as broker:
        # The first scrape makes the broker load its HTTP stack, which is not to fall into the first burst.
        await broker.scrape()
        started_ms = clock.monotonic_ms()
        tasks = {asyncio.create_task(RUN[client.name](client, broker.bootstrap, clock)): client for client in clients}
        try:
            where = f"broker at {broker.bootstrap}, page at {broker.page}"
            with open_screen(console, clients, where, started_ms, seconds) as screen:
                await _watch(tasks, broker, clock, screen, partial(_is_over, clients, started_ms, seconds))
        finally:
            for running in tasks:
                running.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        scrape = await broker.scrape()
    return [judge(client, scrape.throttle_s(client.kind, client.name)) for client in clients], started_ms


async def _watch(
    tasks: Mapping["asyncio.Task[None]", Client],
    broker: DemoBroker,
    clock: LoopClock,
    screen: Screen,
    is_over: Callable[[float], bool],
) -> None:
    """Shows the clients until it is over. Raises SluiceError when one of them ends before."""
    tick = 0
    while not is_over(clock.monotonic_ms()):
        if tick % _TICKS_PER_SCRAPE == 0:
            scrape = await broker.scrape()
        screen.show(scrape, clock.monotonic_ms())
        tick += 1
        ended, _ = await asyncio.wait(tasks, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            raise SluiceError(f"{tasks[task].name} ended: {task.exception()!r}")


def _is_over(clients: list[Client], started_ms: float, seconds: int, now_ms: float) -> bool:
    over_ms = now_ms - started_ms - seconds * 1e3
    if not 0 <= over_ms < _WAIT_FOR_BURST_MS:
        return over_ms >= 0
    held = [client for client in clients if client.asks_for_more]
    return all(len(client.trace.burst_starts(client.quota)) >= bursts_within(seconds) for client in held)
