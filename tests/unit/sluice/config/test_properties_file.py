"""The syntax of .properties files. Expected values are results of `java.util.Properties` in Java 17."""

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
        pytest.param(
            "  a \t=\f b ", [(1, "a", "b ")], id="blanks around the separator are removed, trailing ones are kept"
        ),
        pytest.param("a==b", [(1, "a", "=b")], id="only the first separator counts"),
        pytest.param("a : = b", [(1, "a", "= b")], id="a separator may have blanks around it"),
        pytest.param("a", [(1, "a", "")], id="a key alone"),
        pytest.param("=b", [(1, "", "b")], id="a value alone"),
        pytest.param("# a=b\n  ! c=d\n\n \t\ne=f", [(5, "e", "f")], id="comments and blank lines"),
        pytest.param("a=b # c", [(1, "a", "b # c")], id="a comment needs its own line"),
        pytest.param("a=b\\\n   c\nd=e", [(1, "a", "bc"), (3, "d", "e")], id="a backslash continues the line"),
        pytest.param(
            "a=b\\\\\nc=d", [(1, "a", "b\\"), (2, "c", "d")], id="two backslashes are one character and end the line"
        ),
        pytest.param("a=b,\\\n# c", [(1, "a", "b,# c")], id="a continued line is no comment"),
        pytest.param("# a\\\nb=c", [(2, "b", "c")], id="a comment is not continued"),
        pytest.param("a=b\\", [(1, "a", "b")], id="a backslash at the end of the file"),
        pytest.param("\\\n#a=b\nc=d", [(3, "c", "d")], id="a lone backslash is a blank line"),
        pytest.param("a\\=b\\:c\\ d=e", [(1, "a=b:c d", "e")], id="escaped separators are part of the key"),
        pytest.param("a=\\t\\n\\r\\f\\q\\\\", [(1, "a", "\t\n\r\fq\\")], id="escapes"),
        pytest.param("a=\\u00e9\\uD83D\\uDE00", [(1, "a", "é😀")], id="escaped characters, including surrogate pairs"),
        pytest.param("a=b\r\nc=d\re=f", [(1, "a", "b"), (2, "c", "d"), (3, "e", "f")], id="every kind of line end"),
        pytest.param("a=b\x0bc\u2028d", [(1, "a", "b\x0bc\u2028d")], id="other line separators are text"),
        pytest.param("a=1\na=2", [(1, "a", "1"), (2, "a", "2")], id="a repeated key is returned twice"),
    ],
)
def test_reading(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert list(read_properties(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a=b\nc=\\u12g4", r"line 2: expected \\u and four hex digits, got \\u12g4", id="not four hex digits"
        ),
        pytest.param("a=\\u12", r"line 1: expected \\u and four hex digits, got \\u12", id="too few digits"),
        pytest.param("a=\\ud83d", r"line 1: half of a surrogate pair", id="half a surrogate pair"),
    ],
)
def test_invalid_escape_names_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(read_properties(text))


def _escape(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_escaped_text_is_read_back(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in pairs)
    assert [(key, value) for _, key, value in read_properties(text)] == pairs
