"""`sluice faults`, through the admin port."""

import json

import click

from sluice.broker.scenarios.documents import read_document
from sluice.cli.admin_client import AdminClient
from sluice.cli.commands import Group, Integer
from sluice.cli.completion_values import rules
from sluice.cli.options import admin_options, format_option
from sluice.errors import ConfigError

from .text import FaultList, FaultShown, printed

_PATH = "/api/v1/faults"


@click.group(cls=Group)
def faults() -> None:
    """Add, list and remove fault rules."""


@faults.command()
@click.argument("rule", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=rules)
@click.option("--file", metavar="FILE", help="TOML, YAML or JSON file with a rule, or a list `faults` of rules.")
@admin_options
@format_option
def add(rule: tuple[str, ...], file: str | None, admin: str, token: str | None, output_format: str) -> None:
    """Add a rule given as NAME=VALUE, or the rules of a file.

    `sluice faults schema` prints the fields of rules and actions.
    """
    if bool(rule) == (file is not None):
        raise click.UsageError("expected either a rule as NAME=VALUE or --file")
    wanted = _from_words(rule) if file is None else _from_file(file)
    client = AdminClient(admin, token)
    try:
        added = client.post(_PATH, wanted, FaultList)
    except ConfigError as error:
        raise error if file is None else ConfigError(f"{file}: {error}") from None
    click.echo(printed(added, output_format))


@faults.command("list")
@admin_options
@format_option
def list_(admin: str, token: str | None, output_format: str) -> None:
    """List the rules with their hits."""
    click.echo(printed(AdminClient(admin, token).get(_PATH, FaultList), output_format))


@faults.command()
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "all_of_them", is_flag=True, help="All rules in place of IDs.")
@admin_options
@format_option
def remove(ids: tuple[str, ...], all_of_them: bool, admin: str, token: str | None, output_format: str) -> None:
    """Remove rules and release what they delay."""
    if bool(ids) == all_of_them:
        raise click.UsageError("expected either ids of rules or --all")
    client = AdminClient(admin, token)
    if all_of_them:
        removed = client.delete(_PATH, FaultList)
    else:
        removed = FaultList([client.delete(f"{_PATH}/{one}", FaultShown) for one in ids])
    click.echo(printed(removed, output_format))


@faults.command()
@click.argument("fault_id", metavar="ID")
@click.option("--count", type=Integer(1), metavar="N", help="Maximum number of requests, oldest first.  [default: all]")
@admin_options
@format_option
def release(fault_id: str, count: int | None, admin: str, token: str | None, output_format: str) -> None:
    """Release requests that a `hold` rule holds; it stays in force."""
    released = AdminClient(admin, token).post(f"{_PATH}/{fault_id}/release", {"count": count}, FaultShown)
    click.echo(printed(FaultList([released]), output_format))


@faults.command()
def schema() -> None:
    """Print the JSON Schema of a rule."""
    from sluice.broker.faults.rule import rule_schema

    click.echo(json.dumps(rule_schema(), indent=2))


def _from_words(words: tuple[str, ...]) -> object:
    from .arguments import rule_of  # the actions take 0.1 s to import

    return rule_of(words)


def _from_file(path: str) -> object:
    found = read_document(path)
    return {"faults": found} if isinstance(found, list) else found
