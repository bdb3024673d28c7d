"""Which quotas hold, by key: KIP-13's properties to begin with, then what was altered while running.

`quota.producer.default`, `quota.producer.override` and their consumer twins are KIP-13's; Kafka had the defaults until
2.8 and never had the overrides. Here they seed the quotas at start, and an alteration (KIP-546) goes before them.

There is one set of stores for the cluster; each broker's managers follow them.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from sluice.config.broker_config import Config

from .entity import DEFAULT, Default, QuotaEntity

# Kafka's names of the quotas (QuotaConfig).
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Address = str | Default  # of a client, as `ipaddress` writes it, or all that have no quota of their own

_Entity = TypeVar("_Entity")


class QuotaStore(Generic[_Entity]):
    """The quotas of one key, by where they come from; whoever follows it always has those that hold.

    Dynamic goes before static entity by entity, and only then the most specific entity wins: a static override for
    `gold` holds against a dynamic default. When a dynamic quota is removed, the static one of its entity is back.
    """

    def __init__(self, static: Mapping[_Entity, float]) -> None:
        self._static = static
        self._holding = dict(static)
        self._followers: list[Callable[[_Entity, float | None], None]] = []

    @property
    def holding(self) -> Mapping[_Entity, float]:
        """The quotas that hold, by entity."""
        return self._holding

    def follow(self, apply: Callable[[_Entity, float | None], None]) -> None:
        """Calls `apply(entity, bound)` for each quota that holds, and from now on for each that changes; None: none."""
        self._followers.append(apply)
        for entity, bound in self._holding.items():
            apply(entity, bound)

    def unfollow(self, apply: Callable[[_Entity, float | None], None]) -> None:
        """Calls it no more; one that does not follow need not be called."""
        if apply in self._followers:
            self._followers.remove(apply)

    def alter(self, entity: _Entity, bound: float | None) -> None:
        """Sets the dynamic quota of `entity` per second; None removes it."""
        bound = self._static.get(entity) if bound is None else bound
        if bound is None:
            self._holding.pop(entity, None)
        else:
            self._holding[entity] = bound
        for apply in self._followers:
            apply(entity, bound)


class QuotaStores:
    """All quotas of a cluster."""

    __slots__ = ("of_addresses", "of_clients")

    def __init__(self, config: Config) -> None:
        self.of_clients: dict[str, QuotaStore[QuotaEntity]] = {
            PRODUCER_BYTE_RATE: QuotaStore(_static(config, "quota.producer")),
            CONSUMER_BYTE_RATE: QuotaStore(_static(config, "quota.consumer")),
            REQUEST_PERCENTAGE: QuotaStore({}),
            CONTROLLER_MUTATION_RATE: QuotaStore({}),
        }
        self.of_addresses: QuotaStore[Address] = QuotaStore({})  # connections per second


def _static(config: Config, prefix: str) -> dict[QuotaEntity, float]:
    """KIP-13's quotas of client ids, in bytes/s."""
    quotas = {QuotaEntity(client_id=name): bound for name, bound in config.rates(f"{prefix}.override").items()}
    default = config.rate(f"{prefix}.default")
    return quotas if default is None else {**quotas, QuotaEntity(client_id=DEFAULT): default}
