"""DeleteAcls: what filters take away. The answers are those of a Kafka 4.4 but for the order of the entries."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import AclOperation, PatternType
from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST
from sluice.protocol.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, acl_filter, alice, secured_broker
from tests.support.virtual_broker import VirtualBroker

READ, WRITE = acl(AclOperation.READ), acl(AclOperation.WRITE)
PREFIXED = acl(AclOperation.READ, pattern_type=PatternType.PREFIXED)
OK = (ErrorCode.NONE, None)
UNKNOWN_PATTERN = (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
UNKNOWN_ENTRY = (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def one(**fields: Any) -> DeleteAclsFilter:
    """A filter for all entries, unless told otherwise."""
    everything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return DeleteAclsFilter(**(everything | fields))


def deleted(broker: VirtualBroker, *filters: DeleteAclsFilter, version: int = 3) -> list[Any]:
    """Of each filter the error, its message, and the operations of the entries it matched."""
    answer = broker.client().ask(DeleteAclsRequest(filters=list(filters)), version)
    for result in answer.filter_results:
        assert {(acl.error_code, acl.error_message) for acl in result.matching_acls} <= {OK}
    return [
        ((result.error_code, result.error_message), [(acl.pattern_type, acl.operation) for acl in result.matching_acls])
        for result in answer.filter_results
    ]


@pytest.mark.parametrize(
    ("filters", "answers", "left"),
    [
        pytest.param([], [], [READ, WRITE, PREFIXED], id="no filter"),
        pytest.param([one()], [(OK, [(3, 3), (3, 4), (4, 3)])], [], id="all"),
        pytest.param([one(operation=3)], [(OK, [(3, 3), (4, 3)])], [WRITE], id="one operation"),
        pytest.param([one(resource_name_filter="u")], [(OK, [])], [READ, WRITE, PREFIXED], id="nothing that is there"),
        pytest.param(
            [one(operation=4), one(operation=4)],
            [(OK, [(3, 4)]), (OK, [(3, 4)])],
            [READ, PREFIXED],
            id="two filters that match the same are both told",
        ),
        pytest.param(
            [one(resource_type_filter=99), one(operation=4)],
            [(UNKNOWN_PATTERN, []), (OK, [(3, 4)])],
            [READ, PREFIXED],
            id="type of resource that nobody knows",
        ),
        pytest.param(
            [one(pattern_type_filter=99)],
            [(UNKNOWN_PATTERN, [])],
            [READ, WRITE, PREFIXED],
            id="type of pattern that nobody knows",
        ),
        pytest.param(
            [one(operation=99)], [(UNKNOWN_ENTRY, [])], [READ, WRITE, PREFIXED], id="operation that nobody knows"
        ),
        pytest.param(
            [one(permission_type=99)],
            [(UNKNOWN_ENTRY, [])],
            [READ, WRITE, PREFIXED],
            id="permission that nobody knows",
        ),
    ],
)
def test_it_deletes(filters: list[DeleteAclsFilter], answers: list[Any], left: list[Any]) -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ, WRITE, PREFIXED])
    assert deleted(broker, *filters) == answers
    assert broker.broker.cluster.acls.matching(acl_filter()) == left


def test_version_0_deletes_literal_entries() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ, WRITE, PREFIXED])
    assert deleted(broker, one(), version=0) == [(OK, [(3, 3), (3, 4)])]
    assert broker.broker.cluster.acls.matching(acl_filter()) == [PREFIXED]


def test_too_many_at_once_are_none() -> None:
    broker = secured_broker()
    acls = broker.broker.cluster.acls
    acls.create(acl(AclOperation.READ, name=f"t{number}") for number in range(MAX_PER_REQUEST))
    acls.create([WRITE])
    refused = ErrorCode.INVALID_REQUEST, "Cannot remove more than 10000 acls in a single delete operation."
    assert deleted(broker, one(operation=4), one()) == [(refused, []), (refused, [])]
    assert len(acls) == MAX_PER_REQUEST + 1


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_unknown_itself_closes_the_connection(field: str) -> None:
    client = secured_broker().client()
    client.send(DeleteAclsRequest(filters=[one(), one(**{field: 0})]), 3)
    assert (client.take_answers(), client.is_open) == ([], False)


def test_without_an_authorizer_security_is_disabled() -> None:
    refused = ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."
    assert deleted(VirtualBroker(), one(), one()) == [(refused, []), (refused, [])]


def test_a_client_that_must_not_alter_the_cluster_is_told_what_it_needs() -> None:
    broker = secured_broker()
    broker.broker.cluster.acls.create([READ])
    answer = alice(broker).ask(DeleteAclsRequest(filters=[one()]), 3)
    (result,) = answer.filter_results
    assert (result.error_code, result.error_message) == (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        "Request DeleteAcls needs ALTER permission.",
    )
    assert len(broker.broker.cluster.acls) == 1
