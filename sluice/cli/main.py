"""`sluice`: the commands and their errors.

A command's module is imported on use, so that `sluice serve` does not load the others. Errors are one line on stderr:
exit code 2 for wrong usage, 1 for other failures.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem

from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected, one_of, unknown
from sluice.version import __version__

from .commands import LazyGroup

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
    "serve", "proxy", "demo", "top", "quota", "faults", "scenario", "journal", "lint", "explore", "audit", "fleet",
)  # fmt: skip
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


_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
_OF_FILE = re.compile(r"(?:File|Directory|Path) (.*)", re.DOTALL)


def usage_error(error: click.UsageError) -> click.UsageError:
    """Return the error without its context, with which click would also print the command's usage."""
    return click.UsageError(" ".join(_line(error).split()))


def _line(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption():
            params = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
            known = [_name(param) for param in params if isinstance(param, click.Option)]
            return f"{error.option_name}: {unknown('option', error.option_name, known)}"
        case click.BadOptionUsage():
            given = "expected no value" if "not take a value" in error.message else "expected a value, got none"
            return f"{error.option_name}: {given}"
        case click.MissingParameter(param=click.Parameter() as param):
            accepted = _accepted(param.type)
            return f"{_name(param)}: missing{accepted and '; expected ' + accepted}"
        case click.BadParameter(param=click.Parameter() as param):
            return f"{_name(param)}: {_problem(error.message.removesuffix('.'), param.type)}"
        case click.BadParameter():
            return f"{error.param_hint}: {error.message}"
    if extra := _EXTRA.fullmatch(error.message):
        return f"{extra[1]}: unexpected argument"
    return error.message


def _name(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name


def _problem(message: str, type_: "click.ParamType[object, object]") -> str:
    if of_file := _OF_FILE.fullmatch(message):
        return of_file[1]
    value, is_not, _ = message.rpartition(" is not ")
    accepted = _accepted(type_)
    if not is_not or not accepted:
        return message
    if value[0] in "'\"":
        value = value[1:-1]
    return one_of(map(str, type_.choices), value) if isinstance(type_, click.Choice) else expected(accepted, value)


def _accepted(type_: "click.ParamType[object, object]") -> str:
    """Describe the values of a type of click; "" for a type whose errors have this form."""
    match type_:
        case click.Choice():
            return f"one of {', '.join(map(str, type_.choices))}"
        case click.IntRange():
            return f"an integer{_range(type_.min, type_.max)}"
        case click.FloatRange():
            return f"a number{' above 0' if type_.min_open and not type_.min else _range(type_.min, type_.max)}"
        case click.types.IntParamType():
            return "an integer"
    return ""


def _range(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f" of at least {least:g}"
    return f" from {least:g} to {most:g}"
