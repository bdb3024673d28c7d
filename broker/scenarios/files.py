"""Loads scenarios from TOML, YAML or JSON files, or from the catalogue by name."""

from pathlib import Path

from msgspec import Struct

from sluice.errors import ScenarioError
from sluice.text.error_text import did_you_mean
from sluice.text.typed_decoding import DecodeError, read

from .documents import ENDINGS, is_document, read_document
from .model import Scenario
from .timeline import timeline

_CATALOGUE = Path(__file__).parent / "catalogue"


class Entry(Struct, frozen=True):
    """The summary of a scenario in the catalogue."""

    name: str
    description: str
    brokers: int
    duration_ms: float
    loses_records: bool


def load(path_or_name: str) -> Scenario:
    if not is_document(path_or_name):
        return catalogued(path_or_name)
    return _from(path_or_name, read_document(path_or_name))


def catalogued(name: str) -> Scenario:
    return _from(name, read_document(str(_file_of(name))))


def text_of(name: str) -> str:
    return _file_of(name).read_text(encoding="utf-8")


def names() -> list[str]:
    return sorted(file.stem for file in _CATALOGUE.glob("*.toml"))


def entries() -> list[Entry]:
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
    """Return a scenario, checked as far as possible before a run. Raises ScenarioError."""
    try:
        scenario = read(document, Scenario)
    except DecodeError as error:
        raise ScenarioError(error.path, error.problem) from None
    timeline(scenario)
    return scenario


def _from(shown: str, document: object) -> Scenario:
    try:
        return scenario_of(document)
    except ScenarioError as error:
        raise ScenarioError("", f"{shown}: {error}") from None


def _file_of(name: str) -> Path:
    known = names()
    if name in known:
        return _CATALOGUE / f"{name}.toml"
    endings = ", ".join(ENDINGS)
    expected = f"expected a file that ends in {endings}, or one of {', '.join(known)}"
    raise ScenarioError("", f"{name or repr(name)}: unknown scenario; {expected}{did_you_mean(name, known)}")


# As in faults/rule.py: makes msgspec inspect the types while only one thread runs.
read({"name": "none"}, Scenario)
