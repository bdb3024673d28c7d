"""The arguments of `sluice serve`, and a fast parser without click for their common form.

Click makes a start 9 % slower, so valid arguments in the form `--name value` or `--name=value` are parsed here. Click
handles everything else: help, errors and other forms.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

from sluice.config.property_table import AS_RELEASES, MOST_BROKERS

LOG_FORMATS = ("text", "json")
_PORTS = range(65536)


class ServeArguments(NamedTuple):
    host: str | None = None
    port: int | None = None
    brokers: int | None = None
    racks: str | None = None
    admin_port: int = 9644
    config_file: str | None = None
    release: str | None = None
    overrides: tuple[str, ...] = ()
    seed: int | None = None
    log_format: str = LOG_FORMATS[0]
    data_dir: str | None = None


OVERRIDE = "--override"
# Option -> field, and the values accepted here (None: any text).
PLAIN: dict[str, tuple[str, range | Sequence[str] | None]] = {
    "--host": ("host", None),
    "--port": ("port", _PORTS),
    "--brokers": ("brokers", range(1, MOST_BROKERS + 1)),
    "--racks": ("racks", None),
    "--admin-port": ("admin_port", _PORTS),
    "--config": ("config_file", None),
    "--data-dir": ("data_dir", None),
    "--as": ("release", AS_RELEASES),
    "--seed": ("seed", range(sys.maxsize)),
    "--log-format": ("log_format", LOG_FORMATS),
}


def read_plain(words: Sequence[str]) -> ServeArguments | None:
    fields: dict[str, object] = {}
    overrides: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, text = word.partition("=")
        given = text if equals else next(rest, None)
        if given is not None and option == OVERRIDE:
            overrides.append(given)
        elif given is not None and option in PLAIN:
            field, accepted = PLAIN[option]
            fields[field] = value = _value(given, accepted)
            if value is None:
                return None
        else:
            return None
    return ServeArguments()._replace(overrides=tuple(overrides), **fields)  # type: ignore[arg-type]  # see PLAIN


def _value(text: str, accepted: range | Sequence[str] | None) -> str | int | None:
    if isinstance(accepted, range):
        number = int(text) if text.isascii() and text.isdecimal() else -1
        return number if number in accepted else None
    return text if accepted is None or text in accepted else None
