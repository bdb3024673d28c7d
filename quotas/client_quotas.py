"""The quotas that were altered while the broker runs (KIP-546): by entity and key, and the rules for both.

Follows ClientQuotaControlManager and ClientQuotasImage of Kafka. Different on purpose: an address is one, or
`localhost`, since looking up another name would keep all clients waiting; and NaN, which slips through Kafka's tests,
is refused as infinity is.
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
# Type -> name, as on the wire: None is the default entity of the type. At least one, and each once.
Entity = Mapping[str, str | None]

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1
# Key -> the largest value of those that must be whole, with what Kafka calls them; None: any.
_OF_CLIENTS: dict[str, tuple[int, str] | None] = {
    PRODUCER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    CONSUMER_BYTE_RATE: (_LONG_MAX, "a LONG"),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: dict[str, tuple[int, str] | None] = {CONNECTION_CREATION_RATE: (_INT_MAX, "an INT")}
_WHOLE_WITHIN = 1e-6  # Kafka takes a double that is this near to a whole number for one


class ClientQuotas:
    """What was altered, by entity; the stores then have what holds."""

    def __init__(self, stores: QuotaStores) -> None:
        self._stores = stores
        self._set: dict[frozenset[tuple[str, str | None]], tuple[Entity, dict[str, float]]] = {}

    def refusal(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        """Why the quotas of `entity` cannot be altered so, None if they can; a value of None removes a quota."""
        problem = _refused_entity(entity)
        if problem is not None:
            return problem
        keys = _OF_ADDRESSES if IP in entity else _OF_CLIENTS
        for key, value in changes.items():
            # What is not set can be removed, whatever it is.
            problem = None if value is None else _refused_value(keys, key, value)
            if problem is not None:
                return problem
        return None

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Makes changes that `refusal` lets pass. They hold from the next request on; what was recorded stays."""
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

    def matching(
        self, exact: Entity, specified: Collection[str], *, strict: bool
    ) -> list[tuple[Entity, dict[str, float]]]:
        """The entities that have these names, None for the default one, and any name of the types `specified`; with
        `strict` those without any other type, in the order in which they were first set.
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
            assert address is not None, "what is no address is refused"
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
        return "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
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
    if value > float(largest):  # as a double, as which 2^63 is not too large
        return f"Proposed value for {key} is too large for {called}."
    return f"{key} cannot be a fractional value." if value % 1 > _WHOLE_WITHIN else None


def _name(entity: Entity, type_: str) -> Name:
    if type_ not in entity:
        return None
    name = entity[type_]
    return DEFAULT if name is None else name
