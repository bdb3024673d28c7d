"""Steps that set and remove quotas, as AlterClientQuotas does (KIP-546)."""

from collections.abc import Mapping

from msgspec import UNSET

from sluice.broker.controller.errors import ClusterError
from sluice.broker.handlers.configs.alter_client_quotas import alter
from sluice.broker.scenarios.model import DEFAULT_ENTITY, QUOTAS, Entity, Quota
from sluice.config.value_types import parse_rate
from sluice.journal_events import NOBODY
from sluice.quotas.client_quotas import CLIENT_ID, IP, USER, ClientQuotas
from sluice.quotas.client_quotas import Entity as QuotaEntity
from sluice.quotas.store import QuotaStores

from .action import Known, Refused, Stage

_BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")


class QuotaAlteration:
    """Quotas of an entity are set, or all that it has are removed."""

    broker = NOBODY

    def __init__(self, entity: Entity) -> None:
        self.entity = _entity(entity)
        self.of = f"quota of {_words(self.entity)}" if self.entity else "quota"
        self.before: Mapping[str, float] = {}  # what was set until it was done
        self._values = _given(entity) if isinstance(entity, Quota) else None  # None: all are removed
        given = None if self._values is None else [f"{key}={value}" for key, value in self._values.items()]
        self.words = f"{self.of}: {'none' if given is None else ', '.join(given)}"

    def check(self, known: Known) -> None:
        if not self.entity:
            raise Refused("user, client_id or ip says whose")
        if self._values == {}:
            raise Refused(f"at least one is needed of {', '.join(QUOTAS)}")
        changes: dict[str, float | None] = {}
        for key, value in (self._values or {}).items():
            changes[key] = _rate(key, value)
            problem = ClientQuotas(QuotaStores(known.config)).refusal(self.entity, changes)
            if problem is not None:
                raise Refused(problem, key)
        problem = ClientQuotas(QuotaStores(known.config)).refusal(self.entity, {})
        if problem is not None:
            raise Refused(problem)

    def do(self, stage: Stage) -> None:
        before = self.before = _set_now(stage, self.entity)
        stage.remember(self.of, lambda: put_quotas(stage, self.entity, before))
        if self._values is None:
            put_quotas(stage, self.entity, {})
        else:
            put_quotas(
                stage, self.entity, {**before, **{key: _rate(key, value) for key, value in self._values.items()}}
            )

    def undone(self) -> "QuotaRestoration":
        return QuotaRestoration(self)


class QuotaRestoration:
    """An entity has the quotas that it had."""

    broker = NOBODY

    def __init__(self, alteration: QuotaAlteration) -> None:
        self.words = f"{alteration.of}: as before"
        self._alteration = alteration

    def check(self, known: Known) -> None:
        """What could be set can be set back."""

    def do(self, stage: Stage) -> None:
        put_quotas(stage, self._alteration.entity, self._alteration.before)

    def undone(self) -> None:
        return None


def put_quotas(stage: Stage, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
    """Gives an entity exactly these. Raises ClusterError."""
    changes: dict[str, float | None] = {**dict.fromkeys(_set_now(stage, entity)), **quotas}
    code, problem = alter(stage.server.cluster, entity, changes, validate_only=False)
    if code:
        raise ClusterError(f"{_words(entity)}: {problem}")


def _set_now(stage: Stage, entity: QuotaEntity) -> dict[str, float]:
    found = stage.server.cluster.client_quotas.matching(entity, (), strict=True)
    return dict(found[0][1]) if found else {}


def _entity(given: Entity) -> dict[str, str | None]:
    names = {USER: given.user, CLIENT_ID: given.client_id, IP: given.ip}
    return {kind: None if name == DEFAULT_ENTITY else name for kind, name in names.items() if name is not UNSET}


def _given(quota: Quota) -> dict[str, str | float]:
    return {key: value for key in QUOTAS if (value := getattr(quota, key)) is not UNSET}


def _rate(key: str, value: str | float) -> float:
    """Byte rates as properties have them, 2M or 512Ki; others are numbers."""
    if not isinstance(value, str):
        return float(value)
    try:
        return parse_rate(value) if key in _BYTE_RATES else float(value)
    except ValueError:
        accepted = "bytes per second, such as 1000000, 2M or 512Ki" if key in _BYTE_RATES else "a number"
        raise Refused(f"{value!r}: must be {accepted}", key) from None


def _words(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {DEFAULT_ENTITY if name is None else name}" for kind, name in entity.items())
