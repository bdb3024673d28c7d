"""What `sluice serve` is told, and a quick way to read it.

Importing click takes a tenth of a start, so arguments as scripts and tests give them, `--name value` or `--name=value`
with a value that is fine, are read here. Whatever else there may be is left to click: help, mistakes, abbreviations.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sluice.config.property_table import AS_RELEASES, MOST_BROKERS

LOG_FORMATS = ("text", "json")
_LARGEST_PORT = 65535


class ServeArguments(NamedTuple):
    """One field for each option; None is not given."""

    host: str | None = None
    port: int | None = None
    brokers: int | None = None
    admin_port: int = 9644
    config_file: str | None = None
    release: str | None = None
    overrides: tuple[str, ...] = ()
    seed: int | None = None
    log_format: str = LOG_FORMATS[0]
    data_dir: str | None = None


class _NotPlainError(Exception):
    """An argument that click has to look at."""


def _text(value: str) -> str:
    return value


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal()):
        raise _NotPlainError
    return int(value)


def _port(value: str) -> int:
    if _number(value) > _LARGEST_PORT:
        raise _NotPlainError
    return int(value)


def _brokers(value: str) -> int:
    if not 1 <= _number(value) <= MOST_BROKERS:
        raise _NotPlainError
    return int(value)


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in choices:
            raise _NotPlainError
        return value

    return read


OVERRIDE = "--override"
# Option -> field, and how its value is read. OVERRIDE, which may be given often, is beside them.
PLAIN: dict[str, tuple[str, Callable[[str], object]]] = {
    "--host": ("host", _text),
    "--port": ("port", _port),
    "--brokers": ("brokers", _brokers),
    "--admin-port": ("admin_port", _port),
    "--config": ("config_file", _text),
    "--data-dir": ("data_dir", _text),
    "--as": ("release", _one_of(AS_RELEASES)),
    "--seed": ("seed", _number),
    "--log-format": ("log_format", _one_of(LOG_FORMATS)),
}


def read_plain(words: Sequence[str]) -> ServeArguments | None:
    """The arguments in `words`, all that follows `serve`; None: there is something in them for click."""
    fields: dict[str, object] = {}
    overrides: list[str] = []
    rest = iter(words)
    try:
        for word in rest:
            option, equals, value = word.partition("=")
            if not equals:
                value = next(rest)
            if option == OVERRIDE:
                overrides.append(value)
            else:
                field, read = PLAIN[option]
                fields[field] = read(value)
    except (KeyError, StopIteration, _NotPlainError):
        return None
    return ServeArguments()._replace(overrides=tuple(overrides), **fields)  # type: ignore[arg-type]  # as PLAIN has them
