"""The entries of the cluster: what changes them, and that the index has what the entries say after every change."""

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


def found(acls: Acls, resource_type: ResourceType, name: str) -> list[Acl]:
    """What the index says of a resource."""
    patterns = list(acls.on(resource_type, name))
    for by_principal in patterns:
        for principal, entries in by_principal.items():
            assert entries, "a pattern keeps a principal without entries"
            assert {one.principal for one in entries} == {principal}
    return sorted(one for by_principal in patterns for entries in by_principal.values() for one in entries)


def test_what_is_there_already_is_not_created_again() -> None:
    acls, entry = new_acls(), acl(AclOperation.READ)
    assert acls.create([entry, entry]) == ErrorCode.NONE
    (known,) = acls.items()
    assert acls.create([entry]) == ErrorCode.NONE
    assert list(acls.items()) == [known]


def test_every_entry_has_an_id_of_its_own() -> None:
    acls = new_acls()
    acls.create(acl(AclOperation.READ, name=f"t{number}") for number in range(10))
    ids = [acl_id for acl_id, _ in acls.items()]
    assert {len(acl_id) for acl_id in ids} == {16}
    assert len(set(ids)) == 10


def test_of_too_many_none_is_created() -> None:
    acls = new_acls()
    many = [acl(AclOperation.READ, name=f"t{number}") for number in range(MAX_PER_REQUEST + 1)]
    assert acls.create(many) == ErrorCode.POLICY_VIOLATION
    assert len(acls) == 0
    assert acls.create(many[:-1]) == ErrorCode.NONE
    assert acls.create(many) == ErrorCode.NONE, "those that are there already do not count"


def test_entries_are_found_as_they_were_filled_in_and_are_gone_when_deleted() -> None:
    acls, entry = new_acls(), acl(AclOperation.READ)
    acls.add(b"i" * 16, entry)
    assert acls.matching(acl_filter()) == [entry]
    acls.delete([entry])
    assert (acls.matching(acl_filter()), found(acls, ResourceType.TOPIC, "t"), len(acls)) == ([], [], 0)


@given(st.lists(st.tuples(st.booleans(), SOME_ACLS), max_size=30))
def test_the_index_has_what_applies_to_a_name(steps: list[tuple[bool, Acl]]) -> None:
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
            assert found(acls, resource_type, name) == sorted(one for one in expected if matching.matches(one))
        of_alice = sorted(acls.of("User:alice", resource_type))
        assert of_alice == sorted(
            one for one in expected if one.resource_type == resource_type and one.principal != "User:bob"
        )
