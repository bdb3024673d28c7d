"""`sluice healthcheck`, for containers and scripts."""

from urllib.request import Request

import click

from .admin_client import admin_address, open_response
from .commands import Command
from .options import admin_option

_TIMEOUT_S = 2.0


@click.command(cls=Command)
@admin_option
def healthcheck(admin: str) -> None:
    """Check whether a broker is healthy; exit with 0 or 1."""
    address = admin_address(admin)
    with open_response(Request(f"{address}/healthz"), address, _TIMEOUT_S) as answer:  # noqa: S310  (by admin_address)
        click.echo(answer.read().decode())
