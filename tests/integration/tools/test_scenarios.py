"""One quick scenario of the catalogue with real clients; the campaign `scenarios` runs all of them."""

from pathlib import Path

from sluice.broker.scenarios.files import names
from tools.scenarios.__main__ import play
from tools.scenarios.claims import CLAIMS


def test_every_scenario_has_checks() -> None:
    assert sorted(CLAIMS) == names()


def test_scenario_meets_its_claims(tmp_path: Path) -> None:
    assert play("leader-ping-pong", tmp_path).problems == []
