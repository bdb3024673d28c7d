"""Scenarios from TOML, YAML and JSON files and from the catalogue, and errors for invalid ones."""

from pathlib import Path

import pytest

from sluice.broker.scenarios.files import load, names
from sluice.errors import ConfigError

TOML = 'name = "s"\n[[steps]]\nat = "5s"\nstop = 1\n'
EQUIVALENT = {
    "s.toml": TOML,
    "s.yaml": "name: s\nsteps:\n  - {at: 5s, stop: 1}\n",
    "s.yml": "name: s\nsteps: [{at: 5s, stop: 1}]\n",
    "s.json": '{"name": "s", "steps": [{"at": "5s", "stop": 1}]}',
    "S.TOML": TOML,
}


@pytest.mark.parametrize(("name", "text"), EQUIVALENT.items(), ids=EQUIVALENT)
def test_file_is_parsed_by_its_extension(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "other.toml").write_text(TOML)
    assert load(str(tmp_path / name)) == load(str(tmp_path / "other.toml"))


WRONG = {
    "a.toml": (b"name = ", "Invalid value (at end of document)"),
    "b.yaml": (b"name: [", "(at line 1, column 8)"),
    "c.json": (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    "deep.json": (b"[" * 100_000, "nested too deeply"),
    "d.toml": (b"\xff", "expected UTF-8"),
    "e.toml": (b'name = "e"\nstep = []', "step: unknown field; expected one of name, description"),
    "f.toml": (
        b'name = "f"\nsteps = [{at = "1s", start = 1}]',
        "steps[0].start: at 1 s: broker 1 is running at this time",
    ),
    "g.toml": (b'name = "g"\nsteps = []', "steps: missing; expected one or more, or a duration"),
}


@pytest.mark.parametrize(("name", "content", "error"), [(name, *rest) for name, rest in WRONG.items()], ids=WRONG)
def test_invalid_file_is_an_error_with_its_path(name: str, content: bytes, error: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load(str(file))
    assert str(raised.value).startswith(f"{file}: ")
    assert error in str(raised.value)


MISSING = {
    "rolling-restrat": "rolling-restrat: unknown scenario; expected a file that ends in ",
    "zzz": "zzz: unknown scenario; expected a file that ends in .toml, .yaml, .yml, .json, or one of ",
    "none.toml": "none.toml: cannot read: No such file or directory",
}


@pytest.mark.parametrize(("name", "error"), MISSING.items(), ids=MISSING)
def test_missing_scenario_is_an_error(name: str, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(name)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize("name", names())
def test_catalogue_scenario_is_found_by_its_name(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert scenario.description.endswith("."), "the description is one sentence"
    assert "\n" not in scenario.description
