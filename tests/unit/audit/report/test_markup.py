"""Whatever is put in comes out as text."""

import pytest

from sluice.audit.report.markup import Markup, element, joined


def test_text_is_escaped_and_markup_is_not() -> None:
    assert element("p", "a < b & ", element("b", '"c"')) == "<p>a &lt; b &amp; <b>&quot;c&quot;</b></p>"


def test_attributes_are_escaped() -> None:
    assert element("a", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;"></a>'


def test_what_was_put_together_as_a_string_is_text_again() -> None:
    assert joined(f"{Markup('<b>')}") == "&lt;b&gt;"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\x1b[31m", "a\\x1b[31m"), ("\u202egnp", "\\u202egnp"), ("a\0", "a\\x00"), ("\ud800", "\\ud800")],
    ids=["a color of terminals", "a turned direction", "an end of text", "half a character"],
)
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert joined(text) == shown


def test_attributes_are_named_as_python_can_name_them() -> None:
    made = element("input", type="checkbox", aria_label="x", class_="y", checked=True, hidden=False, id=None, name="z")
    assert made == '<input type="checkbox" aria-label="x" class="y" checked name="z">'
