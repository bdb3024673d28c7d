"""`sluice faults` with a running broker, and its error messages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sluice.cli.main import cli
from tests.support.broker_process import BrokerProcess, running_broker

FILES = {
    "several.toml": '[[faults]]\nid = "a"\naction = "close"\n[[faults]]\nid = "b"\naction = { kind = "black-hole" }\n',
    "several.yaml": "faults:\n  - {id: a, action: close}\n  - {id: b, action: {kind: black-hole}}\n",
    "list.json": '[{"id": "a", "action": "close"}, {"id": "b", "action": {"kind": "black-hole"}}]',
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("faults") / "log") as running:
        yield running


def run(broker: BrokerProcess, *words: str) -> Result:
    return CliRunner().invoke(cli, ["faults", *words], env={"SLUICE_ADMIN": broker.admin})


def test_rules_are_added_listed_and_removed(broker: BrokerProcess) -> None:
    assert run(broker, "list").stdout == "no fault rules\n"
    added = run(broker, "add", "action=error code=NOT_LEADER_OR_FOLLOWER api=Produce", "times=3")
    lines = [
        "RULE     STATE     MATCHED  HITS  DEFINITION",
        "fault-1  in force  0        0     action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3",
    ]
    assert added.stdout.splitlines() == lines
    run(broker, "add", "id=slow", "action=delay", "ms=5ms", "broker=1", "on=1,4")
    lines.append("slow     in force  0        0     action=delay ms=5ms broker=1 on=1,4")
    assert run(broker, "list").stdout.splitlines() == lines
    (removed,) = json.loads(run(broker, "remove", "slow", "--format", "json").stdout)
    assert (removed["id"], removed["state"], removed["rule"]["on"]) == ("slow", "removed", [1, 4])
    assert run(broker, "remove", "--all").stdout.splitlines()[1].split()[:2] == ["fault-1", "removed"]
    assert run(broker, "list", "--format", "json").stdout == "[]\n"


@pytest.mark.parametrize("name", FILES)
def test_rules_are_added_from_a_file(name: str, broker: BrokerProcess, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    added = run(broker, "add", "--file", str(tmp_path / name), "--format", "json")
    run(broker, "remove", "a", "b")
    assert [fault["id"] for fault in json.loads(added.stdout)] == ["a", "b"]


def test_schema_is_printed(broker: BrokerProcess) -> None:
    assert "action" in json.loads(run(broker, "schema").stdout)["$defs"]["Rule"]["required"]
