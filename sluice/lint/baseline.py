"""Files with known findings, which are not reported again."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from sluice.errors import SluiceError
from sluice.text.json_text import json_text

from .findings import Finding, Identity


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: str
    scope: str
    subject: str
    software: str = ""


class _Baseline(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    findings: list[_Known]


def read_baseline(path: Path) -> set[Identity]:
    """Return the known findings. Raises SluiceError."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Baseline)
    except OSError as error:
        raise SluiceError(f"{path}: cannot read the baseline: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise SluiceError(f"{path}: expected a file of --write-baseline: {error}") from None
    return {Identity(each.rule, each.scope, each.subject, each.software) for each in found.findings}


def baseline(findings: Iterable[Finding]) -> str:
    """Return the text of a file that makes these findings known."""
    known = sorted({each.identity for each in findings})
    return json_text({"version": 1, "findings": [each._asdict() for each in known]}) + "\n"
