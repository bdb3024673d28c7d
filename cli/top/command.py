"""`sluice top`."""

import click

from sluice.cli.commands import Command
from sluice.cli.options import admin_options, format_option

SORTS = ("activity", "quota", "throttled", "name")


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
    from .run import run

    run(admin, token, sort, search, once, output_format)
