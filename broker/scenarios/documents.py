"""Configuration files in TOML, YAML or JSON."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

from sluice.errors import ConfigError


def _yaml(text: str) -> object:
    from .yaml_text import parse_yaml  # loaded only for YAML files

    return parse_yaml(text)


_READERS: dict[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": json.loads,
}
ENDINGS = tuple(_READERS)


def is_document(path: str) -> bool:
    return Path(path).suffix.lower() in _READERS


def read_document(path: str) -> object:
    """Parse a file. Raises ConfigError."""
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise ConfigError(f"{path}: expected a file name that ends in {', '.join(ENDINGS)}")
    try:
        return reader(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected UTF-8") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
