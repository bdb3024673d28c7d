"""`sluice healthcheck`: asks a running broker's admin port whether it is well; for containers and scripts."""

from urllib.error import URLError
from urllib.request import urlopen

import click

from .commands import Command

# An answer from loopback takes milliseconds; a broker that needs longer is not well.
_TIMEOUT_S = 2.0


@click.command(cls=Command)
@click.option(
    "--admin",
    envvar="SLUICE_ADMIN",
    default="http://127.0.0.1:9644",
    show_default=True,
    show_envvar=True,
    help="The broker's admin address.",
)
def healthcheck(admin: str) -> None:
    """Exits with 0 if the broker is well, with 1 if not."""
    if not admin.startswith(("http://", "https://")):
        raise click.BadParameter("must begin with http:// or https://", param_hint="--admin")
    try:
        with urlopen(f"{admin}/healthz", timeout=_TIMEOUT_S) as answer:  # noqa: S310  (checked above)
            click.echo(answer.read().decode())
    except (OSError, URLError) as error:
        raise click.ClickException(f"{admin}: {error}") from None
