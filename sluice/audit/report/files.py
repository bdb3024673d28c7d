"""The files of a report, in one folder, and the JSON Schema of report.json: docs/audit.schema.json."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sluice.audit.judge.model.verdict import AuditResult
from sluice.errors import SluiceError
from sluice.text.json_text import schema_of, text_of

from .junit import junit

JSON, JUNIT, PAGE = "report.json", "junit.xml", "report.html"


def write_report(result: AuditResult, folder: Path, texts: Mapping[str, str]) -> Sequence[Path]:
    """Write all three files into a folder; `texts` are the statements by id. Raises SluiceError."""
    files = {
        folder / JSON: as_json(result),
        folder / JUNIT: junit(result),
        folder / PAGE: _page()(result, texts).encode(),
    }
    make_folder(folder)
    for path, content in files.items():
        with _write_errors(folder):
            path.write_bytes(content)
    return list(files)


def make_folder(folder: Path) -> None:
    """Create the folder before the audit, so that errors show early. Raises SluiceError."""
    _page()
    with _write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SluiceError(f"{folder}: cannot write the report: {error.strerror}") from None


def _page() -> Callable[[AuditResult, Mapping[str, str]], str]:
    try:
        from .page import page
    except ModuleNotFoundError as error:
        raise SluiceError(f"{error.name} is not installed; run pip install 'kafka-sluice[audit]'") from None
    return page


def as_json(result: AuditResult) -> bytes:
    """Sort sets, so that equal results give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(result, order="deterministic"), indent=2) + b"\n"


def read_report(path: Path) -> AuditResult:
    """Read report.json, or a folder that contains it. Raises SluiceError."""
    file = path / JSON if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SluiceError(f"{file}: cannot read the report: {error.strerror}") from None
    try:
        return msgspec.json.decode(content, type=AuditResult)
    except msgspec.MsgspecError as error:
        raise SluiceError(f"{file}: expected the report.json of an audit: {error}") from None


def schema_text() -> str:
    return text_of(schema_of(AuditResult, "Result of an audit of Kafka clients by sluice"))
