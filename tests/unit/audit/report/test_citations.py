"""The citations: each can be followed, and is about a statement that there is."""

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import FindingKind
from sluice.audit.report.citations import citations, cited


def test_each_is_about_a_statement_and_can_be_followed() -> None:
    for (_, statement), one in citations().items():
        assert statement in STATEMENTS or statement in list(FindingKind)
        assert one.source.startswith("https://")
        assert not set("[]()\n") & set(one.says), "it stands in a link"
        assert not set(" ()\n") & set(one.source)


def test_virtual_time_makes_no_other_client() -> None:
    for subject, statement in citations():
        assert cited(f"{subject}-virtual", statement) == cited(subject, statement)
    assert cited("nobody", "KIP-580/1") is None
