"""Where a client's own documentation or source says what was measured: citations.toml, by client and statement.

A deviation that is told in public is one that somebody has read up. Wrong blame is the fastest way to lose authors of
clients.
"""

from functools import cache
from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("citations.toml")


class Citation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place that says it.

    subject: the client's name in reports; what is measured of it in virtual time is the same
    statements: those that it is about, and kinds of findings
    version: what was read
    source: its address
    says: what stands there, in our words
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
    """By subject, and statement or kind of findings."""
    read = msgspec.toml.decode(_FILE.read_bytes(), type=_File)
    return {(one.subject, statement): one for one in read.citation for statement in one.statements}


def cited(subject: str, statement: str) -> Citation | None:
    """What is known of this client and statement, or kind of findings."""
    return citations().get((subject.removesuffix("-virtual"), statement))
