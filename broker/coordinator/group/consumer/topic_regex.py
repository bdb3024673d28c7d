r"""Subscriptions by regular expressions that the broker evaluates (ConsumerGroupHeartbeat v1, KIP-848).

Follows Kafka's TopicRegexResolver, which uses RE2J: a topic matches if its whole name does. Here RE2 syntax is
translated to Python's `re`. Python syntax unknown to RE2 is rejected: backreferences, look-around, conditions,
comments, atomic groups and possessive repetition.

Different on purpose: matching time may not be linear, but names have at most 249 characters. Only Unicode classes
(\p{...}) with ASCII characters are supported, since topic names are ASCII. Some errors are Python's.
"""

import re
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from re import Match, Pattern
from typing import NamedTuple


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int  # number of topics created until then
    timestamp_ms: int  # wall clock


class InvalidRegexError(Exception):
    """An expression that is invalid in RE2."""


_MAX_REPEAT = 1000  # as in RE2
# [[:alpha:]] and \p{Lu}, as the contents of brackets.
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
    "L": "A-Za-z",
    "Latin": "A-Za-z",
    "Ll": "a-z",
    "Lu": "A-Z",
    "N": "0-9",
    "Nd": "0-9",
    "P": r"!-#%-*,-/:;?@\[-\]_{}",
    "Pc": "_",
    "Pd": r"\-",
}
_EVERYWHERE = (
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\[pP](?P<property>\w|\{\^?\w+\})"
    r"|\\x\{(?P<hex>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escaped>.?)"
)
_OUTSIDE = re.compile(
    _EVERYWHERE + r"|\(\?P?<(?P<name>\w+)>"
    r"|\(\?(?P<flags>[imsU]*(?:-[imsU]+)?[:)])"
    r"|(?P<extension>\(\?)"
    r"|(?:[*+?]|\{(?P<from>\d+)(?:,(?P<to>\d*))?\})\??(?P<repeat>\+?)"
    r"|(?P<brace>\{)"
    r"|(?P<bracket>\[\^?\]?)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_INSIDE = re.compile(_EVERYWHERE + r"|\[:(?P<posix>\^?\w+):\]|(?P<end>\])|(?P<other>.)", re.DOTALL)
# Escapes besides punctuation that have the same meaning in RE2 and Python.
_ESCAPES = frozenset("AabBdDfnrsStvwWx0")


@lru_cache(256)
def compile_regex(text: str) -> Pattern[str]:
    """Return the compiled translation; raise InvalidRegexError if RE2 would reject the expression."""
    translated = _Translation(text).result()
    try:
        with warnings.catch_warnings():  # [ in brackets may get a meaning in a later Python
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRegexError(str(error)) from None


def resolve(text: str, topics: Iterable[str]) -> frozenset[str]:
    pattern = compile_regex(text)
    return frozenset(topic for topic in topics if pattern.fullmatch(topic))


class _Translation:
    def __init__(self, text: str) -> None:
        self._text = text
        self._in_bracket = False
        # (?i) applies until its group ends, including alternatives; in Python that is (?i:...). For each open group:
        # the flags opened in it.
        self._flags: list[list[str]] = [[]]

    def result(self) -> str:
        parts: list[str] = []
        position = 0
        while token := (_INSIDE if self._in_bracket else _OUTSIDE).match(self._text, position):
            parts.append(self._translated(token))
            position = token.end()
        return "".join(parts) + ")" * len(self._flags[-1])

    def _translated(self, token: Match[str]) -> str:
        kind = token.lastgroup
        assert kind is not None
        return _TRANSLATE[kind](self, token)

    def _quoted(self, token: Match[str]) -> str:
        return re.escape(token["quoted"])

    def _hex(self, token: Match[str]) -> str:
        code = int(token["hex"], 16)
        if code > sys.maxunicode:
            raise InvalidRegexError(f"invalid escape sequence {token[0]}")
        return re.escape(chr(code))

    def _escape(self, token: Match[str]) -> str:
        escaped = token["escaped"]
        if escaped == "z" and not self._in_bracket:
            return r"\Z"
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise InvalidRegexError(f"invalid escape sequence {token[0]}")
        return token[0]

    def _property(self, token: Match[str]) -> str:
        return self._class(token["property"].strip("{}"), token[0], negated=token[0][1] == "P")

    def _posix(self, token: Match[str]) -> str:
        return self._class(token["posix"], token[0], negated=False)

    def _class(self, name: str, written: str, *, negated: bool) -> str:
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if name not in _CLASSES:
            raise InvalidRegexError(f"invalid character class range {written}")
        if not self._in_bracket:
            return f"[{'^' if negated else ''}{_CLASSES[name]}]"
        return _complement(name) if negated else _CLASSES[name]

    def _named_group(self, token: Match[str]) -> str:
        self._flags.append([])
        return f"(?P<{token['name']}>"

    def _flagged_group(self, token: Match[str]) -> str:
        # RE2's U changes captures, not matches.
        on, _, off = token["flags"][:-1].replace("U", "").partition("-")
        flags = f"(?{on}{'-' if off else ''}{off}:"
        if token["flags"].endswith(":"):
            self._flags.append([])
        else:
            self._flags[-1].append(flags)
        return flags

    def _extension(self, token: Match[str]) -> str:
        raise InvalidRegexError(f"invalid or unsupported Perl syntax {self._text[token.start() : token.end() + 1]}")

    def _repeat(self, token: Match[str]) -> str:
        if token["repeat"]:
            raise InvalidRegexError(f"invalid nested repetition operator {token[0]}")
        if max(int(token["from"] or 0), int(token["to"] or 0)) > _MAX_REPEAT:
            raise InvalidRegexError(f"invalid repeat count {token[0]}")
        return token[0]

    def _brace(self, token: Match[str]) -> str:
        return r"\{"

    def _bracket(self, token: Match[str]) -> str:
        self._in_bracket = True
        return token[0]

    def _bracket_end(self, token: Match[str]) -> str:
        self._in_bracket = False
        return token[0]

    def _other(self, token: Match[str]) -> str:
        character = token["other"]
        if self._in_bracket:
            return character
        flags = self._flags[-1]
        if character == "|":
            return ")" * len(flags) + "|" + "".join(flags)
        if character == "(":
            self._flags.append([])
        elif character == ")" and len(self._flags) > 1:
            return ")" * len(self._flags.pop()) + ")"
        return character


_TRANSLATE = {
    "quoted": _Translation._quoted,
    "property": _Translation._property,
    "hex": _Translation._hex,
    "escaped": _Translation._escape,
    "posix": _Translation._posix,
    "name": _Translation._named_group,
    "flags": _Translation._flagged_group,
    "extension": _Translation._extension,
    "repeat": _Translation._repeat,
    "brace": _Translation._brace,
    "bracket": _Translation._bracket,
    "end": _Translation._bracket_end,
    "other": _Translation._other,
}


def _complement(name: str) -> str:
    """Return the other ASCII characters, as the contents of brackets, where a class cannot be negated."""
    inside = re.compile(f"[{_CLASSES[name]}]", re.ASCII)
    return "".join(re.escape(chr(code)) for code in range(128) if not inside.match(chr(code)))
