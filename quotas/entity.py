"""Quota entities, the buckets in which use is counted, and the rules that select a bucket and its limit.

Follows `DefaultQuotaCallback` of Kafka's `ClientQuotaManager` (KIP-13, KIP-55, KIP-257) as of 4.2, where a level that
has lost its last quota is ignored. Different on purpose: a missing part of an entity or bucket is None, where Kafka
uses "". So the empty client id can be a client id (KIP-13) or be treated as in Kafka.
"""

from typing import Final, Literal, Protocol

from msgspec import Struct

# Quotas of clients without a client id. `shares_default`: one bucket, under its own quota or the default one (KIP-13,
# Kafka up to 1.1). `unlimited`: no client-id quota applies; user quotas do (Kafka 2.0 and later).
EmptyClientId = Literal["shares_default", "unlimited"]

# The user and client id whose use one sensor counts; None: all users or all client ids together.
Bucket = tuple[str | None, str | None]

# The characters that Java's URLEncoder leaves unchanged, without "*", which Kafka's Sanitizer encodes for MBean names.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_")


class Default:
    """The name of the default entity, which applies to all users or client ids without their own quota."""

    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Final = Default()

Name = str | Default | None


class QuotaEntity(Struct, frozen=True):
    """The user, client id or pair for which a quota is set; names are unencoded."""

    user: Name = None
    client_id: Name = None


class QuotaRules(Protocol):
    """The mapping from clients to buckets, and from buckets to limits, that a quota manager uses."""

    @property
    def is_fixed(self) -> bool:
        """Whether buckets and limits change only by `set`, so that a manager may cache them."""

    def __bool__(self) -> bool:
        """Return whether any quota may apply."""

    def have_changed(self) -> bool:
        """Return whether limits may have changed since the last call, other than by `set`."""

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        """Set the limit per second for `entity`; None removes it."""

    def bucket(self, user: str, client_id: str) -> Bucket:
        """Return the bucket that is charged for a request of this user and client id."""

    def limit(self, bucket: Bucket) -> float | None:
        """Return the limit per second of a bucket; None: unlimited."""

    def holding(self, bucket: Bucket) -> QuotaEntity | None:
        """Return the entity whose limit applies to the bucket; None if there is none."""

    def candidates(self, user: str, client_id: str) -> "list[tuple[QuotaEntity, float | None]]":
        """Return the entities that match a client, the most specific first, with their limits."""

    def why(self, user: str, client_id: str) -> str:
        """Return a readable reason for a client's bucket."""


class QuotaTable(Struct, eq=False):
    """The configured quotas of one kind, as `QuotaRules`.

    There are three levels: client id, user, and both. If quotas are set at only one level, that level defines the
    bucket. Otherwise the most specific matching quota selects the bucket, and the bucket alone selects the limit. A
    default quota limits each client id (or user) separately:

        quotas set: (alice, <default>) 10, (<default>, None) 20
        alice, app-1    bucket (alice, app-1)    limit 10
        alice, app-2    bucket (alice, app-2)    limit 10, separate from app-1
        bob, app-1      bucket (bob, None)       limit 20, shared by all of bob's client ids
    """

    is_fixed = True

    _empty_client_id: EmptyClientId
    _quotas: dict[QuotaEntity, float] = {}
    # (has a user, has a client id) -> number of quotas, above 0
    _quotas_per_level: dict[tuple[bool, bool], int] = {}

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def have_changed(self) -> bool:
        return False

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        level = (entity.user is not None, entity.client_id is not None)
        assert any(level), "quota entity: expected a user, a client id or both"
        before = len(self._quotas)
        if bound is None:
            self._quotas.pop(entity, None)
        else:
            self._quotas[entity] = bound
        count = self._quotas_per_level.pop(level, 0) + len(self._quotas) - before
        if count:
            self._quotas_per_level[level] = count

    def bucket(self, user: str, client_id: str) -> Bucket:
        found_user, found_client_id = self._most_specific(user, client_id)
        if self._empty_client_id == "unlimited":
            # Kafka 2.0 and later use "" for a missing part, so an empty name is missing too.
            return found_user or None, found_client_id or None
        return found_user, found_client_id

    def limit(self, bucket: Bucket) -> float | None:
        entity = self.holding(bucket)
        return None if entity is None else self._quotas[entity]

    def holding(self, bucket: Bucket) -> QuotaEntity | None:
        user, client_id = bucket
        users: tuple[Name, ...] = (None,) if user is None else (user, DEFAULT)
        client_ids: tuple[Name, ...] = (None,) if client_id is None else (client_id, DEFAULT)
        for entity in (QuotaEntity(u, c) for u in users for c in client_ids):
            if entity in self._quotas:
                return entity
        return None

    def candidates(self, user: str, client_id: str) -> list[tuple[QuotaEntity, float | None]]:
        entities = [*(entity for entity, _ in _more_specific(user, client_id)), *_of_client_ids(client_id)]
        return [(entity, self._quotas.get(entity)) for entity in entities]

    def why(self, user: str, client_id: str) -> str:
        if not self._quotas_per_level:
            return "no quota of this kind is set, so nothing is counted"
        if self.bucket(user, client_id) == (None, None):
            return "the client has no client id, so client-id quotas do not apply (Kafka 2.0 and later)"
        if len(self._quotas_per_level) > 1:
            return "quotas are set at several levels: the most specific match applies"
        ((by_user, by_client_id),) = self._quotas_per_level
        if by_user and by_client_id:
            return "all quotas are for pairs of user and client id: each pair is counted separately"
        part = "user" if by_user else "client id"
        return f"all quotas are for {part}s: each {part} is counted separately"

    def _most_specific(self, user: str, client_id: str) -> Bucket:
        if not self._quotas_per_level:
            return None, client_id
        if len(self._quotas_per_level) == 1:
            ((by_user, by_client_id),) = self._quotas_per_level
            return user if by_user else None, client_id if by_client_id else None
        for entity, bucket in _more_specific(user, client_id):
            if entity in self._quotas:
                return bucket
        return None, client_id


def _more_specific(user: str, client_id: str) -> tuple[tuple[QuotaEntity, Bucket], ...]:
    """Return the entities with a user in order of precedence, with the bucket that each selects."""
    both, user_alone = (user, client_id), (user, None)
    return (
        (QuotaEntity(user, client_id), both),
        (QuotaEntity(user, DEFAULT), both),
        (QuotaEntity(user, None), user_alone),
        (QuotaEntity(DEFAULT, client_id), both),
        (QuotaEntity(DEFAULT, DEFAULT), both),
        (QuotaEntity(DEFAULT, None), user_alone),
    )


def _of_client_ids(client_id: str) -> tuple[QuotaEntity, QuotaEntity]:
    return QuotaEntity(None, client_id), QuotaEntity(None, DEFAULT)


def sanitize(name: str) -> str:
    """Return a user name as metrics show it: percent-encoded UTF-8. Follows Kafka's `Sanitizer`."""
    # A lone surrogate has no UTF-8 encoding; like Java, write a question mark.
    return "".join(
        char if char in _UNRESERVED else "".join(f"%{byte:02X}" for byte in char.encode(errors="replace"))
        for char in name
    )
