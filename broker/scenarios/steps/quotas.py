"""Steps that set and remove quotas, as AlterClientQuotas does (KIP-546)."""

from collections.abc import Mapping

from msgspec import UNSET

from sluice.broker.handlers.configs.alter_client_quotas import alter
from sluice.broker.scenarios.model import DEFAULT_ENTITY, QUOTAS, Entity, Quota
from sluice.config.value_types import parse_rate
from sluice.errors import ClusterError
from sluice.quotas.client_quotas import CLIENT_ID, IP, USER, ClientQuotas
from sluice.quotas.client_quotas import Entity as QuotaEntity
from sluice.quotas.store import REQUEST_PERCENTAGE, QuotaStores

from .action import Action, ExpectedState, ScenarioContext, StepProblem

_BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")


class QuotaAlteration(Action):
    def __init__(self, entity: Entity) -> None:
        self.entity = _entity(entity)
        self.of = f"quota of {_describe(self.entity)}" if self.entity else "quota"
        self.reversed = f"{self.of}: as before"
        self._before: Mapping[str, float] = {}  # values before the alteration
        self._values: dict[str, str | float] | None = None  # None: remove all
        if isinstance(entity, Quota):
            self._values = {key: value for key in QUOTAS if (value := getattr(entity, key)) is not UNSET}
        given = None if self._values is None else [f"{key}={value}" for key, value in self._values.items()]
        super().__init__(f"{self.of}: {'none' if given is None else ', '.join(given)}")

    @property
    def proxy_refusal(self) -> str:  # type: ignore[override]  # read-only here
        of_request_time = REQUEST_PERCENTAGE in (self._values or ())
        return "it cannot measure the time of the upstream brokers' threads" if of_request_time else ""

    @property
    def values(self) -> dict[str, float] | None:
        return None if self._values is None else {key: _rate(key, value) for key, value in self._values.items()}

    def check(self, expected: ExpectedState) -> None:
        if not self.entity:
            raise StepProblem("expected user, client_id or ip")
        if self._values == {}:
            raise StepProblem(f"expected at least one of {', '.join(QUOTAS)}")
        changes: dict[str, float | None] = {}
        for key, value in (self._values or {}).items():
            changes[key] = _rate(key, value)
            problem = ClientQuotas(QuotaStores(expected.config)).refusal(self.entity, changes)
            if problem is not None:
                raise StepProblem(problem, key)
        problem = ClientQuotas(QuotaStores(expected.config)).refusal(self.entity, {})
        if problem is not None:
            raise StepProblem(problem)

    def do(self, context: ScenarioContext) -> None:
        before = self._before = _set_now(context, self.entity)
        context.restore_at_end(self.of, lambda: put_quotas(context, self.entity, before))
        put_quotas(context, self.entity, {} if self.values is None else {**before, **self.values})

    def reverse(self, context: ScenarioContext) -> None:
        put_quotas(context, self.entity, self._before)


def put_quotas(context: ScenarioContext, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
    changes: dict[str, float | None] = {**dict.fromkeys(_set_now(context, entity)), **quotas}
    code, problem = alter(context.server.cluster, entity, changes, validate_only=False)
    if code:
        raise ClusterError(f"{_describe(entity)}: {problem}")


def _set_now(context: ScenarioContext, entity: QuotaEntity) -> dict[str, float]:
    found = context.server.cluster.client_quotas.matching(entity, (), strict=True)
    return dict(found[0][1]) if found else {}


def _entity(given: Entity) -> dict[str, str | None]:
    names = {USER: given.user, CLIENT_ID: given.client_id, IP: given.ip}
    return {kind: None if name == DEFAULT_ENTITY else name for kind, name in names.items() if name is not UNSET}


def _rate(key: str, value: str | float) -> float:
    if not isinstance(value, str):
        return float(value)
    try:
        return parse_rate(value) if key in _BYTE_RATES else float(value)
    except ValueError:
        accepted = "bytes per second, such as 1000000, 2M or 512Ki" if key in _BYTE_RATES else "a number"
        raise StepProblem(f"expected {accepted}, got {value!r}", key) from None


def _describe(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {DEFAULT_ENTITY if name is None else name}" for kind, name in entity.items())
