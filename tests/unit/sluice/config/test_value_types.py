"""Value types of settings: accepted text, results and errors."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sluice.config.value_types import (
    INT_MAX,
    LONG_MAX,
    Kind,
    bearer_token,
    boolean,
    choice,
    choice_or_none,
    double,
    integer,
    listing,
    names,
    parse_rate,
    parse_rates,
    parse_size,
    principals,
    rate,
    rates,
    replicas,
    size,
    some_names,
    text_of,
)

SIZES = {
    "M is decimal, as KIP-13 writes it": ("2M", 2_000_000),
    "Ki is binary": ("512Ki", 524_288),
    "a fraction of whole bytes": ("1.5Gi", 1_610_612_736),
    "an exponent": ("1e6", 1_000_000),
    "an exponent in upper case": ("1E6", 1_000_000),
    "a decimal fraction without rounding error": ("4.1M", 4_100_000),
    "small k": ("3k", 3000),
    "large K": ("3K", 3000),
    "T": ("1T", 10**12),
    "Ti": ("1Ti", 2**40),
    "a plain integer": ("7", 7),
    "blanks around it": (" 7 ", 7),
    "a trailing B": ("64KiB", 65_536),
    "exponent and unit together": ("2.5e3k", 2_500_000),
    "Kafka's -1": ("-1", -1),
    "nothing": ("0", 0),
}


@pytest.mark.parametrize(("text", "expected"), SIZES.values(), ids=SIZES)
def test_size(text: str, expected: int) -> None:
    assert parse_size(text) == expected


NOT_QUANTITIES = [
    pytest.param("", id="empty"),
    pytest.param("M", id="a unit alone"),
    pytest.param("2m", id="milli is not a byte unit"),
    pytest.param("2X", id="an unknown unit"),
    pytest.param("2 M", id="a blank before the unit"),
    pytest.param("2MiB/h", id="an unknown time unit"),
    pytest.param("2_000", id="an underscore"),
    pytest.param("٣", id="digits of another script"),
    pytest.param("NaN", id="not a number"),
    pytest.param("inf", id="infinity"),
    pytest.param("1.", id="a point without following digits"),
    pytest.param(".5M", id="a point without preceding digits"),
    pytest.param("1e", id="an exponent without digits"),
    pytest.param("1e999999999", id="an exponent too large to compute"),
    pytest.param("9" * 50, id="more digits than a long"),
    pytest.param("0x10", id="hexadecimal"),
    pytest.param("+2M", id="a plus"),
    pytest.param("5i", id="half a unit"),
]


@pytest.mark.parametrize(
    "text", [*NOT_QUANTITIES, pytest.param("1.5", id="half a byte"), pytest.param("-2M", id="less")]
)
def test_invalid_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        parse_size(text)


@pytest.mark.parametrize(
    "text", [*NOT_QUANTITIES, pytest.param("0", id="zero, as Kafka"), pytest.param("0.9", id="less than 1")]
)
def test_invalid_rate(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("2M", 2e6), ("2MB/s", 2e6), ("2M/s", 2e6), ("1.5", 1.5), ("512Ki", 524288.0), ("1", 1.0)]
)
def test_rate(text: str, expected: float) -> None:
    assert parse_rate(text) == expected


@given(st.integers(1, 10**9), st.integers(0, 6), st.sampled_from(["", "k", "M", "G"]))
def test_decimal_fraction_is_the_nearest_double(digits: int, places: int, unit: str) -> None:
    shown = f"{digits:0{places + 1}d}"
    text = f"{shown[:-places]}.{shown[-places:]}{unit}" if places else f"{shown}{unit}"
    exact_numerator = digits * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[unit]
    assume(exact_numerator >= 10**places)  # the minimum rate is 1
    assert parse_rate(text) == exact_numerator / 10**places


QUOTA_OVERRIDES = {
    "two clients": ("gold:4M,silver:2M", {"gold": 4e6, "silver": 2e6}),
    "quoted, as printed in KIP-13": ('"clientA:4M,clientB:10M"', {"clientA": 4e6, "clientB": 1e7}),
    "the last colon separates": ("a:b:c:1k", {"a:b:c": 1e3}),
    "an escaped comma is part of the client id": (r"a\,b:1k,c:2k", {"a,b": 1e3, "c": 2e3}),
    "an escaped backslash, then a comma that splits": (r"a\\,b:1k", "item 1 at character 1, " + repr(r"a\\")),
    "an escaped backslash": (r"a\\:1k", {"a\\": 1e3}),
    "blanks around an entry are ignored": (" gold : 4M , silver:2M", {"gold ": 4e6, "silver": 2e6}),
    "none": ("", {}),
    "no rate": ("gold", "item 1 at character 1, 'gold'"),
    "an empty rate": ("a:1,gold:", "item 2 at character 5, 'gold:'"),
    "an empty client id": (":4M", "item 1 at character 1, ':4M'"),
    "a missing entry": ("gold:4M,", "item 2 at character 9, ''"),
    "a repeated client id": (' "gold:4M,gold:5M"', "item 2 at character 11, 'gold:5M'"),
    "zero": ("gold:0", "item 1 at character 1, 'gold:0'"),
    "negative": (r"a\,b:1k,c:-2", "item 2 at character 9, 'c:-2'"),
    "not a number": ("a:nan", "item 1 at character 1, 'a:nan'"),
    "infinity": ("a:inf", "item 1 at character 1, 'a:inf'"),
}


@pytest.mark.parametrize(("text", "expected"), QUOTA_OVERRIDES.values(), ids=QUOTA_OVERRIDES)
def test_quota_overrides_or_error(text: str, expected: dict[str, float] | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
            parse_rates(text)
    else:
        assert parse_rates(text) == expected


REFUSED = object()


PARSED = {
    "a boolean in any case": (boolean(), " TRUE ", True),
    "yes is not a boolean": (boolean(), "yes", REFUSED),
    "empty text is not a boolean": (boolean(), "", REFUSED),
    "a plus sign, as in Java's parseInt": (integer(), "+5", 5),
    "no underscore in an integer": (integer(), "5_0", REFUSED),
    "a Java int ends at 2^31-1": (integer(), "2147483648", REFUSED),
    "a Java int begins at -2^31": (integer(), "-2147483648", -(2**31)),
    "-1 where it is accepted as well": (integer(1, also=-1), "-1", -1),
    "0 where only -1 is accepted as well": (integer(1, also=-1), "0", REFUSED),
    "the largest long": (integer(0, LONG_MAX), str(LONG_MAX), LONG_MAX),
    "larger than a long": (integer(0, LONG_MAX), str(LONG_MAX + 1), REFUSED),
    "a size above its maximum": (size(1, INT_MAX), "2Gi", REFUSED),
    "a size without limit": (size(0, also=-1), "-1", -1),
    "a negative size": (size(0, also=-1), "-2", REFUSED),
    "a double within its bounds": (double(0, 1), "0.25", 0.25),
    "NaN is outside any bounds": (double(0, 1), "NaN", REFUSED),
    "a double above its maximum": (double(0, 1), "1.1", REFUSED),
    "choices are case-sensitive": (choice("gzip", "none"), "GZIP", REFUSED),
    "no value for an optional choice": (choice_or_none("gzip"), " ", ""),
    "an unknown choice": (choice_or_none("gzip"), "none", REFUSED),
    "principals": (principals(), " User:a,b ; ; Group:c:d", "User:a,b;Group:c:d"),
    "no principals": (principals(), "", ""),
    "a principal without its type": (principals(), "User:a;bob", REFUSED),
    "names keep their order": (names("delete", "compact"), "compact, delete", ("compact", "delete")),
    "a repeated name counts once": (names("delete", "compact"), "delete,delete", ("delete",)),
    "an empty list at all": (names("delete", "compact"), "", ()),
    "an unknown name among known ones": (names("delete", "compact"), "delete,none", REFUSED),
    "some names": (some_names("uniform", "range"), "range,uniform", ("range", "uniform")),
    "an empty list where a name is required": (some_names("uniform", "range"), "", REFUSED),
    "a list without a required name": (some_names("a", "b", required="a"), "b", REFUSED),
    "an unknown name in a non-empty list": (some_names("uniform", "range"), "sticky", REFUSED),
    "a list with blanks": (listing(), " a , b ", ("a", "b")),
    "all replicas": (replicas(), "*", ("*",)),
    "some replicas": (replicas(), "0:1,1:2", ("0:1", "1:2")),
    "all with another value": (replicas(), "*,0:1", REFUSED),
    "an invalid replica": (replicas(), "none", REFUSED),
    "a token": (bearer_token(), "a secret", "a secret"),
    "a token that is not ASCII": (bearer_token(), "gehe\u00efm", REFUSED),
    "a token with a newline": (bearer_token(), "a\nb", REFUSED),
    "no rate": (rate(), "", None),
    "Kafka's value for no quota": (rate(), str(LONG_MAX), None),
}


@pytest.mark.parametrize(("kind", "text", "expected"), PARSED.values(), ids=PARSED)
def test_parsed_value_or_error(kind: Kind, text: str, expected: object) -> None:
    if expected is REFUSED:
        with pytest.raises(ValueError, match=r"^$"):
            kind.parse(text)
    else:
        assert kind.parse(text) == expected


_CLIENT_IDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1)


@given(st.dictionaries(_CLIENT_IDS, st.floats(1, 1e15)))
def test_overrides_are_written_as_they_are_read(by_client_id: dict[str, float]) -> None:
    text = text_of(by_client_id)
    assert text is not None
    assert rates().parse(text) == by_client_id


@given(st.one_of(st.booleans(), st.integers(-(2**31), INT_MAX), st.floats(1, 1e18)))
def test_values_are_written_as_they_are_read(value: float) -> None:
    kind = boolean() if isinstance(value, bool) else integer() if isinstance(value, int) else rate()
    assert kind.parse(text_of(value) or "") == value
