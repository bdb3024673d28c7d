"""DescribeAcls: filters and errors; the responses were recorded from Kafka 4.4, which returns them in any order."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import FILTER_OF_ALL, acl, alice, secured_broker
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
    """Return a request for all entries, with these changes."""
    return DescribeAclsRequest(**(FILTER_OF_ALL | fields))


def described(broker: VirtualBroker, version: int = 3, **fields: Any) -> list[Any]:
    response = broker.client().call(request(**fields), version)
    assert (response.error_code, response.error_message) == (0, "")
    return [
        (
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            [(entry.principal, entry.host, entry.operation, entry.permission_type) for entry in resource.acls],
        )
        for resource in response.resources
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [T, TEA, GROUPS], id="all entries, by resource"),
        pytest.param({"resource_name_filter": "team", "pattern_type_filter": 2}, [TEA, GROUPS], id="matching patterns"),
        pytest.param({"permission_type": 2}, [(2, "t", 3, [T[3][1]])], id="only matching entries of a resource"),
        pytest.param({"resource_name_filter": ""}, [], id="unknown name"),
        *(
            pytest.param({field: 99}, [], id=f"unknown {field}")
            for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        ),
    ],
)
def test_matching_entries_are_described(fields: dict[str, Any], expected: list[Any]) -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create(ACLS)
    assert described(broker, **fields) == expected


def test_version_0_describes_literal_entries() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create(ACLS)
    assert described(broker, version=0) == [T, GROUPS]


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_value_unknown_closes_the_connection(field: str) -> None:
    client = secured_broker().client()
    client.send(request(**{field: 0}), 3)
    assert (client.take_responses(), client.is_open) == ([], False)


def test_missing_authorizer_returns_security_disabled() -> None:
    response = VirtualBroker().client().call(request(), 3)
    assert (response.error_code, response.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert response.error_message == "No Authorizer is configured on the broker"


def test_client_without_describe_on_the_cluster_is_rejected() -> None:
    response = alice(secured_broker()).call(request(), 3)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.error_message == "Request DescribeAcls needs DESCRIBE permission."
