"""DescribeAcls: entries by resource. The answers are those of a Kafka 4.4 but for their order, which is none there."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, alice, secured_broker
from tests.support.virtual_broker import VirtualBroker

ACLS = [
    acl(AclOperation.READ),
    acl(AclOperation.WRITE, permission_type=AclPermissionType.DENY, principal="User:bob", host="127.0.0.1"),
    acl(AclOperation.READ, name="tea", pattern_type=PatternType.PREFIXED),
    acl(AclOperation.READ, ResourceType.GROUP, "*"),
]
T = (2, "t", 3, [("User:alice", "*", 3, 3), ("User:bob", "127.0.0.1", 4, 2)])
TEA = (2, "tea", 4, [("User:alice", "*", 3, 3)])
GROUPS = (3, "*", 3, [("User:alice", "*", 3, 3)])


def request(**fields: Any) -> DescribeAclsRequest:
    """For all entries, unless told otherwise."""
    everything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return DescribeAclsRequest(**(everything | fields))


def described(broker: VirtualBroker, version: int = 3, **fields: Any) -> list[Any]:
    answer = broker.client().ask(request(**fields), version)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            [(one.principal, one.host, one.operation, one.permission_type) for one in resource.acls],
        )
        for resource in answer.resources
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [T, TEA, GROUPS], id="all, by resource"),
        pytest.param({"resource_name_filter": "team", "pattern_type_filter": 2}, [TEA, GROUPS], id="what applies"),
        pytest.param({"permission_type": 2}, [(2, "t", 3, [T[3][1]])], id="of a resource only what matches"),
        pytest.param({"resource_name_filter": ""}, [], id="name that nothing has"),
        *(
            pytest.param({field: 99}, [], id=f"{field} of a number that nobody knows")
            for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        ),
    ],
)
def test_it_describes(fields: dict[str, Any], expected: list[Any]) -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create(ACLS)
    assert described(broker, **fields) == expected


def test_version_0_asks_for_literal_entries() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create(ACLS)
    assert described(broker, version=0) == [T, GROUPS]


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_unknown_itself_closes_the_connection(field: str) -> None:
    client = secured_broker().client()
    client.send(request(**{field: 0}), 3)
    assert (client.take_answers(), client.is_open) == ([], False)


def test_without_an_authorizer_security_is_disabled() -> None:
    answer = VirtualBroker().client().ask(request(), 3)
    assert (answer.error_code, answer.error_message, answer.resources) == (
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured on the broker",
        [],
    )


def test_a_client_that_must_not_describe_the_cluster_is_told_what_it_needs() -> None:
    answer = alice(secured_broker()).ask(request(), 3)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        "Request DescribeAcls needs DESCRIBE permission.",
    )
