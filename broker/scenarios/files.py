"""Where scenarios come from: a TOML, YAML or JSON file, or the catalogue by name."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from .model import Scenario
from .reading import MisreadError, read
from .timeline import ScenarioError, timeline

_CATALOGUE = Path(__file__).parent / "catalogue"


class Entry(Struct, frozen=True):
    """What the catalogue tells of a scenario."""

    name: str
    description: str
    brokers: int
    duration_ms: float
    loses_records: bool


def load(path_or_name: str) -> Scenario:
    """The scenario in a file, or of the catalogue. Raises ScenarioError, one line that says what is wrong and where."""
    reader = _READERS.get(Path(path_or_name).suffix.lower())
    if reader is None:
        return catalogued(path_or_name)
    return _read(path_or_name, Path(path_or_name), reader)


def catalogued(name: str) -> Scenario:
    """A scenario of the catalogue. Raises ScenarioError where it has none of that name."""
    return _read(name, _file_of(name), _toml)


def text_of(name: str) -> str:
    """The same, as the file has it."""
    return _file_of(name).read_text(encoding="utf-8")


def names() -> list[str]:
    """Of the scenarios of the catalogue."""
    return sorted(file.stem for file in _CATALOGUE.glob("*.toml"))


def entries() -> list[Entry]:
    """The catalogue."""
    return [_entry(catalogued(name)) for name in names()]


def _entry(scenario: Scenario) -> Entry:
    return Entry(
        name=scenario.name,
        description=scenario.description,
        brokers=scenario.brokers,
        duration_ms=timeline(scenario).duration_ms,
        loses_records=scenario.loses_records,
    )


def scenario_of(document: object) -> Scenario:
    """The scenario that a document says, valid as far as that can be known before it runs. Raises ScenarioError."""
    try:
        scenario = read(document, Scenario)
    except MisreadError as error:
        raise ScenarioError(str(error)) from None
    timeline(scenario)
    return scenario


def _read(shown: str, file: Path, reader: Callable[[str], object]) -> Scenario:
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


def _file_of(name: str) -> Path:
    known = names()
    if name in known:
        return _CATALOGUE / f"{name}.toml"
    near = get_close_matches(name, known, 1)
    meant = f" Did you mean {near[0]}?" if near else ""
    endings = ", ".join(_READERS)
    raise ScenarioError(f"{name}: no scenario.{meant} A file ends in {endings}; the catalogue has {', '.join(known)}")
