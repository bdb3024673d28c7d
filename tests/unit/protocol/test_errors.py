"""Error codes: integers with a name, a message and retriability."""

import pytest

from sluice.protocol.errors import ErrorCode

CODES = [
    (-1, "UNKNOWN_SERVER_ERROR", False),
    (0, "NONE", False),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
    (35, "UNSUPPORTED_VERSION", False),
]


@pytest.mark.parametrize(("code", "name", "retriable"), CODES)
def test_code_is_found_by_number(code: int, name: str, retriable: bool) -> None:
    error = ErrorCode(code)
    assert (error, error.name, error.retriable) == (code, name, retriable)
    assert error.message


def test_unknown_code_is_not_a_member() -> None:
    with pytest.raises(ValueError, match="4711"):
        ErrorCode(4711)


def test_codes_have_no_gaps() -> None:
    assert sorted(ErrorCode) == list(range(-1, max(ErrorCode) + 1))
