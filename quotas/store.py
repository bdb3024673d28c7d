"""Where the quotas of one kind come from: KIP-13's properties to begin with, then what was altered while running.

`quota.producer.default`, `quota.producer.override` and their consumer twins are KIP-13's; Kafka had the defaults until
2.8 and never had the overrides. Here they seed the quotas at start, and an alteration (KIP-546) goes before them.
"""

from collections.abc import Mapping

from .entity import DEFAULT, QuotaEntity
from .manager import ClientQuotaManager


class QuotaStore:
    """The quotas of one kind, by where they come from; the manager always has those that hold.

    Dynamic goes before static entity by entity, and only then the most specific entity wins: a static override for
    `gold` holds against a dynamic default. When a dynamic quota is removed, the static one of its entity is back.
    """

    def __init__(self, manager: ClientQuotaManager, default: float | None, overrides: Mapping[str, float]) -> None:
        """`default` and `overrides` (by client id) are the static quotas, in bytes/s; they hold from now on."""
        self._manager = manager
        self._static = {QuotaEntity(client_id=client_id): bound for client_id, bound in overrides.items()}
        if default is not None:
            self._static[QuotaEntity(client_id=DEFAULT)] = default
        for entity, bound in self._static.items():
            manager.set_quota(entity, bound)

    def alter(self, entity: QuotaEntity, bound: float | None) -> None:
        """Sets the dynamic quota of `entity` in bytes/s; None removes it."""
        self._manager.set_quota(entity, self._static.get(entity) if bound is None else bound)
