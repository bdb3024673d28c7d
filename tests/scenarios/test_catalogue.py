"""The catalogue with real clients, of which the whole is `make scenarios`: one is played here, a quick one."""

from pathlib import Path

from sluice.broker.scenarios.files import names
from tests.scenarios.claims import CLAIMS
from tests.scenarios.play import play


def test_what_each_scenario_claims_is_put_to_the_test() -> None:
    assert sorted(CLAIMS) == names()


def test_a_scenario_does_what_it_claims(tmp_path: Path) -> None:
    assert play("leader-ping-pong", tmp_path).problems == []
