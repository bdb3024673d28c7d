"""KIP-91 statements about attempts and about delivery results."""

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.kips import delivery_attempts, delivery_outcomes
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import State
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import failed_batch

SEEN = [name for name, statement in STATEMENTS.items() if name.startswith("KIP-91/") and not statement.unobservable]


def test_each_observable_statement_has_one_rule() -> None:
    assert sorted((*delivery_attempts.RULES, *delivery_outcomes.RULES)) == sorted(SEEN)


@pytest.mark.parametrize("statement", SEEN)
def test_delivery_results_require_a_driver_and_attempts_do_not(statement: str) -> None:
    settings = {
        **SETTINGS,
        "retries": 5,
        "max.in.flight.requests.per.connection": 1,
        "delivery.timeout.ms": 1000 if statement == "KIP-91/9" else 5000,
    }
    probe = STATEMENTS[statement].probes[0]
    verdict = judge(statement, [observed(probe, failed_batch([100] * 4).events, settings=settings)])
    assert (verdict.state is State.NOT_OBSERVABLE) == (statement in delivery_outcomes.RULES), verdict.why
