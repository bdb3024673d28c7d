"""HTML and SVG from calls. Text is escaped wherever it is put in: names, keys and errors are chosen by clients.

Only what `element` made, or `Markup` was said of, goes in as it is; a string that was put together of such is a plain
one again, and escaped, so that a mistake shows and does no harm.
"""

from html import escape

from sluice.text.printable import printable

_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str | float | bool | None) -> Markup:
    """An element. Of an attribute False and None leave it out, True gives it no value; `for_` is for, `a_b` is a-b."""
    start = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{start}>")
    return Markup(f"<{name}{start}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """All of these, one after the other."""
    return Markup("".join(each if isinstance(each, Markup) else escape(printable(each)) for each in content))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(printable(shown))}"'
