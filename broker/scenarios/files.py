"""Where scenarios come from: a TOML, YAML or JSON file, or the catalogue by name."""

from collections.abc import Callable
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from .model import Scenario
from .reading import MisreadError, read
from .timeline import ScenarioError, timeline


def load(path_or_name: str) -> Scenario:
    """The scenario in a file, or of the catalogue. Raises ScenarioError, one line that says what is wrong and where."""
    if path_or_name in names():
        return _read(path_or_name, _catalogue() / f"{path_or_name}.toml", _toml)
    reader = _READERS.get(Path(path_or_name).suffix.lower())
    if reader is None:
        raise ScenarioError(_unknown(path_or_name))
    return _read(path_or_name, Path(path_or_name), reader)


def names() -> list[str]:
    """The scenarios of the catalogue."""
    return sorted(entry.name.removesuffix(".toml") for entry in _catalogue().iterdir() if entry.name.endswith(".toml"))


def scenario_of(document: object) -> Scenario:
    """The scenario that a document says, valid as far as that can be known before it runs. Raises ScenarioError."""
    try:
        scenario = read(document, Scenario)
    except MisreadError as error:
        raise ScenarioError(str(error)) from None
    timeline(scenario)
    return scenario


def _read(shown: str, file: Traversable, reader: Callable[[str], object]) -> Scenario:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{shown}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{shown}: must be UTF-8") from None
    try:
        return scenario_of(reader(text))
    except ValueError as error:  # what is no TOML, YAML or JSON
        raise ScenarioError(f"{shown}: {error}") from None
    except ScenarioError as error:
        raise ScenarioError(f"{shown}: {error}") from None


def _toml(text: str) -> object:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> object:
    from .yaml_text import parse_yaml

    return parse_yaml(text)


def _json(text: str) -> object:
    import json

    return json.loads(text)


_READERS = {".toml": _toml, ".yaml": _yaml, ".yml": _yaml, ".json": _json}


def _unknown(name: str) -> str:
    known = names()
    near = get_close_matches(name, known, 1)
    meant = f" Did you mean {near[0]}?" if near else ""
    endings = ", ".join(_READERS)
    return f"{name}: no scenario.{meant} A file ends in {endings}; the catalogue has {', '.join(known)}"


def _catalogue() -> Traversable:
    return files(__package__) / "catalogue"
