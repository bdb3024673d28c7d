"""Steps that alter configs, as IncrementalAlterConfigs does (KIP-339)."""

from collections.abc import Mapping

from msgspec import UNSET

from sluice.broker.controller.configs.broker_configs import validate_configs
from sluice.broker.controller.configs.control import ConfigurationControl
from sluice.broker.controller.configs.resource import BROKER, TOPIC, ApiError, Change, Operation
from sluice.broker.scenarios.model import AlterConfig, config_texts
from sluice.config.broker_config import refused_topic_configs
from sluice.config.described_config import canonical
from sluice.config.kafka_properties import row_of_any
from sluice.config.setting import UNKNOWN_TYPE
from sluice.errors import ClusterError
from sluice.journal_events import NO_ID

from .action import Action, ExpectedState, ScenarioContext, StepProblem
from .topics import ensure_topic


class ConfigAlteration(Action):
    proxy_refusal = "the upstream cluster has the configs"

    def __init__(self, wanted: AlterConfig) -> None:
        self._kind, self._name, self._of = _resource(wanted)
        self.reversed = f"config of {self._of}: as before"
        self._before: Mapping[str, str] = {}  # values before the alteration
        self._set = config_texts(wanted.set)
        if wanted.topic is UNSET:
            self._set = {name: _plain(name, value) for name, value in self._set.items()}
        changed = [*(f"{name}={value}" for name, value in self._set.items()), *(f"no {name}" for name in wanted.remove)]
        super().__init__(f"config of {self._of}: {', '.join(changed)}")
        self.broker = NO_ID if wanted.broker is UNSET else wanted.broker
        self._wanted = wanted

    def check(self, expected: ExpectedState) -> None:
        wanted = self._wanted
        if wanted.topic is not UNSET and wanted.broker is not UNSET:
            raise StepProblem("expected either topic or broker")
        if not wanted.set and not wanted.remove:
            raise StepProblem("expected set, remove or both")
        if wanted.topic is not UNSET:
            expected.partition(wanted.topic, 0)
            problem = refused_topic_configs(expected.config, self._set)
        else:
            error = validate_configs(self._set, cluster_wide=wanted.broker is UNSET)
            unknown = [key for key in self._set if row_of_any(key).kind.type == UNKNOWN_TYPE]  # Kafka accepts them
            problem = f"Unknown config name: {unknown[0]}" if unknown else None if error is None else error.message
        if problem is not None:
            raise StepProblem(problem, "set")
        if wanted.broker is not UNSET:
            expected.running(wanted.broker, "broker")

    def do(self, context: ScenarioContext) -> None:
        if self._kind == TOPIC:
            ensure_topic(context, self._name)
        control = self._control(context)
        before = self._before = dict(control.stores[self._kind].own(self._name))
        context.restore_at_end(f"config of {self._of}", lambda: self._put(context, before))
        changes = {config: Change(Operation.SET, value) for config, value in self._set.items()}
        changes |= {config: Change(Operation.DELETE, None) for config in self._wanted.remove}
        self._expect(control.alter(self._kind, self._name, changes, validate_only=False))

    def reverse(self, context: ScenarioContext) -> None:
        self._put(context, self._before)

    def _put(self, context: ScenarioContext, own: Mapping[str, str]) -> None:
        self._expect(self._control(context).replace(self._kind, self._name, own, validate_only=False))

    def _control(self, context: ScenarioContext) -> ConfigurationControl:
        node_id = context.server.cluster.controller_id if self.broker == NO_ID else self.broker
        if node_id not in context.server.brokers:
            raise ClusterError("no broker is running that could alter configs")
        return context.server.brokers[node_id].configs

    def _expect(self, error: ApiError | None) -> None:
        if error is not None:
            raise ClusterError(f"{self._of}: {error.message or error.code.message}")


def _plain(name: str, value: str) -> str:
    """Return a valid value as Kafka accepts it: a scenario may have sizes, such as 1Ki."""
    try:
        return canonical(row_of_any(name), value) or ""
    except ValueError:
        return value


def _resource(wanted: AlterConfig) -> tuple[int, str, str]:
    """Return type, name and description of a resource."""
    if wanted.topic is not UNSET:
        return TOPIC, wanted.topic, f"topic {wanted.topic}"
    if wanted.broker is UNSET:
        return BROKER, "", "all brokers"
    return BROKER, str(wanted.broker), f"broker {wanted.broker}"
