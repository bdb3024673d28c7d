"""Durations in scenario files and reports; sluice.broker.faults.matching.values parses them."""

from typing import Annotated

from msgspec import Meta

from sluice.broker.faults.matching.values import WRITTEN
from sluice.text.typed_decoding import ACCEPTED

_ACCEPTED = "a duration such as 250ms, 5s or 2m, or a number of milliseconds"
_Text = Annotated[str, Meta(pattern=WRITTEN)]
_Number = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
Duration = Annotated[_Text | _Number, Meta(description=_ACCEPTED, extra=ACCEPTED)]


def format_duration(ms: float) -> str:
    return f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"
