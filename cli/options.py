"""The options that several commands share."""

from collections.abc import Callable

import click

from .completion_values import properties

_JSON = "sluice.json"


def bootstrap_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the address of a broker."""
    return click.option(
        "--bootstrap",
        envvar="SLUICE_BOOTSTRAP",
        default="127.0.0.1:9092",
        show_default=True,
        show_envvar=True,
        help="A broker's HOST:PORT.",
    )(command)


def admin_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the address of an admin port."""
    return click.option(
        "--admin",
        envvar="SLUICE_ADMIN",
        default="http://127.0.0.1:9644",
        show_default=True,
        show_envvar=True,
        help="The broker's admin address.",
    )(command)


def admin_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the address of an admin port and its token."""
    token = click.option("--token", help="The token that the admin port asks for (sluice.admin.token).")
    return admin_option(token(command))


def override_option(
    text: str = "Sets one property; may come several times.",
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return the option for properties, as the parameter `overrides`, with this help."""
    return click.option(
        "--override", "overrides", multiple=True, metavar="KEY=VALUE", shell_complete=properties, help=text
    )


def format_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add `--format text|json` and its short form `--json`, as the parameter `output_format`."""
    command = click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=_note_json, help="Short for --format json."
    )(command)
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=_resolve_format,
        help="How it is printed: for people, or for programs.",
    )(command)


def _note_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _resolve_format(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not ctx.meta.get(_JSON):
        return value
    if value == "text" and ctx.get_parameter_source("output_format") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--json and --format text exclude each other")
    return "json"
