"""Scenarios from files in three notations and from the catalogue, and what is said of those that cannot be read."""

from pathlib import Path

import pytest

from sluice.broker.scenarios.files import load, names
from sluice.errors import ConfigError

TOML = 'name = "s"\n[[steps]]\nat = "5s"\nstop = 1\n'
SAME = {
    "s.toml": TOML,
    "s.yaml": "name: s\nsteps:\n  - {at: 5s, stop: 1}\n",
    "s.yml": "name: s\nsteps: [{at: 5s, stop: 1}]\n",
    "s.json": '{"name": "s", "steps": [{"at": "5s", "stop": 1}]}',
    "S.TOML": TOML,
}


@pytest.mark.parametrize(("name", "text"), SAME.items(), ids=SAME)
def test_a_file_is_read_by_its_ending(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "other.toml").write_text(TOML)
    assert load(str(tmp_path / name)) == load(str(tmp_path / "other.toml"))


WRONG = {
    "a.toml": (b"name = ", "Invalid value (at end of document)"),
    "b.yaml": (b"name: [", "(at line 1, column 8)"),
    "c.json": (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    "deep.json": (b"[" * 100_000, "nested too deeply"),
    "d.toml": (b"\xff", "expected UTF-8"),
    "e.toml": (b'name = "e"\nstep = []', "step: unknown field, did you mean steps?"),
    "f.toml": (
        b'name = "f"\nsteps = [{at = "1s", start = 1}]',
        "steps[0].start: at 1 s: broker 1 is running at this time",
    ),
}


@pytest.mark.parametrize(("name", "content", "said"), [(name, *rest) for name, rest in WRONG.items()], ids=WRONG)
def test_what_is_wrong_is_told_with_the_file(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(str(file))
    assert str(refused.value).startswith(f"{file}: ")
    assert said in str(refused.value)


MISSING = {
    "rolling-restrat": "rolling-restrat: unknown scenario, did you mean rolling-restart? expected a file that ends in ",
    "zzz": "zzz: unknown scenario; expected a file that ends in .toml, .yaml, .yml, .json, or one of ",
    "none.toml": "none.toml: cannot read: No such file or directory",
}


@pytest.mark.parametrize(("name", "said"), MISSING.items(), ids=MISSING)
def test_what_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(name)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("name", names())
def test_a_scenario_of_the_catalogue_is_found_by_its_name(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert scenario.description.endswith("."), "a line says what it shows"
    assert "\n" not in scenario.description
