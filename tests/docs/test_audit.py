"""The README has the number of probes, and deviations of public clients have citations."""

import re

from sluice.audit.probes import PROBES
from sluice.audit.report.quotations import cited
from tools.docs.reference.audit import PAGE

MATRIX = PAGE.with_name("audit-matrix.md")


def test_readme_has_the_number_of_probes() -> None:
    assert f"in {len(PROBES)} failure situations" in (PAGE.parents[1] / "README.md").read_text()


def test_each_deviation_of_a_public_client_is_cited() -> None:
    """Additional citations are allowed: undecided statements have them too."""
    subject = ""
    for line in MATRIX.read_text().splitlines():
        if heading := re.fullmatch(r"## Deviations of (\S+)( .*)?", line):
            subject = heading[1]
        elif deviation := re.match(r"- \S \*\*(\S+)\*\* ", line):
            citation = cited(subject, deviation[1])
            is_cited = citation is not None and f"]({citation.source})" in line
            assert subject == "sluice" or is_cited, f"{subject} {deviation[1]} is not cited as in citations.toml"
