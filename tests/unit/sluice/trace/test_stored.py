"""Traces in HTML files."""

from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.trace.build import build
from sluice.trace.page import render
from sluice.trace.recording import Recorded, Run
from sluice.trace.stored import read_trace, write_trace
from tests.support.journals import Journal


def recorded(count: int = 1) -> list[Recorded]:
    journal = Journal()
    for at_ms in range(count):
        journal.batch(at_ms, at_ms + 0.5)
    return [Recorded("", journal.events)]


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "trace.html"
    write_trace(file, recorded(), Run("<b>test</b>"))
    assert read_trace(file) == build(recorded(), Run("<b>test</b>"))


def test_an_earlier_trace_is_shown_beside(tmp_path: Path) -> None:
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    write_trace(first, recorded(2), Run("first"))
    write_trace(second, recorded(1), Run("second"), first)
    assert "second" in second.read_text()
    assert read_trace(second).compare is None  # a comparison with it is one of two traces


def damaged() -> str:
    text = render(build(recorded(), Run("test")))
    return text.replace('id="trace">H4s', 'id="trace">H4t')


OTHER_FILES = {
    "another page": ("<p>another page</p>", "expected a trace that this version of sluice wrote, got another file"),
    "not gzip": ('<script type="application/gzip" id="trace">AAAA</script>', "expected a trace that this version"),
    "not base64": ('<script type="application/gzip" id="trace">x</script>', "expected a trace that this version"),
}


@pytest.mark.parametrize(("text", "problem"), OTHER_FILES.values(), ids=OTHER_FILES)
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(text)
    with pytest.raises(SluiceError, match=problem) as refused:
        read_trace(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


def test_a_damaged_trace_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(damaged())
    with pytest.raises(SluiceError, match="expected a trace"):
        read_trace(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SluiceError, match=r"none\.html: cannot read: No such file"):
        read_trace(tmp_path / "none.html")
