"""The syntax of .properties files. Expected values are results of `java.util.Properties` in Java 17."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.config.properties_file import read_properties
from sluice.errors import ConfigError

TEXTS = {
    "equals": ("a=b", [(1, "a", "b")]),
    "colon": ("a:b", [(1, "a", "b")]),
    "blank": ("a b", [(1, "a", "b")]),
    "blanks around the separator are removed, trailing ones are kept": ("  a \t=\f b ", [(1, "a", "b ")]),
    "only the first separator counts": ("a==b", [(1, "a", "=b")]),
    "a separator may have blanks around it": ("a : = b", [(1, "a", "= b")]),
    "a key alone": ("a", [(1, "a", "")]),
    "a value alone": ("=b", [(1, "", "b")]),
    "comments and blank lines": ("# a=b\n  ! c=d\n\n \t\ne=f", [(5, "e", "f")]),
    "a comment needs its own line": ("a=b # c", [(1, "a", "b # c")]),
    "a backslash continues the line": ("a=b\\\n   c\nd=e", [(1, "a", "bc"), (3, "d", "e")]),
    "two backslashes are one character and end the line": ("a=b\\\\\nc=d", [(1, "a", "b\\"), (2, "c", "d")]),
    "a continued line is no comment": ("a=b,\\\n# c", [(1, "a", "b,# c")]),
    "a comment is not continued": ("# a\\\nb=c", [(2, "b", "c")]),
    "a backslash at the end of the file": ("a=b\\", [(1, "a", "b")]),
    "a lone backslash is a blank line": ("\\\n#a=b\nc=d", [(3, "c", "d")]),
    "escaped separators are part of the key": ("a\\=b\\:c\\ d=e", [(1, "a=b:c d", "e")]),
    "escapes": ("a=\\t\\n\\r\\f\\q\\\\", [(1, "a", "\t\n\r\fq\\")]),
    "escaped characters, including surrogate pairs": ("a=\\u00e9\\uD83D\\uDE00", [(1, "a", "é😀")]),
    "every kind of line end": ("a=b\r\nc=d\re=f", [(1, "a", "b"), (2, "c", "d"), (3, "e", "f")]),
    "other line separators are text": ("a=b\x0bc\u2028d", [(1, "a", "b\x0bc\u2028d")]),
    "a repeated key is returned twice": ("a=1\na=2", [(1, "a", "1"), (2, "a", "2")]),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_reading(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert list(read_properties(text)) == expected


INVALID_ESCAPES = {
    "not four hex digits": ("a=b\nc=\\u12g4", r"line 2: expected \\u and four hex digits, got \\u12g4"),
    "too few digits": ("a=\\u12", r"line 1: expected \\u and four hex digits, got \\u12"),
    "half a surrogate pair": ("a=\\ud83d", r"line 1: half of a surrogate pair"),
}


@pytest.mark.parametrize(("text", "message"), INVALID_ESCAPES.values(), ids=INVALID_ESCAPES)
def test_invalid_escape_names_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(read_properties(text))


def _escape(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_escaped_text_is_read_back(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in pairs)
    assert [(key, value) for _, key, value in read_properties(text)] == pairs
