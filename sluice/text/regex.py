r"""Regular expressions from clients, matched in linear time by RE2.

Kafka uses RE2J for subscriptions (KIP-848), and elsewhere `java.util.regex`, whose matching time can be exponential.
Errors have RE2J's text. Unlike RE2J, RE2 accepts a repeated group name and, as literal text, a repeat count of
many digits; it rejects nested repeats of over 1000 in all, and escaped letters outside ASCII.

Different on purpose: expressions are bounded, because 1 KB can compile for a second.
"""

import re
from functools import lru_cache
from typing import Protocol

# RE2's error -> RE2J's; other texts are equal.
_RE2J_ERRORS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
_ESCAPE = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)  # not in a quotation
_ANY_BYTE = "C"  # \C, which RE2 accepts
_LOOK_BEHIND = "(?<"  # to RE2J, the start of a group name
_MEMORY_BYTES = 1024 * 1024  # of each expression while it matches
# Compiling takes up to 30 ms; matching a topic takes 1 us for each instruction.
MOST_REPEATS = 1_000
MOST_INSTRUCTIONS = 5_000
_REPEATS = "*+?"
# A repeat count, a Unicode class or a named group takes as long as COSTLY_FACTOR repeats.
_COSTLY = ("{", r"\p", r"\P", "(?P<", "(?<")
COSTLY_FACTOR = 10
_TOO_COMPLEX = "expression is too complex"


class InvalidRegexError(Exception):
    """An expression that is invalid in RE2."""


class Regex(Protocol):
    @property
    def programsize(self) -> int:
        """The number of instructions: without repeats, a few for each character of the expression."""

    def fullmatch(self, text: str) -> object | None:
        """Return None if the whole text does not match."""


@lru_cache(32)
def compile_regex(text: str) -> Regex:
    """Raise InvalidRegexError with RE2J's description of the problem."""
    import re2  # few brokers see an expression

    if _ANY_BYTE in _ESCAPE.findall(text):
        raise InvalidRegexError("invalid escape sequence")
    repeats = sum(map(text.count, _REPEATS))
    if repeats + COSTLY_FACTOR * sum(map(text.count, _COSTLY)) > MOST_REPEATS:
        raise InvalidRegexError(_TOO_COMPLEX)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.never_capture = True  # the groups of a match take much longer than the match
    try:
        compiled: Regex = re2.compile(text, options)
    except UnicodeEncodeError:
        raise InvalidRegexError("invalid UTF-8") from None
    except re2.error as error:
        message = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        problem, _, where = message.partition(": ")
        if where.startswith(_LOOK_BEHIND):
            problem = "invalid named capture group"
        raise InvalidRegexError(_RE2J_ERRORS.get(problem, problem)) from None
    if compiled.programsize > MOST_INSTRUCTIONS and (repeats or "{" in text):
        raise InvalidRegexError(_TOO_COMPLEX)
    return compiled
