"""A duration on the command line of a streaming job."""

import re

import click

from sluice.text.error_text import expected

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


class Interval(click.ParamType[str, str]):
    """A duration such as 500ms, 10s or 2m, converted to Spark's form."""

    name = "interval"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        match = re.fullmatch(r"(\d+)(ms|s|m|h)", value)
        if not match:
            self.fail(expected("a time such as 500ms, 10s, 2m or 1h", value), param, ctx)
        return f"{int(match[1])} {_UNITS[match[2]]}"
