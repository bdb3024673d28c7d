"""DescribeUserScramCredentials: mechanisms and iterations, and the two errors."""

import pytest

from sluice.protocol.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

USERS = "sluice.sasl.users=alice:a,bob:b"
BOTH = [(1, 4096), (2, 4096)]


def describe(*names: str, null: bool = False) -> list[tuple[str, int, str, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=None if null else [UserName(name=name) for name in names])
    answer = VirtualBroker(USERS).client().ask(request, 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (
            result.user,
            result.error_code,
            result.error_message,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in answer.results
    ]


@pytest.mark.parametrize("null", [True, False], ids=["null", "an empty list"])
def test_nobody_in_particular_is_everybody(null: bool) -> None:
    assert describe(null=null) == [("alice", 0, "", BOTH), ("bob", 0, "", BOTH)]


def test_one_of_them() -> None:
    assert describe("bob") == [("bob", 0, "", BOTH)]


def test_an_unknown_user_is_told() -> None:
    message = "Attempt to describe a user credential that does not exist: carol"
    assert describe("alice", "carol") == [
        ("alice", 0, "", BOTH),
        ("carol", ErrorCode.RESOURCE_NOT_FOUND, message, []),
    ]


def test_a_user_that_comes_twice_is_told_once() -> None:
    message = "Cannot describe SCRAM credentials for the same user twice in a single request: bob"
    assert describe("bob", "alice", "bob") == [
        ("bob", ErrorCode.DUPLICATE_RESOURCE, message, []),
        ("alice", 0, "", BOTH),
    ]
