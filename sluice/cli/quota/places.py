"""Where quotas are shown and changed: a cluster, by the Kafka protocol, or a proxy, by its admin port."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from sluice.cli.admin_client import AdminClient
from sluice.protocol.apis.describe_client_quotas import ComponentData

from .calls import alter_quotas, describe_quotas

_PATH = "/api/v1/quotas"
_EXACT, _DEFAULT = 0, 1

Entity = Mapping[str, str | None]


class _Quotas(msgspec.Struct):
    entity: dict[str, str | None]
    quotas: dict[str, float]


class _AllQuotas(msgspec.Struct):
    quotas: list[_Quotas]


class Place(Protocol):
    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        """Return the quotas of entities with these types and names."""

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        """Alter one entity's quotas (None removes one); return the error, if any."""


class Cluster:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        components = [
            ComponentData(entity_type=type_, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for type_, name in entity.items()
        ]
        return describe_quotas(self._bootstrap, components)

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        return alter_quotas(self._bootstrap, entity, changes)


class Proxy:
    def __init__(self, address: str, token: str | None) -> None:
        self._admin = AdminClient(address, token, "--proxy")

    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        found = self._admin.get(_PATH, _AllQuotas).quotas
        return [(each.entity, each.quotas) for each in found if entity.items() <= each.entity.items()]

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        self._admin.put(_PATH, {"entity": entity, "quotas": changes}, _Quotas)
        return None


def place_of(bootstrap: str, proxy: str | None, token: str | None) -> Place:
    return Cluster(bootstrap) if proxy is None else Proxy(proxy, token)
