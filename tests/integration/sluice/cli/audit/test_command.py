"""`sluice audit list`, which searches for a Java."""

import json

from click.testing import CliRunner, Result

from sluice.cli.main import cli


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["audit", *words])


def test_subjects_and_probes_are_listed() -> None:
    for what, some in (("subjects", "aiokafka-virtual"), ("probes", "reconnect-closed"), ("statements", "KIP-580/1")):
        assert f"\n{some} " in invoke("list", what).stdout
        assert some in [
            next(iter(row.values())) for row in json.loads(invoke("list", what, "--format", "json").stdout)[what]
        ]
    assert set(json.loads(invoke("list", "--format", "json").stdout)) == {"subjects", "probes", "statements"}
