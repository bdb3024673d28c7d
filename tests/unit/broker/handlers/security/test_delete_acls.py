"""DeleteAcls: filters and errors; the responses, except the order of entries, were recorded from Kafka 4.4."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import AclOperation, PatternType
from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST
from sluice.protocol.apis.delete_acls import DeleteAclsRequest
from sluice.protocol.apis.describe_acls import DescribeAclsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import FILTER_OF_ALL, acl, acl_filter, alice, secured_broker
from tests.support.virtual_broker import VirtualBroker

READ, WRITE = acl(AclOperation.READ), acl(AclOperation.WRITE)
PREFIXED = acl(AclOperation.READ, pattern_type=PatternType.PREFIXED)
OK = (ErrorCode.NONE, None)
UNKNOWN_PATTERN = (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
UNKNOWN_ENTRY = (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def delete_filter(**fields: Any) -> DescribeAclsRequest:
    """Return a filter that matches all entries, with these changes."""
    return DescribeAclsRequest(**(FILTER_OF_ALL | fields))


def deleted(broker: VirtualBroker, *filters: DescribeAclsRequest, version: int = 3) -> list[Any]:
    """Return for each filter its error, message, and the pattern type and operation of its entries."""
    response = broker.client().call(DeleteAclsRequest(filters=list(filters)), version)
    for result in response.filter_results:
        assert {(acl.error_code, acl.error_message) for acl in result.matching_acls} <= {OK}
    return [
        ((result.error_code, result.error_message), [(acl.pattern_type, acl.operation) for acl in result.matching_acls])
        for result in response.filter_results
    ]


DELETIONS = {
    "no filter": ([], [], [READ, WRITE, PREFIXED]),
    "all entries": ([delete_filter()], [(OK, [(3, 3), (3, 4), (4, 3)])], []),
    "one operation": ([delete_filter(operation=3)], [(OK, [(3, 3), (4, 3)])], [WRITE]),
    "no match": ([delete_filter(resource_name_filter="u")], [(OK, [])], [READ, WRITE, PREFIXED]),
    "overlapping filters both report their matches": (
        [delete_filter(operation=4), delete_filter(operation=4)],
        [(OK, [(3, 4)]), (OK, [(3, 4)])],
        [READ, PREFIXED],
    ),
    "unknown resource type": (
        [delete_filter(resource_type_filter=99), delete_filter(operation=4)],
        [(UNKNOWN_PATTERN, []), (OK, [(3, 4)])],
        [READ, PREFIXED],
    ),
    "unknown pattern type": ([delete_filter(pattern_type_filter=99)], [(UNKNOWN_PATTERN, [])], [READ, WRITE, PREFIXED]),
    "unknown operation": ([delete_filter(operation=99)], [(UNKNOWN_ENTRY, [])], [READ, WRITE, PREFIXED]),
    "unknown permission type": ([delete_filter(permission_type=99)], [(UNKNOWN_ENTRY, [])], [READ, WRITE, PREFIXED]),
}


@pytest.mark.parametrize(("filters", "responses", "remaining"), DELETIONS.values(), ids=DELETIONS)
def test_matching_entries_are_deleted(
    filters: list[DescribeAclsRequest], responses: list[Any], remaining: list[Any]
) -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ, WRITE, PREFIXED])
    assert deleted(broker, *filters) == responses
    assert broker.broker.cluster.acls.matching(acl_filter()) == remaining


def test_version_0_deletes_literal_entries() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ, WRITE, PREFIXED])
    assert deleted(broker, delete_filter(), version=0) == [(OK, [(3, 3), (3, 4)])]
    assert broker.broker.cluster.acls.matching(acl_filter()) == [PREFIXED]


def test_excessively_large_deletion_deletes_nothing() -> None:
    broker = secured_broker()
    acls = broker.broker.cluster.acls
    acls.create(acl(AclOperation.READ, name=f"t{number}") for number in range(MAX_PER_REQUEST))
    acls.create([WRITE])
    rejected = ErrorCode.INVALID_REQUEST, "Cannot remove more than 10000 acls in a single delete operation."
    assert deleted(broker, delete_filter(operation=4), delete_filter()) == [(rejected, []), (rejected, [])]
    assert len(acls) == MAX_PER_REQUEST + 1


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_value_unknown_closes_the_connection(field: str) -> None:
    client = secured_broker().client()
    client.send(DeleteAclsRequest(filters=[delete_filter(), delete_filter(**{field: 0})]), 3)
    assert (client.take_responses(), client.is_open) == ([], False)


def test_missing_authorizer_returns_security_disabled() -> None:
    rejected = ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."
    assert deleted(VirtualBroker(), delete_filter(), delete_filter()) == [(rejected, []), (rejected, [])]


def test_client_without_alter_on_the_cluster_is_rejected() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ])
    response = alice(broker).call(DeleteAclsRequest(filters=[delete_filter()]), 3)
    (result,) = response.filter_results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert result.error_message == "Request DeleteAcls needs ALTER permission."
    assert len(broker.broker.cluster.acls) == 1
