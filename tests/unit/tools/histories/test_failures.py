"""The failures of tools/histories cover the catalogue."""

from sluice.broker.faults.actions import KINDS
from sluice.broker.scenarios.files import names
from tools.histories.failures import APIS, EXCLUDED_KINDS, EXCLUDED_SCENARIOS, RULES, retriable_codes


def test_every_kind_of_fault_rule_is_used_or_excluded_with_a_reason() -> None:
    assert {*RULES} | {*EXCLUDED_KINDS} == {*KINDS}
    assert not {*RULES} & {*EXCLUDED_KINDS}
    assert all(EXCLUDED_KINDS.values())


def test_excluded_scenarios_exist() -> None:
    assert {*EXCLUDED_SCENARIOS} <= {*names()}


def test_every_api_has_retriable_errors() -> None:
    assert all(retriable_codes(api) for api in APIS)
