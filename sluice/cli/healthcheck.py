"""`sluice healthcheck`, for containers and scripts."""

import click

from .admin_client import AdminClient
from .commands import Command
from .options import admin_option

_TIMEOUT_S = 2.0


@click.command(cls=Command)
@admin_option
def healthcheck(admin: str) -> None:
    """Check whether a broker is healthy; exit with 0 or 1."""
    with AdminClient(admin, None).open("/healthz", timeout_s=_TIMEOUT_S) as answer:
        click.echo(answer.read().decode())
