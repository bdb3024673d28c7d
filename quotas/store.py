"""The quotas in effect, by key: KIP-13's properties at start, overridden by AlterClientQuotas (KIP-546).

`quota.producer.default`, `quota.producer.override` and the same for consumers come from KIP-13; Kafka had the defaults
until 2.8 and never released the overrides. A cluster has one set of stores, which each broker's managers follow.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from sluice.config.broker_config import Config

from .entity import DEFAULT, Default, QuotaEntity

# Kafka's keys (QuotaConfig).
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Address = str | Default  # as `normal_address` writes it, or the default for all other addresses

_Entity = TypeVar("_Entity")


class QuotaStore(Generic[_Entity]):
    """The quotas of one key.

    A dynamic quota overrides the static one of the same entity, and removing it restores the static one. A static
    override for `gold` still wins over a dynamic default.
    """

    def __init__(self, static: Mapping[_Entity, float]) -> None:
        self._static = static
        self._holding = dict(static)
        self._followers: list[Callable[[_Entity, float | None], None]] = []

    @property
    def holding(self) -> Mapping[_Entity, float]:
        return self._holding

    def follow(self, apply: Callable[[_Entity, float | None], None]) -> None:
        """Call `apply(entity, bound)` for each quota in effect and for each later change; None: removed."""
        self._followers.append(apply)
        for entity, bound in self._holding.items():
            apply(entity, bound)

    def unfollow(self, apply: Callable[[_Entity, float | None], None]) -> None:
        if apply in self._followers:
            self._followers.remove(apply)

    def alter(self, entity: _Entity, bound: float | None) -> None:
        bound = self._static.get(entity) if bound is None else bound
        if bound is None:
            self._holding.pop(entity, None)
        else:
            self._holding[entity] = bound
        for apply in self._followers:
            apply(entity, bound)

    def clear(self) -> int:
        """Remove all quotas; return their number."""
        entities = [*self._holding]
        self._static = {}
        for entity in entities:
            self.alter(entity, None)
        return len(entities)


class QuotaStores:
    def __init__(self, config: Config) -> None:
        self.of_clients: dict[str, QuotaStore[QuotaEntity]] = {
            PRODUCER_BYTE_RATE: QuotaStore(_static(config, "quota.producer")),
            CONSUMER_BYTE_RATE: QuotaStore(_static(config, "quota.consumer")),
            REQUEST_PERCENTAGE: QuotaStore({}),
            CONTROLLER_MUTATION_RATE: QuotaStore({}),
        }
        self.of_addresses: QuotaStore[Address] = QuotaStore({})  # connections per second

    def clear(self) -> int:
        """Remove all quotas; return their number."""
        return sum(store.clear() for store in self.of_clients.values()) + self.of_addresses.clear()


def _static(config: Config, prefix: str) -> dict[QuotaEntity, float]:
    """Read KIP-13's properties, in bytes/s."""
    quotas = {QuotaEntity(client_id=name): bound for name, bound in config.rates(f"{prefix}.override").items()}
    default = config.rate(f"{prefix}.default")
    return quotas if default is None else {**quotas, QuotaEntity(client_id=DEFAULT): default}
