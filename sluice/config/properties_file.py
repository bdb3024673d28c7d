"""Parser of .properties files, such as Kafka's server.properties, with the syntax of `java.util.Properties`.

Supports comments (`#`, `!`), three separators (`=`, `:`, blank), line continuation and escapes. Different on purpose:
text is UTF-8 (Kafka reads ISO 8859-1), and each pair has its line number for error messages.
"""

from collections.abc import Iterator

from sluice.errors import ConfigError

_BLANK = " \t\f"
_SEPARATORS = "=:"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = frozenset("0123456789abcdefABCDEF")


def read_properties(text: str) -> Iterator[tuple[int, str, str]]:
    r"""Yield (line number, key, value) in the order written, including repeated keys.

    Raises:
        ConfigError: An escape `\u` without four hex digits, or half of a surrogate pair, which Java rejects as well.
    """
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        yield number, _unescape(line[:end], number), _unescape(_value_after(line[end:]), number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    # Not str.splitlines, which also breaks at form feeds and other separators.
    lines = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
    for number, natural in lines:
        line = natural.lstrip(_BLANK)
        if line.startswith(("#", "!")) or line == "\\":  # a lone backslash is a blank line, not a continuation
            continue
        while _is_continued(line):
            line = line[:-1] + next(lines, (0, ""))[1].lstrip(_BLANK)
        if line:
            yield number, line


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in _BLANK + _SEPARATORS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _value_after(rest: str) -> str:
    value = rest.lstrip(_BLANK)
    return value[1:].lstrip(_BLANK) if value[:1] and value[0] in _SEPARATORS else value


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\":
            char = text[position : position + 1]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if len(digits) < 4 or not _HEX.issuperset(digits):
                    raise ConfigError(f"line {number}: expected \\u and four hex digits, got \\u{digits}")
                char = chr(int(digits, 16))
                position += 4
            else:
                char = _ESCAPES.get(char, char)
        out.append(char)
    try:  # Java's characters are UTF-16 units, so two escapes may form one character
        return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ConfigError(f"line {number}: half of a surrogate pair; write both halves, or the character") from None
