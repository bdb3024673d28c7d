"""`sluice`: the commands and their errors.

A command's module is imported on use, so that `sluice serve` does not load the others. Errors are one line on stderr:
exit code 2 for wrong usage, 1 for other failures.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem

from sluice.errors import ConfigError, SluiceError
from sluice.version import __version__

from .commands import LazyGroup
from .usage_errors import usage_error

# In the order of `sluice --help`. Each command is an attribute of its module.
COMMANDS = {
    "serve": "Run a broker.",
    "proxy": "Run a proxy in front of a cluster, with faults and quotas.",
    "demo": "Throttle real clients and check their rates.",
    "top": "Show live client activity and throttling.",
    "explain": "Explain why a client is throttled (same as `sluice quota explain`).",
    "quota": "Show and change quotas, and explain why a client is throttled.",
    "faults": "Add, list and remove fault rules.",
    "run": "Run a scenario.",
    "scenario": "List, show and run scenarios.",
    "journal": "Show and export events.",
    "trace": "Show what happened on a time axis, from a journal.",
    "lint": "Judge the settings and the behaviour of clients by a journal.",
    "explore": "Find failures that break an application, in virtual time.",
    "audit": "Measure how clients behave when brokers fail.",
    "fleet": "Simulate what thousands to millions of clients do when a broker fails.",
    "pipeline": "Run Spark jobs on the journal.",
    "config": "Show the configuration.",
    "protocol": "Show how messages are encoded and decoded.",
    "healthcheck": "Check whether a running broker is healthy.",
    "completion": "Print a shell completion script.",
}
_FOLDERS = (
    "serve",
    "proxy",
    "demo",
    "top",
    "quota",
    "faults",
    "scenario",
    "journal",
    "lint",
    "explore",
    "audit",
    "fleet",
)
MODULES = {name: f"{name}.command" for name in _FOLDERS}
MODULES |= {"explain": "quota.command", "run": "scenario.run_command", "trace": "journal.trace"}
ALIASES = {"fault": "faults", "quotas": "quota", "scenarios": "scenario"}


class Sluice(LazyGroup):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=COMMANDS[name]) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

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
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise usage_error(error) from None


@click.group(cls=Sluice, summaries=COMMANDS, modules=MODULES)
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Test Kafka clients with a broker that enforces quotas, injects faults and audits backoff."""
