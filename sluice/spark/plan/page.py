"""The HTML report: one file with the plots in it."""

import re
from collections.abc import Iterator, Sequence

from sluice.text.html_page import environment

from .sections import Section

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")  # Markdown's inline code


def html(warnings: Sequence[str], sections: Sequence[Section]) -> str:
    templates = environment("sluice.spark.plan")
    templates.filters["pieces"] = _pieces
    return templates.get_template("plan.html").render(warnings=warnings, sections=sections) + "\n"


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for match in _CODE.finditer(text):
        inner = match[2].replace("\\|", "|")
        yield text[end : match.start()], False
        yield inner[1:-1] if len(match[1]) > 1 else inner, True
        end = match.end()
    yield text[end:], False
