"""Where scenarios come from: a TOML, YAML or JSON file, or the catalogue by name."""

from pathlib import Path

from msgspec import Struct

from sluice.text.did_you_mean import meant
from sluice.text.typed_decoding import DecodeError, read

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
    words = f"no scenario{meant(name, known)} a file ends in {endings}; the catalogue has {', '.join(known)}"
    raise ScenarioError("", f"{name}: {words}")


# As in faults/rule.py: msgspec finds out about these types while only one thread is here.
read({"name": "none"}, Scenario)
