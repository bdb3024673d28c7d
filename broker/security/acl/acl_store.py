"""The access control lists of the cluster, indexed by resource pattern.

Follows AclControlManager (ids, existing entries) and AclCache. Kafka sorts and scans entries. Here each check is a few
lookups: the entries of the literal name, of `*`, and of each prefix of the name, limited to the client's principal and
`User:*`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import random_uuid

from .acl import WILDCARD, WILDCARD_PRINCIPAL, Acl, AclFilter, PatternType, ResourceType

# The maximum number of changes per request (QuorumController.MAX_RECORDS_PER_USER_OP).
MAX_PER_REQUEST = 10_000
ByPrincipal = dict[str, list[Acl]]
# Persists new entries with their ids and the ids of deleted ones, or returns an error.
WriteAcls = Callable[[Sequence[tuple[bytes, Acl]], Sequence[bytes]], ErrorCode]


class Acls:
    """Entries by id, with the index for authorization checks.

    `create` and `delete` persist changes; `add` and `remove` only apply them.
    """

    def __init__(self, random_bytes: Callable[[int], bytes], write: WriteAcls) -> None:
        self._random_bytes = random_bytes
        self._write = write
        self._by_id: dict[bytes, Acl] = {}
        self._ids: dict[Acl, bytes] = {}
        self._on = [_OnType() for _ in ResourceType]  # by number of the type

    def __len__(self) -> int:
        return len(self._by_id)

    def items(self) -> Iterable[tuple[bytes, Acl]]:
        return self._by_id.items()

    def create(self, acls: Iterable[Acl]) -> ErrorCode:
        distinct = dict.fromkeys(acls)
        if len(distinct) > MAX_PER_REQUEST + len(self._ids):  # however many of them exist
            return ErrorCode.POLICY_VIOLATION
        new = [acl for acl in distinct if acl not in self._ids]
        if len(new) > MAX_PER_REQUEST:
            return ErrorCode.POLICY_VIOLATION
        with_ids = [(self._new_id(), acl) for acl in new]
        failed = self._write(with_ids, ())
        if not failed:
            for acl_id, acl in with_ids:
                self.add(acl_id, acl)
        return failed

    def delete(self, acls: Collection[Acl]) -> ErrorCode:
        ids = [self._ids[acl] for acl in acls]
        failed = self._write((), ids)
        if not failed:
            for acl_id in ids:
                self.remove(acl_id)
        return failed

    def add(self, acl_id: bytes, acl: Acl) -> None:
        assert acl_id not in self._by_id, acl_id
        assert acl not in self._ids, acl
        self._by_id[acl_id] = acl
        self._ids[acl] = acl_id
        self._on[acl.resource_type].add(acl)

    def remove(self, acl_id: bytes) -> Acl:
        acl = self._by_id.pop(acl_id)
        del self._ids[acl]
        self._on[acl.resource_type].remove(acl)
        return acl

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return matching entries, sorted by resource; Kafka's order is undefined."""
        return sorted(acl for acl in self._ids if wanted.matches(acl))

    def on(self, resource_type: ResourceType, name: str) -> Iterator[ByPrincipal]:
        return self._on[resource_type].on(name)

    def of(self, principal: str, resource_type: ResourceType) -> Iterator[Acl]:
        for entries in self._on[resource_type].all():
            yield from entries.get(principal, ())
            if principal != WILDCARD_PRINCIPAL:
                yield from entries.get(WILDCARD_PRINCIPAL, ())

    def _new_id(self) -> bytes:
        while (acl_id := random_uuid(self._random_bytes)) in self._by_id:
            pass
        return acl_id


class _OnType:
    def __init__(self) -> None:
        self._literal: dict[str, ByPrincipal] = {}
        self._prefixed: dict[str, ByPrincipal] = {}

    def on(self, name: str) -> Iterator[ByPrincipal]:
        literal, prefixed = self._literal, self._prefixed
        if name in literal:
            yield literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield literal[WILDCARD]
        if prefixed:
            for end in range(len(name) + 1):
                if (entries := prefixed.get(name[:end])) is not None:
                    yield entries

    def all(self) -> Iterator[ByPrincipal]:
        return chain(self._literal.values(), self._prefixed.values())

    def add(self, acl: Acl) -> None:
        patterns, name = self._patterns(acl), acl.resource_name
        patterns.setdefault(name, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl: Acl) -> None:
        patterns, name = self._patterns(acl), acl.resource_name
        entries = patterns[name]
        entries[acl.principal].remove(acl)
        if not entries[acl.principal]:
            del entries[acl.principal]
        if not entries:
            del patterns[name]

    def _patterns(self, acl: Acl) -> dict[str, ByPrincipal]:
        return self._prefixed if acl.pattern_type == PatternType.PREFIXED else self._literal
