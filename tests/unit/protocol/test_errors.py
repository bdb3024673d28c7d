"""Error codes are plain ints that know their name, their text and whether to try again."""

import pytest

from sluice.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (0, "NONE", False),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
        (35, "UNSUPPORTED_VERSION", False),
    ],
)
def test_a_code_from_the_wire_is_found(code: int, name: str, retriable: bool) -> None:
    error = ErrorCode(code)
    assert (error, error.name, error.retriable) == (code, name, retriable)
    assert error.message


def test_a_code_that_kafka_does_not_have_is_no_member() -> None:
    with pytest.raises(ValueError, match="4711"):
        ErrorCode(4711)


def test_codes_are_without_gaps_so_that_none_was_forgotten() -> None:
    assert sorted(ErrorCode) == list(range(-1, max(ErrorCode) + 1))
