"""The content of a report, for Markdown and HTML."""

from collections.abc import Sequence
from typing import NamedTuple


class Plot(NamedTuple):
    file: str  # beside the Markdown report
    caption: str
    svg: str


class Section(NamedTuple):
    """A part of both reports; names in the texts are Markdown's inline code."""

    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    marked: int = 0  # number of marked rows, the first ones
