"""The quotas that AlterClientQuotas sets (KIP-546), by entity and key, and their validation.

Follows Kafka's `ClientQuotaControlManager` and `ClientQuotasImage`. Different on purpose: IP entities are addresses or
`localhost`, as resolving other host names would block all clients.
"""

from collections.abc import Collection, Mapping
from math import isfinite

from .address import normal_address
from .entity import DEFAULT, Name, QuotaEntity
from .store import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaStores,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
# Type -> name as on the wire; None: the type's default entity.
Entity = Mapping[str, str | None]

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1
# Key -> the largest value and Kafka's name of the type, if only whole numbers are valid; None: any number.
_OF_CLIENTS: dict[str, tuple[int, str] | None] = {
    PRODUCER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    CONSUMER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: dict[str, tuple[int, str] | None] = {CONNECTION_CREATION_RATE: (_INT_MAX, "an INT")}
_WHOLE_WITHIN = 1e-6  # Kafka accepts a double this close to a whole number


class ClientQuotas:
    """The altered quotas by entity; the resulting quotas are in the stores."""

    def __init__(self, stores: QuotaStores) -> None:
        self._stores = stores
        self._refused: dict[str, str] = {}  # key -> why it cannot be set
        self._set: dict[frozenset[tuple[str, str | None]], tuple[Entity, dict[str, float]]] = {}

    def refuse(self, key: str, reason: str) -> None:
        """Refuse new values of a key."""
        self._refused[key] = reason

    def refusal(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        """Return why these changes are invalid, or None; a value of None removes a quota."""
        problem = _refused_entity(entity)
        if problem is not None:
            return problem
        keys = _OF_ADDRESSES if IP in entity else _OF_CLIENTS
        for key, value in changes.items():
            # Any key can be removed, even an unknown one.
            problem = None if value is None else self._refused.get(key) or _refused_value(keys, key, value)
            if problem is not None:
                return problem
        return None

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Apply changes that `refusal` accepts, from the next request on; recorded use is kept."""
        identity = frozenset(entity.items())
        _, quotas = self._set.setdefault(identity, (entity, {}))
        for key, value in changes.items():
            if value is not None:
                quotas[key] = value
            elif quotas.pop(key, None) is None:
                continue  # it was not set
            self._apply(entity, key, value)
        if not quotas:
            del self._set[identity]

    def clear(self) -> int:
        """Remove all quotas, those of properties too; return their number."""
        self._set.clear()
        return self._stores.clear()

    def matching(
        self, exact: Entity, specified: Collection[str], *, strict: bool
    ) -> list[tuple[Entity, dict[str, float]]]:
        """Return the entities that match a filter, in the order in which they were first set.

        Args:
            exact: Types whose name must be equal; None matches the default entity.
            specified: Types that may have any name.
            strict: Whether to leave out entities with other types.
        """
        return [
            (entity, quotas)
            for entity, quotas in self._set.values()
            if (not strict or len(entity) == len(exact) + len(specified))
            and all(type_ in entity and entity[type_] == name for type_, name in exact.items())
            and all(type_ in entity for type_ in specified)
        ]

    def _apply(self, entity: Entity, key: str, value: float | None) -> None:
        if IP in entity:
            name = entity[IP]
            address = DEFAULT if name is None else normal_address(name)
            assert address is not None, "refusal() rejects invalid addresses"
            self._stores.of_addresses.alter(address, value)
        else:
            client = QuotaEntity(_name(entity, USER), _name(entity, CLIENT_ID))
            self._stores.of_clients[key].alter(client, value)


def _refused_entity(entity: Entity) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for type_, name in entity.items():
        if type_ not in TYPES:
            return f"Unhandled client quota entity type: {type_}"
        if name == "":
            return f"Empty {type_} not supported"
    if IP in entity and len(entity) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = entity.get(IP)
    if address is not None and normal_address(address) is None:
        return f"{address} is not a valid IP or resolvable host."
    return None


def _refused_value(keys: Mapping[str, tuple[int, str] | None], key: str, value: float) -> str | None:
    if key not in keys:
        return f"Invalid configuration key {key}"
    if not isfinite(value):
        return f"Quota {key} must be a finite number"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    bound = keys[key]
    if bound is None:
        return None
    largest, called = bound
    if value > float(largest):  # rounded to a double, so 2^63 passes, as in Kafka
        return f"Proposed value for {key} is too large for {called}."
    return f"{key} cannot be a fractional value." if value % 1 > _WHOLE_WITHIN else None


def _name(entity: Entity, type_: str) -> Name:
    if type_ not in entity:
        return None
    name = entity[type_]
    return DEFAULT if name is None else name
