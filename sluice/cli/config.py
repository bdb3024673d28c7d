"""`sluice config list`."""

import json
import os
from pathlib import Path
from textwrap import fill, indent

import click

from sluice.config.broker_config import Config
from sluice.config.setting import Setting

from .commands import Group
from .options import format_option, override_option
from .text_table import terminal_width

HIDDEN = "(hidden)"
_INDENT = "    "


@click.group(cls=Group)
def config() -> None:
    """Show the configuration."""


@config.command("list")
@format_option
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Properties file.")
@override_option
def list_(output_format: str, file: Path | None, overrides: tuple[str, ...]) -> None:
    """List every property with its effective value."""
    settings = Config.load(file, overrides, os.environ).entries()
    click.echo(_json(settings) if output_format == "json" else _text(settings))


def _shown(setting: Setting) -> str | None:
    return HIDDEN if setting.sensitive and setting.value else setting.value


def _json(settings: list[Setting]) -> str:
    rows = [
        {
            "name": setting.property.name,
            "value": _shown(setting),
            "default": setting.property.default,
            "source": setting.source,
            "origin": setting.origin,
            "type": setting.property.kind.type,
            "accepts": setting.property.kind.accepts,
            "spec": setting.property.spec,
            "doc": setting.property.doc,
        }
        for setting in settings
    ]
    return json.dumps(rows, indent=2)


def _text(settings: list[Setting]) -> str:
    """Return names and values, each with its description below: wrapped on a terminal, else on one line."""
    width = terminal_width()
    name_width = max(len(setting.property.name) for setting in settings)
    lines = []
    for setting in settings:
        value = _shown(setting)
        lines.append(f"{setting.property.name:{name_width}}  {'-' if value is None else value or '(empty)'}")
        if setting.origin != "default":
            lines[-1] += f"  ({setting.origin})"
        what = f"{setting.property.doc} Must be {setting.property.kind.accepts}. [{setting.property.spec}]"
        lines.append(indent(fill(what, width - len(_INDENT)) if width else what, _INDENT))
    return "\n".join(lines)
