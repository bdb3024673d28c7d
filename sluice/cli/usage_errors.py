"""click's errors of usage, as `<parameter>: <problem>; expected <what is accepted>, got <value>` in one line."""

import re

import click

from sluice.text.error_text import expected, one_of, unknown

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
