"""Parser of sluice command lines that does not run them."""

import shlex

import click

from sluice.cli.main import cli


def check_command_line(line: str) -> None:
    """Raise click's UsageError for an unknown command, option or value."""
    program, *words = shlex.split(line.partition(" > ")[0], comments=True)
    assert program == "sluice"
    context = click.Context(cli, info_name="sluice")
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, context, name)
    if "--help" not in words:
        command.make_context(command.name, words, parent=context.parent)
