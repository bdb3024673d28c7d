"""Types of property values, with a parser and a description of the accepted text for each.

The types are those of Kafka's `ConfigDef`. Different on purpose: a property in bytes also accepts a size (`512Ki`), and
a quota accepts the sizes of KIP-13 (`2M`).
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from sluice.text.error_text import expected

SHORT_MAX = 2**15 - 1  # Java's short
INT_MAX = 2**31 - 1  # Java's int
LONG_MAX = 2**63 - 1  # Java's long; Kafka's "no limit"

Value = bool | int | float | str | tuple[str, ...] | dict[str, float] | None

# Decimal like network rates; binary only with an explicit binary unit.
UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
# Days, hours, minutes and seconds.
_DURATION = r"P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{0,9})?)S)?)?"
_DURATION_MS = 86_400_000, 3_600_000, 60_000, 1_000
_LONGEST_NUMBER = 40  # characters: fits every long and every double in use, and bounds the work
_LARGEST_EXPONENT = 30  # 1e30 exceeds every long; a larger exponent would only cost CPU time


class Range(NamedTuple):
    """The numbers that a property accepts: from `least` to `most`, and `also`."""

    least: float
    most: float
    also: int | None = None


class Kind(NamedTuple):
    """The text that a property accepts (`accepts` follows "expected") and Kafka's type for it."""

    type: str
    accepts: str
    parse: Callable[[str], Value]  # raises ValueError with at most a position; the caller adds the rest
    limits: (
        Range | tuple[str, ...] | str
    ) = ()  # of a number, the accepted words, or Kafka's message with {name}, {text}


def boolean() -> Kind:
    return Kind("BOOLEAN", "true or false", _parse_boolean)


def integer(at_least: int = -INT_MAX - 1, at_most: int = INT_MAX, also: int | None = None) -> Kind:
    def parse(text: str) -> int:
        return _within(_parse_integer(text), at_least, at_most, also)

    words = "an integer " + _range(at_least, at_most, also)
    return Kind(_integer_type(at_most), words, parse, Range(at_least, at_most, also))


def size(at_least: int, at_most: int = LONG_MAX, also: int | None = None) -> Kind:
    """Accept a whole number of bytes, also as 512Ki."""

    def parse(text: str) -> int:
        return _within(parse_size(text), at_least, at_most, also)

    words = f"bytes {_range(at_least, at_most, also)}, such as 1048576, 512Ki or 1M"
    return Kind(_integer_type(at_most), words, parse, Range(at_least, at_most, also))


def double(at_least: float, at_most: float) -> Kind:
    def parse(text: str) -> float:
        value = float(text.strip())
        if "_" in text or not at_least <= value <= at_most:  # also rejects NaN
            raise ValueError
        return value

    return Kind("DOUBLE", f"a number from {at_least:g} to {at_most:g}", parse, Range(at_least, at_most))


def text() -> Kind:
    return Kind("STRING", "text", str.strip)


def password() -> Kind:
    return Kind("PASSWORD", "text", str.strip)


def bearer_token() -> Kind:
    def parse(text: str) -> str:
        value = text.strip()
        if re.search(r"[^ -~]", value):
            raise ValueError
        return value

    return Kind("PASSWORD", "printable ASCII characters, which an HTTP header can transport", parse)


def users() -> Kind:
    return Kind("PASSWORD", "NAME:PASSWORD, separated by commas (a comma in one as \\,), each name once", _parse_users)


def choice(*accepted: str) -> Kind:
    return Kind("STRING", "one of " + ", ".join(accepted), lambda text: _one_of(text.strip(), accepted), accepted)


def choice_or_none(*accepted: str) -> Kind:
    words = "nothing or one of " + ", ".join(accepted)
    return Kind("STRING", words, lambda text: _one_of(text.strip(), ("", *accepted)))


def principals() -> Kind:
    # Separated by semicolons because a name may contain commas.

    def parse(text: str) -> str:
        given = [item.strip() for item in text.split(";") if item.strip()]
        if not all(":" in item for item in given):
            raise ValueError
        return ";".join(given)

    return Kind("STRING", "TYPE:NAME, separated by semicolons, such as User:alice;User:bob", parse)


def names(*accepted: str) -> Kind:
    def parse(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_one_of(name, accepted) for name in split_list(text)))

    return Kind("LIST", "a list of " + ", ".join(accepted), parse, accepted)


def some_names(*accepted: str, required: str = "") -> Kind:
    any_names = names(*accepted)

    def parse(text: str) -> tuple[str, ...]:
        given = any_names.parse(text)
        assert isinstance(given, tuple)
        if not given or (required and required not in given):
            raise ValueError
        return given

    words = f", with {required}" if required else ""
    return Kind("LIST", "one or more of " + ", ".join(accepted) + words, parse, accepted)


def listing(accepts: str = "a list, separated by commas") -> Kind:
    return Kind("LIST", accepts, split_list)


def offset_reset(*named: str) -> Kind:
    """Accept these policies, or `by_duration` (KIP-1106)."""

    def parse(text: str) -> str:
        value = text.strip()
        prefix, _, duration = value.partition(":")
        if value not in named:
            if prefix != "by_duration":
                raise ValueError
            parse_duration_ms(duration)
        return value

    message = (
        "Invalid value `{text}` for configuration {name}. The value must be either "
        f"{', '.join(map(repr, named))} or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )
    return Kind("STRING", f"{', '.join(named)} or by_duration:PnDTnHnM.nS", parse, message)


def replicas() -> Kind:
    """Accept the syntax of Kafka's ThrottledReplicaListValidator."""

    def parse(text: str) -> tuple[str, ...]:
        items = split_list(text)
        if items != ("*",) and not all(_is_digits(part) for item in items for part in _halves(item)):
            raise ValueError
        return items

    return Kind("LIST", "* or PARTITION:BROKER, separated by commas", parse)


def rate() -> Kind:
    """Accept bytes per second; empty text and Kafka's largest long mean no limit."""
    words = "bytes per second of at least 1, such as 2M, 512Ki or 1e6 (empty: no quota)"
    return Kind("DOUBLE", words, lambda text: None if text.strip() in ("", str(LONG_MAX)) else parse_rate(text))


def rates() -> Kind:
    words = "CLIENT-ID:RATE, separated by commas, such as gold:4M,silver:2M (a comma in an id as \\,), each id once"
    return Kind("STRING", words, parse_rates)


def counts() -> Kind:
    words = "HOST:COUNT, separated by commas, such as 127.0.0.1:100,::1:20"
    return Kind("STRING", words, _parse_counts)


def feature_levels() -> Kind:
    """Accept what `kafka-storage format --feature` does, as a list."""

    def parse(text: str) -> tuple[str, ...]:
        items = split_list(text)
        given = [re.fullmatch(r"([a-z.]+)=\d{1,4}", item) for item in items]
        if len({match[1] for match in given if match is not None}) < len(items):
            raise ValueError
        return items

    return Kind("LIST", "FEATURE=LEVEL, separated by commas, such as metadata.version=30,group.version=0", parse)


class Values:
    """Typed access to values by property name. An unknown name or a wrong type is an internal error."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Value]) -> None:
        self._values = values

    def value(self, name: str) -> Value:
        return self._values[name]

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert type(value) is int, name
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert type(value) is float, name
        return value

    def boolean(self, name: str) -> bool:
        value = self._values[name]
        assert type(value) is bool, name
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def names(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple), name
        return value

    def rate(self, name: str) -> float | None:
        """Return None without a quota."""
        value = self._values[name]
        assert value is None or isinstance(value, float), name
        return value

    def rates(self, name: str) -> dict[str, float]:
        value = self._values[name]
        assert isinstance(value, dict), name
        return value


def text_of(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, dict):
        return ",".join(f"{_escaped(client_id)}:{_number(value[client_id])}" for client_id in value)
    return _number(value)


def split_list(text: str) -> tuple[str, ...]:
    """Split a list as Kafka does: at commas, without surrounding blanks."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as P1DT2H3M4.5S (java.time.Duration)."""
    found = re.fullmatch(_DURATION, text, re.IGNORECASE)
    if found is None:
        raise ValueError
    return int(sum(float(number) * ms for number, ms in zip(found.groups("0"), _DURATION_MS, strict=True)))


def parse_size(text: str) -> int:
    """Accept whole bytes, negative only as a plain integer (Kafka's -1)."""
    stripped = text.strip()
    if stripped.startswith("-"):
        return _parse_integer(stripped)
    value = _parse_quantity(stripped.removesuffix("B"))
    if isinstance(value, float):
        raise ValueError
    return value


def parse_rate(text: str) -> float:
    """Return bytes per second, at least 1, Kafka's lower bound of `quota.producer.default`."""
    value = _parse_quantity(text.strip().removesuffix("/s").removesuffix("B"))
    if value < 1:
        raise ValueError
    return float(value)


BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
# Keywords of the Python API, also accepted by the command line.
QUOTA_NAMES = {"produce": "producer_byte_rate", "fetch": "consumer_byte_rate"}


def parse_quota(key: str, text: str) -> float:
    """Parse a byte rate as in properties (2M, 512Ki), or a number."""
    try:
        value = parse_rate(text) if key in BYTE_RATES else float(text)
        if abs(value) < float("inf"):  # nor NaN
            return value
        raise ValueError
    except ValueError:
        accepted = "bytes per second of at least 1, such as 2M, 512Ki or 1e6" if key in BYTE_RATES else "a number"
        raise ValueError(f"{key}: {expected(accepted, text)}") from None


def parse_rates(text: str) -> dict[str, float]:
    r"""Parse KIP-13's overrides, `gold:4M,silver:2M`, to bytes per second by client id.

    The last colon splits, so an id may contain colons. Within an id, `\,` is a comma and `\\` a backslash. Quotation
    marks around the whole text, as in the KIP's examples, are optional.

    Raises:
        ValueError: With the number, the position and the text of the wrong item.
    """
    stripped = text.strip()
    at = text.find(stripped) + 1  # position of the item's first character, from 1
    if len(stripped) > 1 and stripped[0] == stripped[-1] == '"':
        stripped, at = stripped[1:-1], at + 1
    by_client_id: dict[str, float] = {}
    for number, (written, item) in enumerate(_split_escaped(stripped) if stripped else (), start=1):
        client_id, _, rate_text = item.strip().rpartition(":")
        try:
            if not client_id or client_id in by_client_id:
                raise ValueError
            by_client_id[client_id] = parse_rate(rate_text)
        except ValueError:
            raise ValueError(f"item {number} at character {at}, {written!r}") from None
        at += len(written) + 1  # and the comma
    return by_client_id


def parse_users(text: str) -> dict[str, str]:
    """Parse `alice:secret,bob:other` to passwords by name.

    The first colon splits, so a password may contain colons; commas are escaped as in `parse_rates`.
    """
    by_name: dict[str, str] = {}
    for _, item in _split_escaped(text.strip()) if text.strip() else ():
        name, _, secret = item.strip().partition(":")
        if not name or not secret or name in by_name:
            raise ValueError
        by_name[name] = secret
    return by_name


def _parse_users(text: str) -> str:
    parse_users(text)  # only validates
    return text.strip()


def _parse_counts(text: str) -> dict[str, float]:
    # The last colon splits, so an IPv6 address may contain more (Utils.parseCsvMap).
    by_host: dict[str, float] = {}
    for item in split_list(text):
        host, _, count = item.rpartition(":")
        if not host.strip():
            raise ValueError
        by_host[host.strip()] = _within(_parse_integer(count), 0, INT_MAX, None)
    return by_host


def _split_escaped(text: str) -> list[tuple[str, str]]:
    items = [("", "")]
    characters = iter(text)
    for char in characters:
        written, meant = items[-1]
        if char == ",":
            items.append(("", ""))
        elif char == "\\":
            following = next(characters, "")
            items[-1] = written + char + following, meant + (following or char)
        else:
            items[-1] = written + char, meant + char
    return items


def _escaped(client_id: str) -> str:
    return client_id.replace("\\", "\\\\").replace(",", "\\,")


def _parse_quantity(text: str) -> int | float:
    """Parse DIGITS[.DIGITS][eN][UNIT] to an int if it is whole, else to the nearest double."""
    number = text.rstrip("kKMGTi")
    mantissa, e, exponent_text = number.lower().partition("e")
    whole, dot, fraction = mantissa.partition(".")
    exponent = _parse_integer(exponent_text) if e else 0
    unit = UNITS.get(text[len(number) :])
    if unit is None or abs(exponent) > _LARGEST_EXPONENT or len(text) > _LONGEST_NUMBER:
        raise ValueError
    if not _is_digits(whole) or (dot and not _is_digits(fraction)):
        raise ValueError
    # Integer arithmetic, so that 4.1M is exactly 4100000, unlike 4.1 * 1e6.
    numerator = int(whole + fraction) * unit
    exponent -= len(fraction)
    if exponent >= 0:
        return numerator * int(10**exponent)
    denominator = int(10**-exponent)
    quotient, rest = divmod(numerator, denominator)
    return numerator / denominator if rest else quotient


def _parse_integer(text: str) -> int:
    stripped = text.strip()  # stricter than int(): no underscores, ASCII digits only
    if len(stripped) > _LONGEST_NUMBER or not _is_digits(stripped[1:] if stripped[:1] in ("-", "+") else stripped):
        raise ValueError
    return int(stripped)


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[_one_of(text.strip().lower(), ("true", "false"))]


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _halves(pair: str) -> tuple[str, str]:
    left, _, right = pair.partition(":")
    return left, right


def _one_of(name: str, accepted: tuple[str, ...]) -> str:
    if name not in accepted:
        raise ValueError
    return name


def _within(value: int, at_least: int, at_most: int, also: int | None) -> int:
    if not at_least <= value <= at_most and value != also:
        raise ValueError
    return value


def _range(at_least: int, at_most: int, also: int | None) -> str:
    if at_most < LONG_MAX:
        words = f"from {at_least} to {at_most}"
    else:
        words = f"of at least {at_least}" if at_least > -LONG_MAX else "of 64 bits"
    return words if also is None else f"{words}, or {also}"


def _integer_type(at_most: int) -> str:
    if at_most == SHORT_MAX:
        return "SHORT"
    return "LONG" if at_most > INT_MAX else "INT"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
