"""Messages for values that are not valid, as Kafka's ConfigDef has them."""

import pytest

from sluice.config.invalid_value import invalid_value, java_double
from sluice.config.value_types import (
    INT_MAX,
    Kind,
    boolean,
    choice,
    double,
    integer,
    listing,
    names,
    password,
    rate,
    replicas,
    size,
    text,
)

CASES: dict[str, tuple[Kind, str, str | None]] = {
    "a valid number": (integer(1, 5), " 5 ", None),
    "a number with a sign": (integer(1, 5), "+5", None),
    "a number that is not in range but accepted": (integer(1, 5, also=-1), "-1", None),
    "no number": (integer(1, 5), "x", "Invalid value x for configuration n: Not a number of type INT"),
    "a fraction": (integer(1, 5), "1.5", "Invalid value 1.5 for configuration n: Not a number of type INT"),
    "a number above its type": (
        integer(1),
        str(INT_MAX + 1),
        f"Invalid value {INT_MAX + 1} for configuration n: Not a number of type INT",
    ),
    "a size": (size(1, INT_MAX), "1Ki", "Invalid value 1Ki for configuration n: Not a number of type INT"),
    "too small": (integer(1, 5), "0", "Invalid value 0 for configuration n: Value must be at least 1"),
    "too large": (integer(1, 5), "06", "Invalid value 6 for configuration n: Value must be no more than 5"),
    "neither in range nor the other value": (
        integer(1, 9, also=-1),
        "0",
        "Invalid value 0 for configuration n: Value must be between 1 and 9 or equal to -1",
    ),
    "a large double": (double(0, 1), "1e20", "Invalid value 1.0E20 for configuration n: Value must be no more than 1"),
    "no double": (double(0, 1), "1_0", "Invalid value 1_0 for configuration n: Not a number of type DOUBLE"),
    "a rate below its limit": (
        rate(),
        "0.5",
        "Invalid value 0.5 for configuration n: expected bytes per second of at least 1, such as 2M, 512Ki or 1e6 "
        "(empty: no quota)",
    ),
    "no boolean": (boolean(), "x", "Invalid value x for configuration n: Expected value to be either true or false"),
    "a boolean in capitals": (boolean(), " TRUE", None),
    "an unknown word": (choice("a", "b"), "c", "Invalid value c for configuration n: String must be one of: a, b"),
    "any text": (text(), "x", None),
    "a repeated item": (listing(), "a, a", "Configuration 'n' values must not be duplicated."),
    "an empty item": (listing(), "a,", "Configuration 'n' values must not be empty."),
    "an unknown item": (names("a", "b"), "b,c", "Invalid value c for configuration n: String must be one of: a, b"),
    "an empty list": (listing(), "", None),
    "a password": (password(), "secret", None),
}


@pytest.mark.parametrize(("kind", "value", "message"), CASES.values(), ids=CASES)
def test_message_is_kafkas(kind: Kind, value: str, message: str | None) -> None:
    assert invalid_value("n", kind, value) == message


def test_replicas_have_a_message_of_their_own() -> None:
    name = "leader.replication.throttled.replicas"
    assert invalid_value(name, replicas(), "0:1,*") == (
        f"Invalid value [0:1, *] for configuration {name}: {name} must be the literal '*' or a list of replicas in the "
        "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    assert invalid_value(name, replicas(), "*") is None


JAVA_DOUBLES = [
    (0.0, "0.0"),
    (2.0, "2.0"),
    (-3.0, "-3.0"),
    (0.001, "0.001"),
    (0.00012, "1.2E-4"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (9999999999.0, "9.999999999E9"),
    (1e20, "1.0E20"),
]


@pytest.mark.parametrize(("value", "shown"), JAVA_DOUBLES)
def test_double_is_shown_as_in_java(value: float, shown: str) -> None:
    assert java_double(value) == shown
