"""The syntax of `sasl.jaas.config` (KIP-85): login modules, each with a control flag and options.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="b";

Follows Kafka's JaasConfig and Java's StreamTokenizer. Different on purpose: a number need not be quoted; errors give
the position but never the text there, which may be a password.
"""

import re
from typing import NamedTuple, Never

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""(?:\s|//[^\n]*|/\*.*?\*/)*
    (?: (?P<word>[\w.$-]+) | (?P<string>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*') | (?P<sign>[=;]) | (?P<end>$)
    | (?P<other>.) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    name: str
    options: dict[str, str]


def parse_jaas(text: str) -> list[LoginModule]:
    """Return at least one module. Raises ValueError with the position of a syntax error."""
    tokens = _Tokens(text)
    modules = []
    while tokens.kind != "end":
        modules.append(_module(tokens))
    if not modules:
        raise ValueError('no login module; expected MODULE required OPTION="VALUE" ... ;')
    return modules


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text = text
        self._matches = _TOKEN.finditer(text)
        self.step()

    def step(self) -> None:
        match = next(self._matches)
        self.kind = match.lastgroup or ""
        self.value, self._start = match[self.kind], match.start(self.kind)
        if self.kind == "other":
            self.fail("expected a word, a closed string, = or ;")

    def take(self, expected: str, *kinds: str) -> str:
        """Return the current token's value, if of one of `kinds`; read the next."""
        if self.kind not in kinds:
            self.fail(f"expected {expected}")
        value = _unquote(self.value) if self.kind == "string" else self.value
        self.step()
        return value

    def fail(self, problem: str) -> Never:
        before = self._text[: self._start]
        line, column = before.count("\n") + 1, self._start - before.rfind("\n")
        raise ValueError(f"line {line}, column {column}: {problem}")


def _module(tokens: _Tokens) -> LoginModule:
    name = tokens.take("the name of a login module", "word", "string")
    if tokens.value.lower() not in _FLAGS:
        tokens.fail(f"expected a control flag: {', '.join(_FLAGS)}")
    tokens.step()
    options = {}
    while tokens.value != ";" or tokens.kind != "sign":
        key = tokens.take("an option, or ; after the last one", "word", "string")
        if tokens.kind != "sign" or tokens.value != "=":
            tokens.fail("expected = after an option")
        tokens.step()
        options[key] = tokens.take("the value of an option", "word", "string")
    tokens.step()
    return LoginModule(name, options)


def _unquote(string: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)

    return _ESCAPE.sub(unescape, string[1:-1])
