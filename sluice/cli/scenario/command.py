"""`sluice scenario`."""

import click

from sluice.broker.scenarios.durations import format_duration
from sluice.broker.scenarios.files import entries, text_of
from sluice.broker.scenarios.schema import schema_text
from sluice.cli.commands import Group
from sluice.cli.completion_values import scenarios
from sluice.cli.options import format_option
from sluice.cli.text_table import table
from sluice.text.json_text import json_text

from .run_command import run


@click.group(cls=Group)
def scenario() -> None:
    """List, show and run scenarios."""


@scenario.command("list")
@format_option
def list_(output_format: str) -> None:
    """List the built-in scenarios with their purposes."""
    found = entries()
    if output_format == "json":
        click.echo(json_text(found))
        return
    rows = [(one.name, str(one.brokers), format_duration(one.duration_ms), one.description) for one in found]
    click.echo("\n".join(table(("NAME", "BROKERS", "TAKES", "SHOWS"), rows)))


@scenario.command()
@click.argument("name", shell_complete=scenarios)
def show(name: str) -> None:
    """Print a built-in scenario, for example as a template."""
    click.echo(text_of(name), nl=False)


@scenario.command()
def schema() -> None:
    """Print the JSON Schema of scenario files."""
    click.echo(schema_text(), nl=False)


scenario.add_command(run)
