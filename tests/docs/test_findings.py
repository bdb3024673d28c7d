"""The pages in docs/findings are complete; tests/clients/test_findings.py runs their commands."""

import shlex

import pytest

from sluice.audit.report.quotations import cited
from tools.docs.results.findings import DEFECTS, FOLDER, Dot, svg


def test_every_defect_has_a_page_in_the_index() -> None:
    index = (FOLDER / "index.md").read_text()
    assert {file.stem for file in FOLDER.glob("*.md")} == {"index", *DEFECTS}
    assert [name for name in DEFECTS if f"({name}.md)" not in index] == []


@pytest.mark.parametrize("name", DEFECTS)
def test_page_has_version_command_plot_and_source_of(name: str) -> None:
    defect, page = DEFECTS[name], (FOLDER / f"{name}.md").read_text()
    citation = cited(defect.subject, defect.shows)
    assert citation is not None
    for wanted in (defect.version, shlex.join(defect.command()), f"({name}.svg)", f"({citation.source})"):
        assert wanted in page
    assert (FOLDER / f"{name}.svg").read_text().count("<circle") > 10


def test_plot_scales_its_dots_to_its_axes() -> None:
    plot = svg(DEFECTS["kafkajs-lost-records"].plot, [Dot(0, 0), Dot(2, 8, "#c03221")])
    assert '<circle cx="60.0" cy="220.0"' in plot
    assert '<circle cx="624.0" cy="16.0" r="2.5" fill="#c03221"/>' in plot
