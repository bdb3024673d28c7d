"""`sluice top`."""

import sys
from itertools import islice

import click

from sluice.cli.admin_client import AdminClient
from sluice.cli.commands import Command
from sluice.cli.options import admin_options, format_option

from .feed import SORTS, Source, View
from .state import State

# The first snapshot has no rates.
_LOOKS = 2
_WIDTH = 100  # for files and pipes


@click.command(cls=Command)
@click.option("--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="Order of clients.")
@click.option("--filter", "search", default="", metavar="TEXT", help="Text in the id or user of shown clients.")
@click.option("--once", is_flag=True, help="Print one snapshot; default without a terminal.")
@admin_options
@format_option
def top(sort: str, search: str, once: bool, admin: str, token: str | None, output_format: str) -> None:
    """Show brokers, clients with their quotas and throttles, and fault rules, twice a second.

    Keys sort, filter, set quotas, and add or remove fault rules; h lists them. Without a terminal, with --once or with
    --format json, prints one snapshot.
    """
    from rich.console import Console

    from .screen import Display, plain

    client, source = AdminClient(admin, token), Source(admin, token)
    console = Console(highlight=False)
    if once or output_format == "json" or not (console.is_terminal and sys.stdin.isatty()):
        from .text import as_json

        state = State()
        for message in islice(source.messages(View(search, sort)), _LOOKS):
            if message is not None:
                state.take(message)
        if output_format == "json":
            click.echo(as_json(state))
        else:
            width = console.width if console.is_terminal else _WIDTH
            Console(highlight=False, width=width, soft_wrap=True).print(plain(state, width))
        return
    from .live import Top

    Top(client, source, Display(sort=sort, search=search)).run(console)
