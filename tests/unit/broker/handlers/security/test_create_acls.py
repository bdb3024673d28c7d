"""CreateAcls: accepted and rejected bindings; the responses were recorded from Kafka 4.4."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST
from sluice.protocol.apis.create_acls import AclCreation, CreateAclsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl_filter, alice, secured_broker
from tests.support.virtual_broker import VirtualBroker

NO_COLON = "(no colon is present separating the principal type from the principal name)"
OK = (ErrorCode.NONE, "")


def creation(**fields: Any) -> AclCreation:
    """Return a binding that allows alice to read topic "t", with these changes."""
    known: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**(known | fields))


def results(broker: VirtualBroker, *creations: AclCreation, version: int = 3) -> list[tuple[int, str | None]]:
    response = broker.client().call(CreateAclsRequest(creations=list(creations)), version)
    return [(result.error_code, result.error_message) for result in response.results]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="topic"),
        *(pytest.param({"resource_type": number}, id=f"resource type {number}") for number in (3, 5, 6, 7)),
        pytest.param({"resource_type": 4, "resource_name": "kafka-cluster"}, id="cluster by its name"),
        *(pytest.param({"operation": number}, id=f"operation {number}") for number in range(2, 16)),
        pytest.param({"permission_type": 2}, id="DENY"),
        pytest.param({"resource_pattern_type": 4}, id="prefixed pattern"),
        pytest.param({"resource_pattern_type": 4, "resource_name": "*"}, id="prefixed pattern *"),
        pytest.param({"resource_name": " "}, id="blank name"),
        pytest.param({"principal": "User:a:b"}, id="principal with two colons"),
        pytest.param({"principal": ":"}, id="principal of a single colon"),
        pytest.param({"principal": "Group:a"}, id="other principal type"),
        pytest.param({"host": "localhost"}, id="host name, which matches no client"),
        pytest.param({"host": " "}, id="blank host"),
        pytest.param({"operation": 12}, id="operation that does not apply to topics"),
    ],
)
def test_valid_binding_is_created(fields: dict[str, Any]) -> None:
    broker = secured_broker()
    assert results(broker, creation(**fields)) == [OK]
    (created,) = broker.broker.cluster.acls.matching(acl_filter())
    assert created == tuple(getattr(creation(**fields), name) for name in AclCreation.__struct_fields__[:7])


RESOURCE_TYPE = "Invalid resourceType UNKNOWN"
CLUSTER_NAME = "The only valid name for the CLUSTER resource is kafka-cluster"
INVALID_BINDINGS = {
    "unknown resource type": ({"resource_type": 8}, RESOURCE_TYPE),
    "negative resource type": ({"resource_type": -1}, RESOURCE_TYPE),
    "unknown pattern type": ({"resource_pattern_type": 5}, "Invalid patternType UNKNOWN"),
    "unknown operation": ({"operation": 16}, "Invalid operation UNKNOWN"),
    "unknown permission type": ({"permission_type": 4}, "Invalid permissionType UNKNOWN"),
    "cluster by another name": ({"resource_type": 4}, CLUSTER_NAME),
    "cluster without name": ({"resource_type": 4, "resource_name": ""}, CLUSTER_NAME),
    "no name": ({"resource_name": ""}, "Invalid empty resource name"),
    "no colon": ({"principal": "alice"}, f"Could not parse principal from `alice` {NO_COLON}"),
    "no principal": ({"principal": ""}, f"Could not parse principal from `` {NO_COLON}"),
    "no host": ({"host": ""}, "Host pattern cannot be null or empty"),
    "resource type precedes pattern type": ({"resource_type": 9, "resource_pattern_type": 9}, RESOURCE_TYPE),
    "operation precedes principal": ({"operation": 99, "principal": "a"}, "Invalid operation UNKNOWN"),
    "name precedes host": ({"host": "", "resource_name": ""}, "Invalid empty resource name"),
    "principal precedes host": ({"host": "", "principal": "a"}, f"Could not parse principal from `a` {NO_COLON}"),
}


@pytest.mark.parametrize(("fields", "message"), INVALID_BINDINGS.values(), ids=INVALID_BINDINGS)
def test_invalid_binding_is_rejected_without_affecting_others(fields: dict[str, Any], message: str) -> None:
    broker = secured_broker()
    responses = results(broker, creation(**fields), creation(resource_name="good"))
    assert responses == [(ErrorCode.INVALID_REQUEST, message), OK]
    assert [acl.resource_name for acl in broker.broker.cluster.acls.matching(acl_filter())] == ["good"]


FILTER_ONLY_VALUES = {
    "any resource": {"resource_type": 1},
    "any pattern": {"resource_pattern_type": 1},
    "matching patterns": {"resource_pattern_type": 2},
    "any operation": {"operation": 1},
    "any permission": {"permission_type": 1},
}


@pytest.mark.parametrize("fields", FILTER_ONLY_VALUES.values(), ids=FILTER_ONLY_VALUES)
def test_filter_only_value_fails_the_whole_request(fields: dict[str, Any]) -> None:
    broker = secured_broker()
    responses = results(broker, creation(**fields), creation(resource_name="good"))
    assert responses == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert len(broker.broker.cluster.acls) == 0


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_value_unknown_closes_the_connection(field: str) -> None:
    client = secured_broker().client()
    client.send(CreateAclsRequest(creations=[creation(), creation(**{field: 0})]), 3)
    assert (client.take_responses(), client.is_open) == ([], False)


def test_duplicate_binding_is_accepted() -> None:
    broker = secured_broker()
    assert results(broker, creation(), creation()) == [OK, OK]
    assert results(broker, creation()) == [OK]
    assert len(broker.broker.cluster.acls) == 1


def test_version_0_creates_literal_bindings() -> None:
    broker = secured_broker()
    assert results(broker, creation(), version=0) == [OK]
    assert broker.broker.cluster.acls.matching(acl_filter())[0].pattern_type.name == "LITERAL"


def test_excessively_large_request_creates_no_bindings() -> None:
    broker = secured_broker()
    many = [creation(resource_name=f"t{number}") for number in range(MAX_PER_REQUEST + 1)]
    responses = results(broker, creation(host=""), *many)
    rejected = ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
    assert responses == [(ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty")] + [rejected] * len(many)
    assert len(broker.broker.cluster.acls) == 0


def test_missing_authorizer_returns_security_disabled() -> None:
    responses = results(VirtualBroker(), creation(), creation(host=""))
    assert responses == [(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")] * 2


def test_client_without_alter_on_the_cluster_is_rejected() -> None:
    response = alice(secured_broker()).call(CreateAclsRequest(creations=[creation()]), 3)
    (result,) = response.results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert result.error_message == "Request CreateAcls needs ALTER permission."
