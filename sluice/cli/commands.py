"""Base classes of commands: their help and their suggestions for unknown names.

help_pages.py, loaded only for help, has the examples, exit codes and environment.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from sluice.text.error_text import did_you_mean

from .help_pages import write_page


class Command(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_page(self, _path(ctx), formatter)


class Integer(click.IntRange):
    """An integer within bounds; click's own error for other text is "not a valid integer range"."""

    name = "integer"


class Group(click.Group):
    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a whole sentence for each command; click would cut it at the end of the line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(command)) for name, command in commands if command is not None])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            names = self.list_commands(ctx)
            below = [f"{group} {name}" for group in names if name in self._commands_below(ctx, group)]
            remedy = f". Did you mean {' or '.join(below)}?" if below else did_you_mean(name, names)
            raise click.UsageError(f"{name}: unknown command; expected one of {', '.join(names)}{remedy}")
        return super().resolve_command(ctx, args)

    def _commands_below(self, ctx: click.Context, name: str) -> list[str]:
        command = self.get_command(ctx, name)
        return command.list_commands(ctx) if isinstance(command, click.Group) else []

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_page(self, _path(ctx), formatter)


class LazyGroup(Group):
    """Imports a command's module, relative to `sluice.cli`, when the command is used."""

    def __init__(
        self, *, summaries: Mapping[str, str], modules: Mapping[str, str], heading: str = "Commands", **attrs: Any
    ) -> None:
        super().__init__(**attrs)
        self.summaries = summaries
        self._modules = modules
        self._heading = heading

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        command = getattr(import_module(f"sluice.cli.{self._modules.get(cmd_name, cmd_name)}"), cmd_name)
        assert isinstance(command, click.Command), cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(self._heading):
            formatter.write_dl(list(self.summaries.items()))


def _sentence(command: click.Command) -> str:
    first, end, _ = " ".join((command.help or "").partition("\n\n")[0].split()).partition(". ")
    return f"{first}." if end else first


def _path(ctx: click.Context) -> str:
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, at.command.name or "")
        at = at.parent
    return " ".join(names)
