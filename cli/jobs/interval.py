"""An interval of time, as the commands take it whose jobs follow the journal's topic."""

import re

import click

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


class Interval(click.ParamType[str, str]):
    """Such as 500ms, 10s, 2m, as Spark says it."""

    name = "interval"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        match = re.fullmatch(r"(\d+)(ms|s|m|h)", value)
        if not match:
            self.fail(f"{value!r} is not a time such as 500ms, 10s, 2m or 1h", param, ctx)
        return f"{int(match[1])} {_UNITS[match[2]]}"
