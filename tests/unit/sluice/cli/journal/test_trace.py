"""`sluice trace`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sluice.cli.main import cli
from sluice.trace.stored import read_trace
from tests.support.journals import Journal

NOT_LEADER = 6


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["trace", *map(str, arguments)])


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    return journal(tmp_path / "failed.ndjson", errors=[10])


def journal(file: Path, *, errors: list[int]) -> Path:
    made = Journal()
    made.batch(1, 2, errors=errors)
    made.request("Metadata", 5_000, 5_001)
    file.write_bytes(made.ndjson)
    return file


def test_findings_are_printed(failed: Path) -> None:
    result = run(failed)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == f"{failed}: 2 requests in 5.0 s, 1 finding"
    assert lines[1] == "error: Produce of client app failed with MESSAGE_TOO_LARGE"


def test_html_is_written(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.html"
    assert run(failed, "--output", file, "--title", "shop").exit_code == 0
    assert read_trace(file).title == "shop"


def test_html_is_a_source(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.html"
    run(failed, "-o", file)
    assert "MESSAGE_TOO_LARGE" in run(file).output


def test_perfetto_is_written(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    assert run(failed, "--perfetto", file).exit_code == 0
    assert json.loads(file.read_bytes())["traceEvents"]


def test_two_runs_are_compared(failed: Path, tmp_path: Path) -> None:
    passed = journal(tmp_path / "passed.ndjson", errors=[])
    result = run(failed, "--compare", passed)
    first = "first difference: +0.000 s Produce t-0 of client app: MESSAGE_TOO_LARGE here, ok in the other trace"
    assert first in result.output.splitlines()
    assert run(passed, "--compare", passed).output.splitlines()[-1] == "no difference"


def test_json(failed: Path) -> None:
    result = json.loads(run(failed, "--compare", failed, "--json").output)
    assert [finding["id"] for finding in result["findings"]] == ["not-retriable"]
    assert result["differences"] == []


def test_the_latest_events(failed: Path) -> None:
    result = run(failed, "--last", 1)
    assert "1 request in" in result.output
    assert "no longer had 1 event before" in result.output


BAD_INPUT = {
    "no file": (["none.ndjson"], 1, "none.ndjson: cannot read: No such file"),
    "no trace": (["none.html"], 1, "none.html: cannot read: No such file"),
    "another scheme": (["ftp://host"], 2, "expected a file, -"),
    "no source": ([], 2, "SOURCE: missing"),
    "no folder": (["{failed}", "-o", "{missing}/trace.html"], 1, "cannot write: No such file"),
    "no events": (["{failed}", "--last", "0"], 2, "--last"),
    "an empty journal": (["{empty}"], 1, "expected events, got none"),
}


@pytest.mark.parametrize(("arguments", "code", "problem"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_gets_one_line(failed: Path, tmp_path: Path, arguments: list[str], code: int, problem: str) -> None:
    empty = tmp_path / "empty.ndjson"
    empty.touch()
    places = {"failed": failed, "missing": tmp_path / "missing", "empty": empty}
    result = run(*(argument.format(**places) for argument in arguments))
    assert result.exit_code == code
    assert problem in result.output
    assert "Traceback" not in result.output
