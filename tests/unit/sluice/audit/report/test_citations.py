"""Citations: each has a valid link and an existing statement."""

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import FindingKind
from sluice.audit.report.quotations import citations, cited


def test_each_citation_has_a_statement_and_a_link() -> None:
    for (_, statement), one in citations().items():
        assert statement in STATEMENTS or statement in list(FindingKind)
        assert one.source.startswith("https://")
        assert not set("[]()\n") & set(one.says), "the citation is inside a link"
        assert not set(" ()\n") & set(one.source)


def test_virtual_time_does_not_change_the_client_name() -> None:
    for subject, statement in citations():
        assert cited(f"{subject}-virtual", statement) == cited(subject, statement)
    assert cited("nobody", "KIP-580/1") is None
