"""Quotations in reports: the KIPs' texts behind the statements, and citations of clients that confirm deviations.

kip_texts.toml also has where Kafka's own client departs from a KIP. citations.toml is by client and statement.
"""

from functools import cache
from pathlib import Path

import msgspec

_KIP_TEXTS = Path(__file__).with_name("kip_texts.toml")


class KipText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text behind some statements.

    quote: sentence of the KIP; "" if `kip` has a summary instead
    kafka: what Kafka's own client does, where it departs or the text leaves it open
    """

    statements: list[str]
    quote: str = ""
    kip: str = ""
    kafka: str = ""

    @property
    def in_words(self) -> str:
        said = f"\N{LEFT DOUBLE QUOTATION MARK}{self.quote}\N{RIGHT DOUBLE QUOTATION MARK}" if self.quote else self.kip
        return f"{said} Kafka's client: {self.kafka}" if self.kafka else said


class _KipTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: list[KipText]


@cache
def kip_texts() -> dict[str, KipText]:
    read = msgspec.toml.decode(_KIP_TEXTS.read_bytes(), type=_KipTexts)
    return {statement: one for one in read.text for statement in one.statements}


_CITATIONS = Path(__file__).with_name("citations.toml")


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


class _Citations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    citation: list[Citation] = []


@cache
def citations() -> dict[tuple[str, str], Citation]:
    read = msgspec.toml.decode(_CITATIONS.read_bytes(), type=_Citations)
    return {(one.subject, statement): one for one in read.citation for statement in one.statements}


def cited(subject: str, statement: str) -> Citation | None:
    """Return the citation for a client or a variant of it."""
    return citations().get((subject.removesuffix("-virtual").removesuffix("-idempotent"), statement))
