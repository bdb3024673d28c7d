"""The tables of docs/development.md: the campaigns, and the helpers of tests/support."""

import ast
from pathlib import Path

from tools.campaigns import TABLE
from tools.docs.tables import code, put, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "development.md"
_CAMPAIGNS = ("<!-- campaigns, generated from tools/campaigns.py: begin -->", "<!-- campaigns: end -->")
_SUPPORT = ("<!-- helpers, generated from the docstrings of tests/support: begin -->", "<!-- helpers: end -->")


def page_with_tables(text: str) -> str:
    """Return the page with current tables."""
    return put(_CAMPAIGNS, _campaigns(), put(_SUPPORT, _support(), text))


def _campaigns() -> str:
    rows = [
        (code(each.name), code(each.default), each.what, each.takes, each.needs or "nothing", each.when)
        for each in TABLE
    ]
    return table(("campaign", "default arguments", "what it does", "takes", "needs", "when to run it"), rows).rstrip()


def _support() -> str:
    rows = []
    for path in sorted((ROOT / "tests" / "support").glob("[a-z]*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, f"{path.name} has no docstring"
        rows.append((code(path.stem), docstring.split("\n\n")[0]))
    return table(("module of `tests/support`", "contents"), rows).rstrip()
