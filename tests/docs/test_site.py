"""The site without Sphinx: links and anchors resolve, each page is in one section, and the reference is complete.

`make docs` checks more, with warnings as errors, but requires Sphinx.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from sluice.broker.controller.configs.client_metrics import ClientMetricsConfigs
from sluice.broker.controller.configs.group_configs import GroupConfigs
from sluice.broker.faults.actions import KINDS
from sluice.cli.main import COMMANDS
from sluice.config.kafka_properties import KAFKA_PROPERTIES
from sluice.config.property_table import ALIASES, PROPERTIES, TOPIC_PROPERTIES
from sluice.metrics import METRICS
from tools.docs.reference.pages import reference
from tools.docs.reference.without_effect import REASONS, reasons_of
from tools.docs.site import ROOT, SECTIONS, lay_out

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")])
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_ANCHORED = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)#([^)\s]+)\)")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_existing_files(page: Path) -> None:
    links = _LINK.findall(_FENCED.sub("", page.read_text()))
    assert [link for link in links if not (page.parent / link).exists()] == []


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and MyST derive from the headings."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_anchors_of_links_are_headings(page: Path) -> None:
    links = _ANCHORED.findall(_FENCED.sub("", page.read_text()))
    assert [
        f"{file}#{anchor}" for file, anchor in links if anchor not in _anchors(page.parent / file if file else page)
    ] == []


def test_every_card_of_the_landing_page_links_to_a_page() -> None:
    links = re.findall(r"^:link: (\S+)$", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    assert len(links) == 6
    assert [link for link in links if not (ROOT / "docs" / f"{link}.md").is_file()] == []


def test_each_section_has_a_page() -> None:
    generated = {f"reference/{name}" for name, _ in reference()}
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in PAGES if "docs" in page.parts} | generated
    for section, patterns in SECTIONS.items():
        found = [page for page in pages for pattern in patterns if fnmatchcase(page, pattern)]
        assert found or section == "Other languages", f"{section} is empty"


def test_each_page_is_in_one_section(tmp_path: Path) -> None:
    lay_out(tmp_path / "source")
    listed = re.findall(r"^([a-z][\w/-]+)$", (tmp_path / "source/index.md").read_text(), re.MULTILINE)
    pages = {
        str(page.relative_to(tmp_path / "source").with_suffix("")) for page in (tmp_path / "source").glob("**/*.md")
    }
    assert sorted(listed) == sorted(pages - {"index"})


def test_reference_is_complete() -> None:
    pages = dict(reference())
    assert [name for name in (*PROPERTIES, *TOPIC_PROPERTIES) if f"`{name}`" not in pages["configs"]] == []
    assert [name for name in METRICS if f"`{name}`" not in pages["metrics"]] == []
    assert [name for name in COMMANDS if f"\n## sluice {name}" not in pages["commands"]] == []
    assert [kind for kind in KINDS if f"\n## `{kind}`" not in pages["faults"]] == []


def test_each_config_without_effect_has_one_reason() -> None:
    kafka = [known.row for known in KAFKA_PROPERTIES.values()]
    tables = (PROPERTIES, TOPIC_PROPERTIES, GroupConfigs.rows, ClientMetricsConfigs.rows)
    rows = [*kafka, *(row for table in tables for row in table.values())]
    for row in rows:
        assert len(reasons_of(row.name)) == row.has_no_effect, (row.name, reasons_of(row.name))
    names = {row.name for row in rows}
    patterns = [pattern for patterns in REASONS.values() for pattern in patterns]
    assert [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)] == []


def test_each_config_of_kafka_is_on_the_page() -> None:
    page = dict(reference())["configs"]
    assert [name for name in KAFKA_PROPERTIES if name not in ALIASES and f"`{name}`" not in page] == []


def test_names_in_angle_brackets_are_not_tags() -> None:
    for name, text in reference():
        assert re.findall(r"(?<![\\<])<[a-z]\w*>", re.sub(r"`[^`]*`", "", _FENCED.sub("", text))) == [], name
