"""Command lines of sluice: a parser that does not run them, and the error of a wrong one."""

import shlex

import click
from click.testing import CliRunner

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


def usage_error(*words: str) -> str:
    """Return the line that is the only output of a wrong usage."""
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr
