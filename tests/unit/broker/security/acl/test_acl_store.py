"""The ACL entries of a cluster and the index of the entries."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.security.acl.acl import Acl, AclOperation, PatternType, ResourceType
from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST, Acls
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, acl_filter, in_memory

NAMES = ("", "a", "ab", "abc", "b", "*")
SOME_ACLS = st.builds(
    acl,
    st.sampled_from([AclOperation.READ, AclOperation.WRITE]),
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*"]),
)


def new_acls() -> Acls:
    return Acls(Random(0).randbytes, in_memory)


def indexed_entries(acls: Acls, resource_type: ResourceType, name: str) -> list[Acl]:
    """Return the indexed entries that apply to a resource."""
    patterns = list(acls.on(resource_type, name))
    for by_principal in patterns:
        for principal, entries in by_principal.items():
            assert entries, "the index must drop principals without entries"
            assert {one.principal for one in entries} == {principal}
    return sorted(one for by_principal in patterns for entries in by_principal.values() for one in entries)


def test_existing_entry_is_not_created_again() -> None:
    acls, entry = new_acls(), acl(AclOperation.READ)
    assert acls.create([entry, entry]) == ErrorCode.NONE
    (created,) = acls.items()
    assert acls.create([entry]) == ErrorCode.NONE
    assert list(acls.items()) == [created]


def test_every_entry_has_a_unique_id() -> None:
    acls = new_acls()
    acls.create(acl(AclOperation.READ, name=f"t{number}") for number in range(10))
    ids = [acl_id for acl_id, _ in acls.items()]
    assert {len(acl_id) for acl_id in ids} == {16}
    assert len(set(ids)) == 10


def test_request_with_too_many_entries_creates_none() -> None:
    acls = new_acls()
    many = [acl(AclOperation.READ, name=f"t{number}") for number in range(MAX_PER_REQUEST + 1)]
    assert acls.create(many) == ErrorCode.POLICY_VIOLATION
    assert len(acls) == 0
    assert acls.create(many[:-1]) == ErrorCode.NONE
    assert acls.create(many) == ErrorCode.NONE, "existing entries do not count"


def test_added_entries_match_and_deleted_entries_do_not() -> None:
    acls, entry = new_acls(), acl(AclOperation.READ)
    acls.add(b"i" * 16, entry)
    assert acls.matching(acl_filter()) == [entry]
    acls.delete([entry])
    assert (acls.matching(acl_filter()), indexed_entries(acls, ResourceType.TOPIC, "t"), len(acls)) == ([], [], 0)


@given(st.lists(st.tuples(st.booleans(), SOME_ACLS), max_size=30))
def test_index_contains_the_entries_for_a_name(steps: list[tuple[bool, Acl]]) -> None:
    acls, expected = new_acls(), set[Acl]()
    for adds, entry in steps:
        if adds:
            acls.create([entry])
            expected.add(entry)
        elif entry in expected:
            acls.delete([entry])
            expected.remove(entry)
    for resource_type in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER):
        for name in NAMES:
            matching = acl_filter(resource_type=resource_type, resource_name=name, pattern_type=PatternType.MATCH)
            assert indexed_entries(acls, resource_type, name) == sorted(
                one for one in expected if matching.matches(one)
            )
        of_alice = sorted(acls.of("User:alice", resource_type))
        assert of_alice == sorted(
            one for one in expected if one.resource_type == resource_type and one.principal != "User:bob"
        )
