"""`sluice top`."""

from itertools import islice
from threading import Event

import click
from rich.console import Console
from rich.live import Live

from sluice.cli.commands import Command
from sluice.cli.options import admin_options, format_option
from sluice.errors import ConfigError, SluiceError

from .feed import Feed, State
from .screen import Display, screen
from .text import as_json

SORTS = ("activity", "quota", "throttled", "name")
# The first snapshot has no rates.
_LOOKS = 2
_WIDTH = 100  # for files and pipes
_AGAIN_AFTER_S = 1.0


@click.command(cls=Command)
@click.option("--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="Order of clients.")
@click.option("--filter", "search", default="", metavar="TEXT", help="Text in the id or user of shown clients.")
@click.option("--once", is_flag=True, help="Print one snapshot; default without a terminal.")
@admin_options
@format_option
def top(sort: str, search: str, once: bool, admin: str, token: str | None, output_format: str) -> None:
    """Show brokers, clients with their quotas and throttles, and fault rules, twice a second, until Ctrl-C.

    Without a terminal, with --once or with --format json, prints one snapshot.
    """
    feed, display = Feed(admin, token, search, sort), Display(sort, search)
    console = Console(highlight=False)
    if console.is_terminal and not once and output_format != "json":
        _watch(feed, display, console)
        return
    state = State()
    for message in islice(feed.messages(), _LOOKS):
        if message is not None:
            state.take(message)
    if output_format == "json":
        click.echo(as_json(state))
    else:
        width = console.width if console.is_terminal else _WIDTH
        Console(highlight=False, width=width, soft_wrap=True).print(screen(state, display, width))


def _watch(feed: Feed, display: Display, console: Console) -> None:
    """Draw each message until Ctrl-C, and connect again if the broker stops. Raises ConfigError."""
    state = State()
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw() -> None:
            live.update(screen(state, display, console.width, console.height), refresh=True)

        draw()
        try:
            while True:
                try:
                    for message in feed.messages():
                        display.problem = ""
                        if message is not None:
                            state.take(message)
                        draw()  # at a heartbeat, too: the terminal may have another size
                except ConfigError:
                    raise
                except SluiceError as error:
                    display.problem = str(error)
                    draw()
                    Event().wait(_AGAIN_AFTER_S)
        except KeyboardInterrupt:
            return
