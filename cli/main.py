"""`sluice`: the commands, and how they fail.

A command's module is imported when the command is used, so that `sluice serve` starts without what the others need.
What a person got wrong is told in one line on stderr: exit code 2 for wrong usage, 1 for what could not be done.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Never

import click

from sluice.errors import ConfigError, SluiceError
from sluice.version import __version__

from .commands import Group, no_such_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Each in the module of its name, as the attribute of its name, or where `MODULES` says; words and order are those of
# `sluice --help`.
COMMANDS = {
    "serve": "Run a broker.",
    "demo": "Throttle real clients and check what they got.",
    "top": "Show what clients do, and how they wait, as it happens.",
    "explain": "Explain why a client waits: the same as `sluice quota explain`.",
    "quota": "Show and change quotas, and explain why a client waits.",
    "faults": "Make brokers fail on command.",
    "run": "Run a scenario: what happens to a cluster, and when.",
    "scenario": "Show the scenarios that there are, and run them.",
    "journal": "Show what happened, and keep it.",
    "audit": "Measure what clients do when the broker fails.",
    "pipeline": "Run jobs on Spark.",
    "config": "Show what can be configured.",
    "protocol": "Show how messages are read and written.",
    "healthcheck": "Ask a running broker whether it is well.",
    "completion": "Print what makes a shell complete these commands.",
}
# Command -> module, where that is not the module of the command's name.
MODULES = {
    name: f"{name}.command" for name in ("serve", "demo", "top", "quota", "faults", "scenario", "journal", "audit")
}
MODULES |= {"explain": "quota.command", "run": "scenario.run_command"}
ALIASES = {"fault": "faults", "quotas": "quota", "scenarios": "scenario"}


class LazyGroup(Group):
    """Knows its commands by name alone, until one is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command = getattr(import_module(f"sluice.cli.{MODULES.get(name, name)}"), name)
        assert isinstance(command, click.Command), name
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Without loading them all."""
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=COMMANDS[name]) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        with _errors_in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _errors_in_one_line():
            return super().invoke(ctx)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except SluiceError as error:
        raise click.ClickException(str(error)) from None
    except click.exceptions.NoArgsIsHelpError:  # not a mistake told but help given
        raise
    except click.NoSuchOption as error:
        raise no_such_option(error) from None
    except click.UsageError as error:
        error.ctx = None  # click prints the usage above the error only if it knows whose
        raise


def fail(error: SluiceError) -> Never:
    """Ends the process as a command that raises `error` ends."""
    shown = click.UsageError(str(error)) if isinstance(error, ConfigError) else click.ClickException(str(error))
    shown.show()
    sys.exit(shown.exit_code)


@click.group(cls=LazyGroup)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """A Kafka-compatible test broker that makes clients wait, on purpose and with proof."""
