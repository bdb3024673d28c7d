"""The Sphinx configuration of the site that tools/docs/site.py lays out. The site loads nothing from other hosts."""

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

from sluice import __version__

project = "sluice"
author = "the authors of sluice"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # blocks with `...` for omitted text
exclude_patterns = ["site"]
napoleon_use_ivar = True  # autodoc documents attributes already
autoclass_content = "both"  # the arguments are documented in `__init__`
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False
toc_object_entries_show_parents = "hide"
add_module_names = False
python_maximum_signature_line_length = 100
html_theme = "furo"
html_title = "sluice"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
highlight_language = "text"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"


_SINGLE_BACKTICKS = re.compile(r"(?<![`:])`([^`]+)`(?!`)")
_before_napoleon: dict[str, list[str]] = {}
_FIELD = re.compile(r"\w+: ")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _to_restructured_text, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", _restore_property, priority=900)  # after napoleon


def _to_restructured_text(app: Sphinx, what: str, name: str, target: object, options: object, lines: list[str]) -> None:
    """Convert what our docstrings write as Markdown does: code in single backticks, indented blocks of code.

    Events list their fields as `name: description`, which becomes a section of napoleon.
    """
    if name.startswith("sluice.journal_events.") and any(map(_FIELD.match, lines)):
        first = next(index for index, line in enumerate(lines) if _FIELD.match(line))
        lines[first:] = ["Attributes:", *(f"    {line}" if line else "" for line in lines[first:])]
    else:
        lines[:] = _with_literal_marks(lines)
    lines[:] = _SINGLE_BACKTICKS.sub(_literal, "\n".join(lines)).split("\n")
    _before_napoleon[name] = [*lines]


def _literal(code: re.Match[str]) -> str:
    return f"``{' '.join(code[1].split())}``"


def _restore_property(app: Sphinx, what: str, name: str, target: object, options: object, lines: list[str]) -> None:
    """Undo napoleon on properties: it takes the text before a colon in the first line for a type."""
    if what in ("attribute", "property"):
        lines[:] = _before_napoleon[name]


def _with_literal_marks(lines: list[str]) -> Iterator[str]:
    """Put `::` before each indented block that follows a blank line."""
    previous = " "
    in_block = False
    for line in lines:
        indented = line.startswith("    ")
        if line.strip() and not indented:
            in_block = False
        if indented and not previous.strip() and not in_block:
            in_block = True
            yield from ("::", "")
        yield line
        previous = line
