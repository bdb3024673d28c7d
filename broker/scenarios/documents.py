"""Files that people write, in TOML, YAML or JSON, as the tables and lists that they say."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

from sluice.errors import ConfigError


def _yaml(text: str) -> object:
    from .yaml_text import parse_yaml  # only for who writes YAML

    return parse_yaml(text)


_READERS: dict[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": json.loads,
}
ENDINGS = tuple(_READERS)


def is_document(path: str) -> bool:
    """Whether a file of this name is one, by its ending."""
    return Path(path).suffix.lower() in _READERS


def read_document(path: str) -> object:
    """What the file says. Raises ConfigError, a line that begins with its name."""
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise ConfigError(f"{path}: must end in {', '.join(ENDINGS)}")
    try:
        return reader(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: must be UTF-8") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply") from None
