"""The Markdown matrix: a cell per verdict, a line per deviation, and escaped names."""

import re

import pytest

from sluice.audit.judge.model.verdict import State
from sluice.audit.report.quotations import cited
from tests.support.audit_results import HOSTILE, TEXTS, result, subject, verdict, with_everything
from tools.docs.results.audit_matrix import matrix

PAGE = matrix(with_everything(), TEXTS)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_every_verdict_has_its_cell() -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| **KIP-580/1**"))
    assert _cells(row)[1:] == ["✓", "≠", ""]
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| **KIP-580/16**"))
    assert _cells(row)[1:] == ["", "?", ""]


def test_tables_are_complete() -> None:
    """Each row has as many cells as the table's header."""
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        widths = {len(_cells(line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_every_deviation_and_inconclusive_verdict_has_its_line() -> None:
    assert (
        "- ≠ **KIP-580/1** differs from the KIP: waits stay at 104 ms where they should double up to 1 s "
        "(first gap 104 ms, cap 104 ms), observed under: answered with error 7." in PAGE
    )
    assert "30.2 s" in PAGE
    assert "- **KIP-580/16** of constant-client 2.2.1: 3 first gaps do not show a spread." in PAGE
    assert "- **Storm** of constant-client 2.2.1 in reconnect-refused: 412 connections in 2.1 s" in PAGE


def test_citation_is_complete_once_and_abbreviated_afterwards() -> None:
    """Each occurrence is linked; empty numbers are omitted, and times come first."""
    numbers: dict[str, float | str] = {"too_long": 0, "too_short": 7, "waits": 9, "wait_1_ms": 101.0}
    first, second = (
        verdict(each, State.DEVIATES, why="too short", measured=numbers) for each in ("KIP-580/1", "KIP-580/2")
    )
    page = matrix(result(subject("aiokafka", "0.14.0", first, second)), {})
    citation = cited("aiokafka", "KIP-580/1")
    assert citation is not None
    said, again = (line for line in page.splitlines() if line.startswith("- "))
    assert "too short (wait 1 101 ms, too short 7, waits 9). aiokafka 0.14.0: [A failed batch is queued again" in said
    assert again.endswith(f". aiokafka 0.14.0: [as above]({citation.source})")
    assert said.endswith(f"]({citation.source})")


VERSIONS = {"apart": (["1", ""], "| a | b |"), "two of one name": (["1", "2"], "| a 1 | a 2 |")}


@pytest.mark.parametrize(("versions", "heads"), VERSIONS.values(), ids=VERSIONS)
def test_versions_appear_in_the_matrix_only_to_distinguish_clients(versions: list[str], heads: str) -> None:
    names = ["a", "b"] if versions[1] == "" else ["a", "a"]
    page = matrix(
        result(*(subject(name, version, verdict()) for name, version in zip(names, versions, strict=True))), {}
    )
    assert f"| statement {heads}" in page.splitlines()


def test_client_chosen_text_is_escaped() -> None:
    assert HOSTILE not in PAGE
    assert not re.search(r"(?<!\\)<", PAGE)


def test_verdicts_alone_make_a_page_without_other_sections() -> None:
    page = matrix(result(subject("a", "1", verdict("KIP-91/1", State.PASS))), {})
    assert "## KIP-91: Delivery timeout" in page
    assert not re.search(r"Deviations|Inconclusive|Findings|Recovery", page)
