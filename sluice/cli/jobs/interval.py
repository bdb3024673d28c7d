"""A duration on the command line of a streaming job."""

import re

import click

from sluice.text.error_text import expected

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


def interval(value: str) -> str:
    """Convert a duration such as 500ms, 10s or 2m to Spark's form."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", value)
    if not match:
        raise click.BadParameter(expected("a time such as 500ms, 10s, 2m or 1h", value))
    return f"{int(match[1])} {_UNITS[match[2]]}"
