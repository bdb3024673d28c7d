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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2M", 2_000_000, id="M is decimal, as KIP-13 writes it"),
        pytest.param("512Ki", 524_288, id="Ki is binary"),
        pytest.param("1.5Gi", 1_610_612_736, id="a fraction of whole bytes"),
        pytest.param("1e6", 1_000_000, id="an exponent"),
        pytest.param("1E6", 1_000_000, id="an exponent in upper case"),
        pytest.param("4.1M", 4_100_000, id="a decimal fraction without rounding error"),
        pytest.param("3k", 3000, id="small k"),
        pytest.param("3K", 3000, id="large K"),
        pytest.param("1T", 10**12, id="T"),
        pytest.param("1Ti", 2**40, id="Ti"),
        pytest.param("7", 7, id="a plain integer"),
        pytest.param(" 7 ", 7, id="blanks around it"),
        pytest.param("64KiB", 65_536, id="a trailing B"),
        pytest.param("2.5e3k", 2_500_000, id="exponent and unit together"),
        pytest.param("-1", -1, id="Kafka's -1"),
        pytest.param("0", 0, id="nothing"),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("gold:4M,silver:2M", {"gold": 4e6, "silver": 2e6}, id="two clients"),
        pytest.param('"clientA:4M,clientB:10M"', {"clientA": 4e6, "clientB": 1e7}, id="quoted, as printed in KIP-13"),
        pytest.param("a:b:c:1k", {"a:b:c": 1e3}, id="the last colon separates"),
        pytest.param(r"a\,b:1k,c:2k", {"a,b": 1e3, "c": 2e3}, id="an escaped comma is part of the client id"),
        pytest.param(
            r"a\\,b:1k", "item 1 at character 1, " + repr(r"a\\"), id="an escaped backslash, then a comma that splits"
        ),
        pytest.param(r"a\\:1k", {"a\\": 1e3}, id="an escaped backslash"),
        pytest.param(" gold : 4M , silver:2M", {"gold ": 4e6, "silver": 2e6}, id="blanks around an entry are ignored"),
        pytest.param("", {}, id="none"),
        pytest.param("gold", "item 1 at character 1, 'gold'", id="no rate"),
        pytest.param("a:1,gold:", "item 2 at character 5, 'gold:'", id="an empty rate"),
        pytest.param(":4M", "item 1 at character 1, ':4M'", id="an empty client id"),
        pytest.param("gold:4M,", "item 2 at character 9, ''", id="a missing entry"),
        pytest.param(' "gold:4M,gold:5M"', "item 2 at character 11, 'gold:5M'", id="a repeated client id"),
        pytest.param("gold:0", "item 1 at character 1, 'gold:0'", id="zero"),
        pytest.param(r"a\,b:1k,c:-2", "item 2 at character 9, 'c:-2'", id="negative"),
        pytest.param("a:nan", "item 1 at character 1, 'a:nan'", id="not a number"),
        pytest.param("a:inf", "item 1 at character 1, 'a:inf'", id="infinity"),
    ],
)
def test_quota_overrides_or_error(text: str, expected: dict[str, float] | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
            parse_rates(text)
    else:
        assert parse_rates(text) == expected


REFUSED = object()


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param(boolean(), " TRUE ", True, id="a boolean in any case"),
        pytest.param(boolean(), "yes", REFUSED, id="yes is not a boolean"),
        pytest.param(boolean(), "", REFUSED, id="empty text is not a boolean"),
        pytest.param(integer(), "+5", 5, id="a plus sign, as in Java's parseInt"),
        pytest.param(integer(), "5_0", REFUSED, id="no underscore in an integer"),
        pytest.param(integer(), "2147483648", REFUSED, id="a Java int ends at 2^31-1"),
        pytest.param(integer(), "-2147483648", -(2**31), id="a Java int begins at -2^31"),
        pytest.param(integer(1, also=-1), "-1", -1, id="-1 where it is accepted as well"),
        pytest.param(integer(1, also=-1), "0", REFUSED, id="0 where only -1 is accepted as well"),
        pytest.param(integer(0, LONG_MAX), str(LONG_MAX), LONG_MAX, id="the largest long"),
        pytest.param(integer(0, LONG_MAX), str(LONG_MAX + 1), REFUSED, id="larger than a long"),
        pytest.param(size(1, INT_MAX), "2Gi", REFUSED, id="a size above its maximum"),
        pytest.param(size(0, also=-1), "-1", -1, id="a size without limit"),
        pytest.param(size(0, also=-1), "-2", REFUSED, id="a negative size"),
        pytest.param(double(0, 1), "0.25", 0.25, id="a double within its bounds"),
        pytest.param(double(0, 1), "NaN", REFUSED, id="NaN is outside any bounds"),
        pytest.param(double(0, 1), "1.1", REFUSED, id="a double above its maximum"),
        pytest.param(choice("gzip", "none"), "GZIP", REFUSED, id="choices are case-sensitive"),
        pytest.param(choice_or_none("gzip"), " ", "", id="no value for an optional choice"),
        pytest.param(choice_or_none("gzip"), "none", REFUSED, id="an unknown choice"),
        pytest.param(principals(), " User:a,b ; ; Group:c:d", "User:a,b;Group:c:d", id="principals"),
        pytest.param(principals(), "", "", id="no principals"),
        pytest.param(principals(), "User:a;bob", REFUSED, id="a principal without its type"),
        pytest.param(names("delete", "compact"), "compact, delete", ("compact", "delete"), id="names keep their order"),
        pytest.param(names("delete", "compact"), "delete,delete", ("delete",), id="a repeated name counts once"),
        pytest.param(names("delete", "compact"), "", (), id="an empty list at all"),
        pytest.param(names("delete", "compact"), "delete,none", REFUSED, id="an unknown name among known ones"),
        pytest.param(some_names("uniform", "range"), "range,uniform", ("range", "uniform"), id="some names"),
        pytest.param(some_names("uniform", "range"), "", REFUSED, id="an empty list where a name is required"),
        pytest.param(some_names("a", "b", required="a"), "b", REFUSED, id="a list without a required name"),
        pytest.param(some_names("uniform", "range"), "sticky", REFUSED, id="an unknown name in a non-empty list"),
        pytest.param(listing(), " a , b ", ("a", "b"), id="a list with blanks"),
        pytest.param(replicas(), "*", ("*",), id="all replicas"),
        pytest.param(replicas(), "0:1,1:2", ("0:1", "1:2"), id="some replicas"),
        pytest.param(replicas(), "*,0:1", REFUSED, id="all with another value"),
        pytest.param(replicas(), "none", REFUSED, id="an invalid replica"),
        pytest.param(bearer_token(), "a secret", "a secret", id="a token"),
        pytest.param(bearer_token(), "gehe\u00efm", REFUSED, id="a token that is not ASCII"),
        pytest.param(bearer_token(), "a\nb", REFUSED, id="a token with a newline"),
        pytest.param(rate(), "", None, id="no rate"),
        pytest.param(rate(), str(LONG_MAX), None, id="Kafka's value for no quota"),
    ],
)
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
