"""`--format text|json`, and `--json` for short: of every command that prints a table."""

import click

_JSON = "sluice.json"


def format_option(command: click.decorators.FC) -> click.decorators.FC:
    """Both options, as the parameter `output_format`."""
    command = click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=_noted, help="Short for --format json."
    )(command)
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=_chosen,
        help="How it is printed: for people, or for programs.",
    )(command)


def _noted(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _chosen(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not ctx.meta.get(_JSON):
        return value
    if value == "text" and ctx.get_parameter_source("output_format") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--json and --format text exclude each other")
    return "json"
