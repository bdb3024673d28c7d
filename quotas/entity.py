"""Who a quota is for, whose use is counted together, and which quota holds them.

Follows the default callback of Kafka's `ClientQuotaManager` (KIP-13, KIP-55, KIP-257) as of 4.2, where a level that has
lost its last quota is no longer looked at. Different here: what is no part of an entity or bucket is None, where Kafka
writes ""; so the empty client id can be a name like any other (KIP-13), or be treated as Kafka does.
"""

from typing import Final, Literal, Protocol

from msgspec import Struct

# What a client without an id gets. `shares_default`: "" is an id, so all such clients share one bucket, under its own
# quota or else the default one (KIP-13, Kafka up to 1.1). `unlimited`: it is no id, so no client-id quota finds it, not
# even the default; a user's quota does (Kafka 2.0 and later).
EmptyClientId = Literal["shares_default", "unlimited"]

# The user and client id whose use one sensor counts; None where the bucket does not ask for it.
Bucket = tuple[str | None, str | None]

# Of ASCII, what Java's URLEncoder leaves as it is, less "*", which is not safe in the name of an MBean.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_")


class Default:
    """The name that stands for everyone who has no quota of their own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<default>"


DEFAULT: Final = Default()

Name = str | Default | None


class QuotaEntity(Struct, frozen=True):
    """What a quota is set for: a user, a client id, or the two together; names are as clients give them, unencoded."""

    user: Name = None
    client_id: Name = None


class QuotaRules(Protocol):
    """What a manager asks: which bucket a client's use counts to, and which limit holds for a bucket."""

    @property
    def is_fixed(self) -> bool:
        """Whether buckets and limits change only with what is set, so that they may be remembered."""

    def __bool__(self) -> bool:
        """Whether any quota may hold at all."""

    def have_changed(self) -> bool:
        """Whether limits may have changed since this was asked last, otherwise than by what was set."""

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        """Sets the bound per second for `entity`; None removes it."""

    def bucket(self, user: str, client_id: str) -> Bucket:
        """Whose use a request of this user and client id counts to."""

    def limit(self, bucket: Bucket) -> float | None:
        """The bound that holds for a bucket, in units per second; None when there is none."""

    def holding(self, bucket: Bucket) -> QuotaEntity | None:
        """Whose bound that is; None when there is none, or no entity has it."""

    def candidates(self, user: str, client_id: str) -> "list[tuple[QuotaEntity, float | None]]":
        """The entities that may decide for a client, the most specific first, with the bounds that are set."""

    def why(self, user: str, client_id: str) -> str:
        """Why a client counts to its bucket, in words."""


class QuotaTable:
    """The quotas of one kind that are set, and the two questions asked of them: which bucket, which limit.

    There are three levels: client id, user, and the two together. While one level has all the quotas, its bucket is
    the client's. With more levels the most specific quota that matches decides the bucket, and then the bucket
    alone decides the limit: a quota for a user's every client gives each of these clients a bucket of its own.
    A default never makes a bucket: each client id without a quota of its own is counted alone.
    """

    __slots__ = ("_empty_client_id", "_quotas", "_quotas_per_level")

    is_fixed = True

    def __init__(self, empty_client_id: EmptyClientId) -> None:
        self._empty_client_id = empty_client_id
        self._quotas: dict[QuotaEntity, float] = {}
        self._quotas_per_level: dict[tuple[bool, bool], int] = {}  # (has a user, has a client id): how many, over 0

    def __bool__(self) -> bool:
        """Whether any quota is set at all."""
        return bool(self._quotas)

    def have_changed(self) -> bool:
        """Never."""
        return False

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        """Sets the bound per second for `entity`; None removes it, and does nothing where none is set."""
        level = (entity.user is not None, entity.client_id is not None)
        assert any(level), "a quota is for a user, a client id or both"
        before = len(self._quotas)
        if bound is None:
            self._quotas.pop(entity, None)
        else:
            self._quotas[entity] = bound
        count = self._quotas_per_level.pop(level, 0) + len(self._quotas) - before
        if count:
            self._quotas_per_level[level] = count

    def bucket(self, user: str, client_id: str) -> Bucket:
        """Whose use a request of this user and client id counts to."""
        found_user, found_client_id = self._most_specific(user, client_id)
        if self._empty_client_id == "unlimited":
            # Kafka 2.0 and later cannot tell an empty name from one that the bucket does not ask for.
            return found_user or None, found_client_id or None
        return found_user, found_client_id

    def limit(self, bucket: Bucket) -> float | None:
        """The bound that holds for a bucket, in units per second; None when there is none."""
        entity = self.holding(bucket)
        return None if entity is None else self._quotas[entity]

    def holding(self, bucket: Bucket) -> QuotaEntity | None:
        """Whose bound that is; None when there is none."""
        user, client_id = bucket
        users: tuple[Name, ...] = (None,) if user is None else (user, DEFAULT)
        client_ids: tuple[Name, ...] = (None,) if client_id is None else (client_id, DEFAULT)
        for entity in (QuotaEntity(u, c) for u in users for c in client_ids):
            if entity in self._quotas:
                return entity
        return None

    def candidates(self, user: str, client_id: str) -> list[tuple[QuotaEntity, float | None]]:
        """The entities that may decide for a client, the most specific first, with the bounds that are set."""
        entities = [*(entity for entity, _ in _more_specific(user, client_id)), *_of_client_ids(client_id)]
        return [(entity, self._quotas.get(entity)) for entity in entities]

    def why(self, user: str, client_id: str) -> str:
        """Why a client counts to its bucket, in words."""
        if not self._quotas_per_level:
            return "no quota of this kind is set, so nothing is counted"
        if self.bucket(user, client_id) == (None, None):
            return "the client has no id, which no quota of client ids holds (Kafka 2.0 and later)"
        if len(self._quotas_per_level) > 1:
            return "quotas are set at several levels: the most specific one that matches decides"
        ((by_user, by_client_id),) = self._quotas_per_level
        if by_user and by_client_id:
            return "all quotas are of users and client ids together: each pair is counted by itself"
        return f"all quotas are of {'users' if by_user else 'client ids'}: each is counted by itself"

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
    """The entities that say more than a client id, in the order of precedence, and the bucket each makes."""
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
    """A user's name as metrics show it: percent-encoded UTF-8. Follows Kafka's `Sanitizer`."""
    # Half a surrogate pair has no UTF-8; Java writes a question mark.
    return "".join(
        char if char in _UNRESERVED else "".join(f"%{byte:02X}" for byte in char.encode(errors="replace"))
        for char in name
    )
