"""The KIPs' texts behind the statements, and where Kafka's own client departs from them: kip_texts.toml."""

from functools import cache
from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("kip_texts.toml")


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


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: list[KipText]


@cache
def kip_texts() -> dict[str, KipText]:
    read = msgspec.toml.decode(_FILE.read_bytes(), type=_File)
    return {statement: one for one in read.text for statement in one.statements}
