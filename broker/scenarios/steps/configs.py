"""Steps that alter configs, as IncrementalAlterConfigs does (KIP-339)."""

from collections.abc import Mapping

from msgspec import UNSET

from sluice.broker.controller.configs.broker_configs import validate_configs
from sluice.broker.controller.configs.control import ConfigurationControl
from sluice.broker.controller.configs.resource import BROKER, TOPIC, ApiError, Change, Operation
from sluice.broker.controller.controller import BrokerState
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
    def __init__(self, wanted: AlterConfig) -> None:
        self.of = _of(wanted)
        self.reversed = f"config of {self.of}: as before"
        self._before: Mapping[str, str] = {}  # values before the alteration
        self._set = config_texts(wanted.set)
        if wanted.topic is UNSET:
            self._set = {name: _plain(name, value) for name, value in self._set.items()}
        changed = [*(f"{name}={value}" for name, value in self._set.items()), *(f"no {name}" for name in wanted.remove)]
        super().__init__(f"config of {self.of}: {', '.join(changed)}")
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
        if (
            wanted.broker is not UNSET
            and (state := expected.broker(wanted.broker, "broker")) is not BrokerState.RUNNING
        ):
            raise StepProblem(f"broker {wanted.broker} is {state.value} at this time", "broker")

    def do(self, context: ScenarioContext) -> None:
        kind, name = _resource(self._wanted)
        if kind == TOPIC:
            ensure_topic(context, name)
        control = _control(context, self.broker)
        before = self._before = dict(control.stores[kind].own(name))
        context.restore_at_end(f"config of {self.of}", lambda: put_configs(context, self._wanted, before))
        changes = {config: Change(Operation.SET, value) for config, value in self._set.items()}
        changes |= {config: Change(Operation.DELETE, None) for config in self._wanted.remove}
        _expect(self.of, control.alter(kind, name, changes, validate_only=False))

    def reverse(self, context: ScenarioContext) -> None:
        put_configs(context, self._wanted, self._before)


def _plain(name: str, value: str) -> str:
    """Return a valid value as Kafka accepts it: a scenario may have sizes, such as 1Ki."""
    try:
        return canonical(row_of_any(name), value) or ""
    except ValueError:
        return value


def put_configs(context: ScenarioContext, wanted: AlterConfig, own: Mapping[str, str]) -> None:
    kind, name = _resource(wanted)
    control = _control(context, NO_ID if wanted.broker is UNSET else wanted.broker)
    _expect(_of(wanted), control.replace(kind, name, own, validate_only=False))


def _control(context: ScenarioContext, node_id: int) -> ConfigurationControl:
    cluster = context.server.cluster
    broker = context.server.brokers.get(cluster.controller_id if node_id == NO_ID else node_id)
    if broker is None:
        raise ClusterError("no broker is running that could alter configs")
    return broker.configs


def _resource(wanted: AlterConfig) -> tuple[int, str]:
    if wanted.topic is not UNSET:
        return TOPIC, wanted.topic
    return BROKER, "" if wanted.broker is UNSET else str(wanted.broker)


def _of(wanted: AlterConfig) -> str:
    kind, name = _resource(wanted)
    if kind == TOPIC:
        return f"topic {name}"
    return f"broker {name}" if name else "all brokers"


def _expect(of: str, error: ApiError | None) -> None:
    if error is not None:
        raise ClusterError(f"{of}: {error.message or error.code.message}")
