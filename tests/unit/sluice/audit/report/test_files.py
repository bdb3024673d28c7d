"""Writing and reading reports."""

import re
import sys
from pathlib import Path

import pytest

from sluice.audit.report.files import as_json, make_folder, read_report, write_report
from sluice.errors import SluiceError
from tests.support.audit_results import TEXTS, with_everything


def test_written_report_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    written = write_report(with_everything(), folder, TEXTS)
    assert sorted(path.name for path in written) == ["junit.xml", "report.html", "report.json"]
    assert all(path.is_file() for path in written)
    assert read_report(folder) == read_report(folder / "report.json") == with_everything()


def test_same_result_gives_the_same_bytes() -> None:
    assert as_json(with_everything()) == as_json(with_everything())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot read the report: No such file or directory"),
        (b"{", "expected the report.json of an audit: "),
        (b'{"sluice": 1}', "expected the report.json of an audit: Expected `str`, got `int` - at `$.sluice`"),
        (b"\xff", "expected the report.json of an audit: "),
    ],
    ids=["no file", "no JSON", "another type", "no text"],
)
def test_invalid_report_is_reported_with_its_file(content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SluiceError) as error:
        read_report(tmp_path)
    assert str(error.value).startswith(f"{file}: {problem}")


def test_missing_template_engine_is_reported_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "sluice.audit.report.page", raising=False)
    with pytest.raises(SluiceError, match=re.escape("jinja2 is not installed; run pip install 'kafka-sluice[audit]'")):
        make_folder(tmp_path / "report")


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(SluiceError, match="taken: cannot write the report: File exists"):
        write_report(with_everything(), tmp_path / "taken", TEXTS)
