"""`sluice top`: a screen until Ctrl-C, or one snapshot."""

from itertools import islice
from threading import Event

import click
from rich.console import Console
from rich.live import Live

from sluice.errors import ConfigError, SluiceError

from .feed import Feed
from .screen import Display, plain, screen
from .state import State
from .text import as_json

# The first snapshot has no rates.
_LOOKS = 2
_WIDTH = 100  # for files and pipes
_AGAIN_AFTER_S = 1.0


def run(admin: str, token: str | None, sort: str, search: str, once: bool, output_format: str) -> None:
    feed, display = Feed(admin, token, search, sort), Display(sort, search)
    console = Console(highlight=False)
    if console.is_terminal and not once and output_format != "json":
        watch(feed, display, console)
        return
    state = State()
    for message in islice(feed.messages(), _LOOKS):
        if message is not None:
            state.take(message)
    if output_format == "json":
        click.echo(as_json(state))
    else:
        width = console.width if console.is_terminal else _WIDTH
        Console(highlight=False, width=width, soft_wrap=True).print(plain(state, display, width))


def watch(feed: Feed, display: Display, console: Console) -> None:
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
