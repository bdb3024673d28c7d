"""Where scenarios come from: a TOML, YAML or JSON file, or the catalogue by name."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sluice.broker.faults.errors import FaultError
from sluice.broker.faults.rule import parse_rule
from sluice.broker.reading import MisreadError, read
from sluice.did_you_mean import meant

from .documents import ENDINGS, is_document, read_document
from .model import Scenario
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
    """The scenario in a file, or of the catalogue. Raises ConfigError, one line that says what is wrong and where."""
    if not is_document(path_or_name):
        return catalogued(path_or_name)
    return _from(path_or_name, read_document(path_or_name))


def catalogued(name: str) -> Scenario:
    """A scenario of the catalogue. Raises ScenarioError where it has none of that name."""
    return _from(name, read_document(str(_file_of(name))))


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
        for path, rule in _rules_in(document):
            parse_rule(rule, path)  # which has better words for what is wrong with one
        scenario = read(document, Scenario)
    except (MisreadError, FaultError) as error:
        raise ScenarioError(str(error)) from None
    timeline(scenario)
    return scenario


def _rules_in(document: object) -> Iterator[tuple[str, object]]:
    """The fault rules of a document, with their paths: from it as it is, whatever that may be."""
    yield from _items(document, "faults")
    for path, step in _items(document, "steps"):
        if isinstance(step, Mapping) and "fault" in step:
            yield f"{path}.fault", step["fault"]
        for place, rule in _items(step, "meanwhile"):
            yield f"{path}.{place}", rule


def _items(given: object, name: str) -> Iterator[tuple[str, object]]:
    items = given.get(name) if isinstance(given, Mapping) else None
    if isinstance(items, list):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(items))


def _from(shown: str, document: object) -> Scenario:
    try:
        return scenario_of(document)
    except ScenarioError as error:
        raise ScenarioError(f"{shown}: {error}") from None


def _file_of(name: str) -> Path:
    known = names()
    if name in known:
        return _CATALOGUE / f"{name}.toml"
    endings = ", ".join(ENDINGS)
    raise ScenarioError(
        f"{name}: no scenario{meant(name, known)} a file ends in {endings}; the catalogue has {', '.join(known)}"
    )


# As in faults/rule.py: msgspec finds out about these types while only one thread is here.
read({"name": "none"}, Scenario)
