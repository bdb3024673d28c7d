"""Quotas that a test sets and removes: `broker.quota`."""

from collections.abc import Mapping
from typing import NamedTuple

from sluice.broker.controller.cluster import Cluster
from sluice.broker.handlers.configs.alter_client_quotas import alter
from sluice.config.value_types import parse_rate
from sluice.errors import SluiceError
from sluice.quotas.client_quotas import CLIENT_ID, USER, Entity
from sluice.quotas.store import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from sluice.text.error_text import expected

# Keywords of the Python API, with their names in Kafka.
QUOTA_KEYWORDS = {"produce": PRODUCER_BYTE_RATE, "fetch": CONSUMER_BYTE_RATE}


class LocalQuota:
    """Quotas in effect until they are removed or their `with` block ends."""

    def __init__(self, cluster: Cluster, entity: Entity, before: Mapping[str, float | None]) -> None:
        """`before` has the previous values of the set keys; None: not set."""
        self._cluster = cluster
        self._entity = entity
        self._before = before

    def remove(self) -> None:
        """Restore the previous quotas. Further calls do nothing."""
        _alter(self._cluster, self._entity, self._before)
        self._before = {}

    def __enter__(self) -> "LocalQuota":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class QuotasSet(NamedTuple):
    """The quotas of one entity, such as {"client-id": "shop"} (None: the default), by Kafka's names and units."""

    entity: Entity
    quotas: dict[str, float]


def quotas_set(cluster: Cluster) -> list[QuotasSet]:
    return [QuotasSet(entity, dict(quotas)) for entity, quotas in cluster.client_quotas.matching({}, (), strict=False)]


def set_quota(
    cluster: Cluster,
    client_id: str | None,
    user: str | None,
    rates: Mapping[str, tuple[float | str | None, float | str | None]],
    rest: Mapping[str, float | None],
) -> LocalQuota:
    """Without a client id and a user, set the quotas of all client ids. Raises SluiceError."""
    names = {USER: user, CLIENT_ID: client_id}
    entity: Entity = {type_: name for type_, name in names.items() if name is not None} or {CLIENT_ID: None}
    given: dict[str, float | None] = dict(rest)
    for name, (value, same) in rates.items():
        if value is not None and same is not None:
            raise SluiceError(f"quota: {name} and {QUOTA_KEYWORDS[name]} are the same quota; expected one of them")
        given[QUOTA_KEYWORDS[name]] = _rate(name, same if value is None else value)
    quotas = {key: value for key, value in given.items() if value is not None}
    if not quotas:
        raise SluiceError(f"quota: expected at least one of {', '.join((*rates, *rest))}")
    found = cluster.client_quotas.matching(entity, (), strict=True)
    before = {key: found[0][1].get(key) if found else None for key in quotas}
    _alter(cluster, entity, quotas)
    return LocalQuota(cluster, entity, before)


def _rate(name: str, value: float | str | None) -> float | None:
    if not isinstance(value, str):
        return value
    try:
        return parse_rate(value)
    except ValueError:
        raise SluiceError(f"quota.{name}: {expected('bytes per second, such as 100000 or 100k', value)}") from None


def _alter(cluster: Cluster, entity: Entity, changes: Mapping[str, float | None]) -> None:
    code, problem = alter(cluster, entity, changes, validate_only=False)
    if code:
        raise SluiceError(f"quota: {problem}")
