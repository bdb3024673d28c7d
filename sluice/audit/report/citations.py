"""Citations of clients' documentation and source that confirm deviations: citations.toml, by client and statement."""

from functools import cache
from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("citations.toml")


class Citation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cited place.

    subject: client's name in reports, without -virtual or -idempotent
    statements: statements and kinds of findings that it confirms
    """

    subject: str
    statements: list[str]
    version: str
    source: str
    says: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    citation: list[Citation] = []


@cache
def citations() -> dict[tuple[str, str], Citation]:
    read = msgspec.toml.decode(_FILE.read_bytes(), type=_File)
    return {(one.subject, statement): one for one in read.citation for statement in one.statements}


def cited(subject: str, statement: str) -> Citation | None:
    """Return the citation for a client or a variant of it."""
    return citations().get((subject.removesuffix("-virtual").removesuffix("-idempotent"), statement))
