"""`sluice journal`."""

from collections.abc import Callable
from typing import TypeVar

import click

from sluice.broker.journal.format_event import format_event
from sluice.cli.commands import Group, Integer
from sluice.cli.completion_values import apis, kinds
from sluice.cli.options import admin_options, format_option, with_all
from sluice.cli.progress import progress
from sluice.errors import SluiceError
from sluice.journal_events import decode

from .export import JournalClient, writer_of

_F = TypeVar("_F", bound=Callable[..., object])
_OPTIONS = (
    click.option("--client-id", multiple=True, metavar="ID", help="Client id of the events; repeatable."),
    click.option("--api", multiple=True, metavar="NAME", shell_complete=apis, help="API, such as Produce; repeatable."),
    click.option(
        "--kind", multiple=True, metavar="KIND", shell_complete=kinds, help="Kind, such as throttle; repeatable."
    ),
    click.option("--broker", multiple=True, type=Integer(0), metavar="ID", help="Node id of a broker; repeatable."),
    click.option("--after", type=Integer(0), metavar="SEQ", help="Sequence number of the last event to skip."),
    admin_options,
)


def _filters(command: _F) -> _F:
    return with_all(_OPTIONS, command)


@click.group(cls=Group)
def journal() -> None:
    """Print or export events of a running broker."""


@journal.command()
@_filters
@click.option(
    "--last", type=Integer(0), metavar="N", help="Number of latest events.  [default: 10, or all with --after]"
)
@click.option("--follow", is_flag=True, help="Print new events until interrupted.")
@format_option
def tail(
    admin: str,
    token: str | None,
    last: int | None,
    follow: bool,
    output_format: str,
    **filters: tuple[str | int, ...] | int | None,
) -> None:
    """Print the latest events, one per line."""
    if last is not None and filters["after"] is not None:
        raise click.UsageError("--last and --after exclude each other")
    begins = {} if filters["after"] is not None else {"last": 10 if last is None else last}
    client = JournalClient(admin, token)
    lines = client.follow({**filters, **begins}) if follow else client.lines({**filters, **begins})
    try:
        for line in lines:
            click.echo(line if output_format == "json" else format_event(decode(line)))
    except KeyboardInterrupt:
        raise SystemExit(0) from None


@journal.command()
@click.argument("file", type=click.Path(dir_okay=False))
@_filters
def export(file: str, admin: str, token: str | None, **filters: tuple[str | int, ...] | int | None) -> None:
    """Write all kept events to FILE, as Parquet if its name ends in .parquet, else as NDJSON (.ndjson)."""
    write = writer_of(file)  # first, because a bad name is wrong usage
    try:
        with progress() as report:
            lines = JournalClient(admin, token).lines(filters, lambda seq, last: report("events", seq, last))
            count, lost = write(file, lines)
    except OSError as error:
        raise SluiceError(f"{file}: {error.strerror or error}") from None
    click.echo(f"{file}: {count} events" + (f", and {lost} more that the journal no longer had" if lost else ""))
