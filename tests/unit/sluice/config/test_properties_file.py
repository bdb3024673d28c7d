"""The syntax of .properties files. What is expected here is what `java.util.Properties` of Java 17 makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.config.properties_file import read_properties
from sluice.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a=b", [(1, "a", "b")], id="equals"),
        pytest.param("a:b", [(1, "a", "b")], id="colon"),
        pytest.param("a b", [(1, "a", "b")], id="blank"),
        pytest.param("  a \t=\f b ", [(1, "a", "b ")], id="blanks around the separator go, those at the end stay"),
        pytest.param("a==b", [(1, "a", "=b")], id="only one separator separates"),
        pytest.param("a : = b", [(1, "a", "= b")], id="blanks, then one separator, then the value"),
        pytest.param("a", [(1, "a", "")], id="a key alone"),
        pytest.param("=b", [(1, "", "b")], id="a value alone"),
        pytest.param("# a=b\n  ! c=d\n\n \t\ne=f", [(5, "e", "f")], id="comments and blank lines"),
        pytest.param("a=b # c", [(1, "a", "b # c")], id="a comment has its own line"),
        pytest.param("a=b\\\n   c\nd=e", [(1, "a", "bc"), (3, "d", "e")], id="a line goes on after a backslash"),
        pytest.param("a=b\\\\\nc=d", [(1, "a", "b\\"), (2, "c", "d")], id="two backslashes are one, and the line ends"),
        pytest.param("a=b,\\\n# c", [(1, "a", "b,# c")], id="what goes on is no comment"),
        pytest.param("# a\\\nb=c", [(2, "b", "c")], id="a comment does not go on"),
        pytest.param("a=b\\", [(1, "a", "b")], id="a backslash at the very end"),
        pytest.param("\\\n#a=b\nc=d", [(3, "c", "d")], id="a lone backslash is a blank line"),
        pytest.param("a\\=b\\:c\\ d=e", [(1, "a=b:c d", "e")], id="escaped separators are part of the key"),
        pytest.param("a=\\t\\n\\r\\f\\q\\\\", [(1, "a", "\t\n\r\fq\\")], id="escapes"),
        pytest.param("a=\\u00e9\\uD83D\\uDE00", [(1, "a", "é😀")], id="characters by number, pairs of surrogates too"),
        pytest.param("a=b\r\nc=d\re=f", [(1, "a", "b"), (2, "c", "d"), (3, "e", "f")], id="every kind of line end"),
        pytest.param("a=b\x0bc\u2028d", [(1, "a", "b\x0bc\u2028d")], id="other separators of lines are text"),
        pytest.param("a=1\na=2", [(1, "a", "1"), (2, "a", "2")], id="a key twice is told twice"),
    ],
)
def test_reading(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert list(read_properties(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a=b\nc=\\u12g4", r"line 2: \\u12g4: must be", id="not four hex digits"),
        pytest.param("a=\\u12", r"line 1: \\u12: must be", id="too few digits"),
        pytest.param("a=\\ud83d", r"line 1: half of a surrogate pair", id="half a character"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(read_properties(text))


def _escape(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_what_is_escaped_is_read_back(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in pairs)
    assert [(key, value) for _, key, value in read_properties(text)] == pairs
