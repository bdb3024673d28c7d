"""Options shared by several commands."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from sluice.text.error_text import expected

from .completion_values import properties

_F = TypeVar("_F", bound=Callable[..., object])
_JSON = "sluice.json"
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def duration(least_ms: int = 0) -> Callable[[str], int]:
    """Return the type of an option such as 500ms, 10s or 2m, in milliseconds."""

    def time(value: str) -> int:
        match = re.fullmatch(r"(\d+)(ms|s|m|h)", value)
        ms = int(match[1]) * _UNITS_MS[match[2]] if match else -1
        if ms < least_ms:
            raise click.BadParameter(expected("a time such as 500ms, 10s, 2m or 1h", value))
        return ms

    return time


def with_all(options: Iterable[Callable[[_F], _F]], command: _F) -> _F:
    """Add options in this order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


bootstrap_option = click.option(
    "--bootstrap",
    envvar="SLUICE_BOOTSTRAP",
    default="127.0.0.1:9092",
    show_default=True,
    show_envvar=True,
    help="Bootstrap server, HOST:PORT.",
)
admin_option = click.option(
    "--admin",
    envvar="SLUICE_ADMIN",
    default="http://127.0.0.1:9644",
    show_default=True,
    show_envvar=True,
    help="URL of the broker's admin port.",
)
override_option = click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", shell_complete=properties,
    help="Value of a property; repeatable.",
)  # fmt: skip


def admin_options(command: click.decorators.FC) -> click.decorators.FC:
    token = click.option("--token", help="Token of the admin port (sluice.admin.token).")
    return admin_option(token(command))


def format_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add `--format text|json` and its short form `--json`, as the parameter `output_format`."""
    command = click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=_note_json, help="Same as --format json."
    )(command)
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=_resolve_format,
        help="Output format.",
    )(command)


def _note_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _resolve_format(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not ctx.meta.get(_JSON):
        return value
    if value == "text" and ctx.get_parameter_source("output_format") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--json and --format text exclude each other")
    return "json"
