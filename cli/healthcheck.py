"""`sluice healthcheck`: asks a running broker's admin port whether it is well; for containers and scripts."""

from urllib.request import Request

import click

from .admin_client import admin_address, open_response
from .commands import Command
from .options import admin_option

# An answer from loopback takes milliseconds; a broker that needs longer is not well.
_TIMEOUT_S = 2.0


@click.command(cls=Command)
@admin_option
def healthcheck(admin: str) -> None:
    """Exits with 0 if the broker is well, with 1 if not."""
    address = admin_address(admin)
    with open_response(Request(f"{address}/healthz"), address, _TIMEOUT_S) as answer:  # noqa: S310  (by admin_address)
        click.echo(answer.read().decode())
