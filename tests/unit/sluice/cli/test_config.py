"""`sluice config list`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from sluice.config.property_table import PROPERTIES


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {})


def _list(*args: str) -> str:
    result = CliRunner().invoke(cli, ["config", "list", *args])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_property_is_listed_as_json_with_all_attributes() -> None:
    rows = json.loads(_list("--format", "json"))
    assert [row["name"] for row in rows] == list(PROPERTIES)
    assert rows[list(PROPERTIES).index("quota.window.num")] == {
        "name": "quota.window.num",
        "value": "11",
        "default": "11",
        "source": "DEFAULT_CONFIG",
        "origin": "default",
        "type": "INT",
        "accepts": "an integer from 1 to 2147483647",
        "spec": "KIP-13",
        "doc": "Number of quota windows kept, including the current one.",
    }


def test_every_property_is_listed_as_text() -> None:
    lines = _list().splitlines()
    assert [line.split()[0] for line in lines[::2]] == list(PROPERTIES)
    assert lines[1].startswith("    Id of the first broker")
    assert "quota.producer.default -" in [" ".join(line.split()) for line in lines]


def test_effective_values_are_listed_with_their_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    monkeypatch.setattr("os.environ", {"KAFKA_NODE_ID": "5"})
    lines = _list("--config", str(file), "--override", "quota.producer.default=2M").splitlines()
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[::2]}
    assert shown["num.partitions"] == f"3  ({file} line 1)"
    assert shown["node.id"] == "5  (KAFKA_NODE_ID)"
    assert shown["quota.producer.default"] == "2000000  (--override)"


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_secret_is_not_shown(output_format: str) -> None:
    output = _list("--format", output_format, "--override", "sluice.admin.token=hunter2")
    assert "hunter2" not in output
    assert "(hidden)" in output
