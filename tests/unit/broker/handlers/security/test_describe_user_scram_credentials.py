"""DescribeUserScramCredentials: mechanisms, iterations and errors."""

import pytest

from sluice.protocol.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

USERS = "sluice.sasl.users=alice:a,bob:b"
ALICE, BOB = ((name, 0, "", [(1, 4096), (2, 4096)]) for name in ("alice", "bob"))


def describe(*names: str, null: bool = False) -> list[tuple[str, int, str, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=None if null else [UserName(name=name) for name in names])
    response = VirtualBroker(USERS).client().call(request, 0)
    assert (response.error_code, response.error_message) == (0, "")
    return [
        (
            result.user,
            result.error_code,
            result.error_message,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in response.results
    ]


@pytest.mark.parametrize("null", [True, False], ids=["null", "empty list"])
def test_null_or_empty_list_describes_all_users(null: bool) -> None:
    assert describe(null=null) == [ALICE, BOB]


def test_named_user_is_described() -> None:
    assert describe("bob") == [BOB]


def test_unknown_user_is_rejected() -> None:
    message = "Attempt to describe a user credential that does not exist: carol"
    assert describe("alice", "carol") == [ALICE, ("carol", ErrorCode.RESOURCE_NOT_FOUND, message, [])]


def test_duplicate_user_is_rejected_once() -> None:
    message = "Cannot describe SCRAM credentials for the same user twice in a single request: bob"
    assert describe("bob", "alice", "bob") == [("bob", ErrorCode.DUPLICATE_RESOURCE, message, []), ALICE]
