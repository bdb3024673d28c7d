"""Decisions of the authorizer: examples, and a comparison with a naive implementation."""

import logging
from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.security.acl.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.acl.acl_store import Acls
from sluice.broker.security.acl.authorizer import ANY_NAME, Authorizer
from sluice.config.broker_config import Config
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.produce import PartitionProduceData, TopicProduceData
from tests.support.acls import ALICE, AUTHORIZER_ON, acl, alice, in_memory, secured_broker
from tests.support.records import batch, produce

DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
HOST = "127.0.0.1"


def authorizer(acls: Collection[Acl], *overrides: str) -> Authorizer:
    store = Acls(Random(0).randbytes, in_memory)
    store.create(acls)
    return Authorizer(Config.load(None, [AUTHORIZER_ON, *overrides]), store)


# -- examples ----------------------------------------------------------------------------------------------------------


ACLS = {
    "no entry": ([], READ, False),
    "matching entry": ([acl(READ)], READ, True),
    "all operations": ([acl(ALL)], READ, True),
    "other operation": ([acl(WRITE)], READ, False),
    "other resource type": ([acl(READ, GROUP)], READ, False),
    "other name": ([acl(READ, name="u")], READ, False),
    "wildcard name": ([acl(READ, name="*")], READ, True),
    "empty prefix": ([acl(READ, name="", pattern_type=PREFIXED)], READ, True),
    "prefix equal to the name": ([acl(READ, pattern_type=PREFIXED)], READ, True),
    "prefix longer than the name": ([acl(READ, name="tt", pattern_type=PREFIXED)], READ, False),
    "* as a prefix is not a wildcard": ([acl(READ, name="*", pattern_type=PREFIXED)], READ, False),
    "wildcard principal": ([acl(READ, principal="User:*")], READ, True),
    "wildcard of another principal type": ([acl(READ, principal="Group:*")], READ, False),
    "user names are case-sensitive": ([acl(READ, principal="User:ALICE")], READ, False),
    "matching host": ([acl(READ, host=HOST)], READ, True),
    "other host": ([acl(READ, host="127.0.0.2")], READ, False),
    "range with the host": ([acl(READ, host="127.3.0.0/8")], READ, True),
    "other range": ([acl(READ, host="126.0.0.0/8")], READ, False),
    "range of the other family": ([acl(READ, host="::/0")], READ, False),
    "no range": ([acl(READ, host="127.0.0.0/x")], READ, False),
    "DENY for a range": ([acl(READ), acl(READ, host="0.0.0.0/0", permission_type=DENY)], READ, False),
    "DENY takes precedence over ALLOW": ([acl(ALL), acl(READ, permission_type=DENY)], READ, False),
    "DENY of all operations": ([acl(READ), acl(ALL, permission_type=DENY)], READ, False),
    "DENY for all principals": (
        [acl(READ), acl(READ, name="*", principal="User:*", permission_type=DENY)],
        READ,
        False,
    ),
    "DENY for another host": ([acl(READ), acl(READ, host="127.0.0.2", permission_type=DENY)], READ, True),
    "DENY implies no other operation": ([acl(WRITE, permission_type=DENY), acl(READ)], DESCRIBE, True),
}


@pytest.mark.parametrize(("acls", "operation", "expected"), ACLS.values(), ids=ACLS)
def test_acls_decide_for_a_user(acls: list[Acl], operation: AclOperation, expected: bool) -> None:
    assert authorizer(acls).decide(ALICE, HOST, operation, TOPIC, "t")[0] is expected


IMPLIED = [
    (DESCRIBE, {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    (AclOperation.DESCRIBE_CONFIGS, {AclOperation.ALTER_CONFIGS}),
    *((one, set()) for one in AclOperation if one not in (DESCRIBE, AclOperation.DESCRIBE_CONFIGS)),
]


@pytest.mark.parametrize(("operation", "implied_by"), IMPLIED)
def test_operation_is_implied_by(operation: AclOperation, implied_by: set[AclOperation]) -> None:
    allowing = {one for one in AclOperation if authorizer([acl(one)]).decide(ALICE, HOST, operation, TOPIC, "t")[0]}
    assert allowing == implied_by | {operation, ALL}


WITHOUT_ENTRIES = {
    "no entry": ([], "t", True),
    "entry for another name only": ([acl(READ, name="u")], "t", True),
    "entry for another user": ([acl(READ, principal="User:bob")], "t", False),
    "wildcard entry for another user": ([acl(READ, name="*", principal="User:bob")], "t", False),
    "prefix entry for another host": ([acl(READ, host="h", pattern_type=PREFIXED)], "tea", False),
}


@pytest.mark.parametrize(("acls", "name", "expected"), WITHOUT_ENTRIES.values(), ids=WITHOUT_ENTRIES)
def test_allow_everyone_applies_if_no_entry_matches_the_resource(acls: list[Acl], name: str, expected: bool) -> None:
    decision = authorizer(acls, "allow.everyone.if.no.acl.found=true").decide(ALICE, HOST, WRITE, TOPIC, name)
    assert decision[0] is expected


def test_super_users_are_allowed_everything() -> None:
    users = authorizer([acl(ALL, principal="User:*", permission_type=DENY)], "super.users=User:alice; Group:b,c ;")
    principals = ("User:alice", "Group:b,c", "User:bob", "User:")
    assert [users.decide(principal, HOST, READ, TOPIC, "t")[0] for principal in principals] == [
        True,
        True,
        False,
        False,
    ]


# -- comparison with a naive authorizer --------------------------------------------------------------------------------


def naive(acls: Collection[Acl], default: bool, principal: str, host: str, operation: AclOperation, name: str) -> bool:
    """Return the decision of StandardAuthorizerData for a topic, without its sorted map."""
    applicable = [
        one
        for one in acls
        if one.resource_type == TOPIC
        and (name.startswith(one.resource_name) if one.pattern_type == PREFIXED else one.resource_name in (name, "*"))
    ]
    if not applicable:
        return default
    for_client = [one for one in applicable if one.principal in (principal, "User:*") and one.host in (host, "*")]
    if any(one.permission_type == DENY and one.operation in (operation, ALL) for one in for_client):
        return False
    implying = {operation, ALL}
    if operation == DESCRIBE:
        implying |= {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER}
    if operation == AclOperation.DESCRIBE_CONFIGS:
        implying |= {AclOperation.ALTER_CONFIGS}
    return any(one.permission_type != DENY and one.operation in implying for one in for_client)


def naive_by_type(acls: Collection[Acl], default: bool, principal: str, host: str, operation: AclOperation) -> bool:
    """Return the decision of Authorizer.authorizeByResourceType."""
    if naive(acls, default, principal, host, operation, "hardcode"):
        return True
    denied, allowed = list[tuple[PatternType, str]](), list[tuple[PatternType, str]]()
    for one in acls:
        if one.resource_type != TOPIC or one.host not in (host, "*") or one.principal not in (principal, "User:*"):
            continue
        if one.operation not in (operation, ALL):
            continue
        if one.permission_type == DENY and (one.pattern_type, one.resource_name) == (PatternType.LITERAL, "*"):
            return False
        (denied if one.permission_type == DENY else allowed).append((one.pattern_type, one.resource_name))
    for kind, name in allowed:
        if (kind, name) == (PatternType.LITERAL, "*"):
            return True
        dominated = any((PREFIXED, name[: end + 1]) in denied for end in range(len(name)))
        if not dominated and not (kind == PatternType.LITERAL and (kind, name) in denied):
            return True
    return False


NAMES = ("*", "h", "hard", "hardcode", "t", "te", "tea", "team", "*x")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice")
HOSTS = ("*", HOST, "127.0.0.2")
ENTRIES = st.lists(
    st.builds(
        acl,
        st.sampled_from([ALL, READ, WRITE, AclOperation.ALTER, AclOperation.ALTER_CONFIGS, DESCRIBE]),
        st.sampled_from([TOPIC, TOPIC, TOPIC, GROUP]),
        st.sampled_from(NAMES),
        pattern_type=st.sampled_from([PatternType.LITERAL, PREFIXED]),
        principal=st.sampled_from(PRINCIPALS),
        host=st.sampled_from(HOSTS),
        permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, DENY]),
    ),
    max_size=12,
)


@given(acls=ENTRIES, default=st.booleans())
def test_decisions_match_the_naive_authorizer(acls: list[Acl], default: bool) -> None:
    fast = authorizer(acls, f"allow.everyone.if.no.acl.found={str(default).lower()}")
    for principal in PRINCIPALS:
        for host in HOSTS[1:]:
            for operation in (READ, WRITE, DESCRIBE, AclOperation.DESCRIBE_CONFIGS):
                for name in NAMES:
                    expected = naive(acls, default, principal, host, operation, name)
                    decision, rule = fast.decide(principal, host, operation, TOPIC, name)
                    assert decision == expected, (principal, host, operation, name, rule)


@given(
    acls=ENTRIES, default=st.booleans(), principal=st.sampled_from(PRINCIPALS), operation=st.sampled_from([READ, WRITE])
)
def test_decisions_by_resource_type_match_the_naive_authorizer(
    acls: list[Acl], default: bool, principal: str, operation: AclOperation
) -> None:
    fast = authorizer(acls, f"allow.everyone.if.no.acl.found={str(default).lower()}")
    decision = fast.decide(principal, HOST, operation, TOPIC, ANY_NAME)[0] or fast.allows_some(
        principal, HOST, operation, TOPIC
    )
    assert decision == naive_by_type(acls, default, principal, HOST, operation)


# -- the audit log -----------------------------------------------------------------------------------------------------


def audit(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "sluice.broker.authorizer"
    ]


def test_denial_is_one_audit_line(caplog: pytest.LogCaptureFixture) -> None:
    broker = secured_broker()
    broker.topic()
    with caplog.at_level(logging.INFO, "sluice.broker.authorizer"):
        request = produce(9)
        request.topic_data = [
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(index=index, records=batch()) for index in (0, 1)]
            )
        ]
        alice(broker).call(request, 9)
    assert audit(caplog) == [
        (
            "INFO",
            "Principal = User:alice is Denied operation = WRITE from host = 127.0.0.1 on resource = Topic:LITERAL:t "
            "for request = Produce with resourceRefCount = 2 based on rule DefaultDeny",
        )
    ]


def test_line_break_in_a_resource_name_is_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sluice.broker.authorizer"):
        alice(secured_broker()).call(FindCoordinatorRequest(key="a\nPrincipal = User:bob is Allowed"), 3)
    ((_, line),) = audit(caplog)
    assert "Group:LITERAL:a\\nPrincipal = User:bob is Allowed for request" in line
    assert "\n" not in line


def test_permission_is_one_audit_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    broker = secured_broker()
    entry = acl(DESCRIBE, ResourceType.TRANSACTIONAL_ID, "tx")
    broker.broker.cluster.acls.create([entry])
    with caplog.at_level(logging.DEBUG, "sluice.broker.authorizer"):
        alice(broker).call(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert audit(caplog) == [
        (
            "DEBUG",
            "Principal = User:alice is Allowed operation = DESCRIBE from host = 127.0.0.1 on resource = "
            "TransactionalId:LITERAL:tx for request = FindCoordinator with resourceRefCount = 1 based on rule "
            f"MatchingAcl(acl={entry})",
        )
    ]


def test_filtering_of_lists_is_not_audited(caplog: pytest.LogCaptureFixture) -> None:
    broker = secured_broker()
    broker.topic()
    broker.broker.groups.create_classic("group")
    with caplog.at_level(logging.INFO, "sluice.broker.authorizer"):
        client = alice(broker)
        assert client.call(MetadataRequest(topics=None), 9).topics == []
        assert client.call(ListGroupsRequest(), 4).groups == []
    assert audit(caplog) == []
