"""Each observable statement has the KIP's text beside it."""

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.report.quotations import kip_texts


def test_each_observable_statement_has_the_text_of_its_kip() -> None:
    assert kip_texts().keys() == {name for name, statement in STATEMENTS.items() if not statement.unobservable}
    assert all(bool(text.quote) is not bool(text.kip) for text in kip_texts().values())


def test_statements_that_accept_the_text_and_kafkas_client_explain_both() -> None:
    alternatives = {name for name, statement in STATEMENTS.items() if "KIP text" in statement.text}
    assert alternatives
    assert [name for name in alternatives if not kip_texts()[name].kafka] == []
