"""Reads command lines of ours as the command would, and does nothing."""

import shlex

import click

from sluice.cli.main import cli


def check_command_line(line: str) -> None:
    """Raises click's UsageError for a command, an option or a value that there is not."""
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
