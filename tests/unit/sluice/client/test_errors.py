"""Exceptions with Kafka's names, class hierarchy and codes."""

import re
from typing import Any

import pytest

from sluice.client import errors
from sluice.client.errors import (
    INVALID_METADATA,
    ApiException,
    AuthorizationException,
    InvalidConfigurationException,
    InvalidMetadataException,
    KafkaException,
    RefreshRetriableException,
    RetriableException,
    TimeoutException,
    exception_of,
    is_retriable,
    raise_for,
)
from sluice.protocol.errors import ErrorCode
from tests.support.vectors import vectors


def test_names_and_retriability_are_kafkas() -> None:
    row: Any
    for row in vectors("errors-*"):
        if row["code"]:
            exception = exception_of(row["code"])
            assert type(exception).__name__ == row["exception"]
            assert isinstance(exception, RetriableException) == row["retriable"], row["name"]
            assert is_retriable(row["code"]) == row["retriable"]
            assert exception.code == row["code"]
            assert str(exception) == row["message"]


HIERARCHY = [
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, (InvalidMetadataException, RefreshRetriableException, RetriableException)),
    (ErrorCode.NOT_COORDINATOR, (RefreshRetriableException,)),
    (ErrorCode.TOPIC_AUTHORIZATION_FAILED, (AuthorizationException, InvalidConfigurationException)),
    (ErrorCode.UNKNOWN_PRODUCER_ID, (errors.OutOfOrderSequenceException,)),
    (ErrorCode.REQUEST_TIMED_OUT, (TimeoutException,)),
]


@pytest.mark.parametrize(("code", "ancestors"), HIERARCHY)
def test_class_hierarchy(code: ErrorCode, ancestors: tuple[type[ApiException], ...]) -> None:
    exception = exception_of(code)
    assert all(isinstance(exception, ancestor) for ancestor in (*ancestors, KafkaException))


def test_metadata_is_refreshed_after_these_errors_only() -> None:
    after = {code for code in ErrorCode if code and isinstance(exception_of(code), InvalidMetadataException)}
    assert after == INVALID_METADATA


def test_each_code_has_one_class_with_kafkas_name() -> None:
    assert errors.TopicExistsException is type(exception_of(ErrorCode.TOPIC_ALREADY_EXISTS))
    assert errors.TopicExistsException.__doc__ == ErrorCode.TOPIC_ALREADY_EXISTS.message
    assert errors.TimeoutException is TimeoutException
    names = {type(exception_of(code)).__name__ for code in ErrorCode if code}
    unlike_others = {name for name in names if not re.fullmatch(r"([A-Z][a-z0-9]+)+Exception", name)}
    assert unlike_others == {"OffsetMetadataTooLarge", "InvalidRegularExpression"}
    with pytest.raises(AttributeError, match="no attribute 'NoSuchException'"):
        _ = errors.NoSuchException


def test_broker_message_replaces_the_default_message() -> None:
    assert str(exception_of(ErrorCode.TOPIC_ALREADY_EXISTS, "t is there")) == "t is there"


def test_unknown_code_is_an_unknown_server_error() -> None:
    assert type(exception_of(4711)).__name__ == "UnknownServerException"
    assert not is_retriable(4711)


def test_raising() -> None:
    raise_for(0)
    with pytest.raises(TimeoutException):
        raise_for(7)


@pytest.mark.parametrize(("code", "name"), [(79, "MEMBER_ID_REQUIRED"), (-1, "UNKNOWN_SERVER_ERROR"), (9999, "9999")])
def test_code_is_displayed_by_name(code: int, name: str) -> None:
    assert errors.error_name(code) == name
