"""Options of the brokers of a test: the arguments of `@pytest.mark.kafka` and of KafkaTestCase.

brokers     number of brokers
config      properties by name
quota       arguments of Broker.quota, such as {"client_id": "shop", "produce": "100k"}, or a list of them
faults      list of fault rules, each an argument of Broker.faults.add
scenario    name in the catalogue, file, or Scenario; starts with the test, on the brokers that it requires
seed        seed of all randomness
admin_port  port of the admin HTTP server; 0 picks a free port
tls, sasl, users, acls  as in `sluice.Broker`
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from sluice.errors import ConfigError, ProxyError, SluiceError
from sluice.text.error_text import expected, unknown

from .fault_control import raise_problem
from .scenario_control import load_scenario
from .security import AclFields, Mechanism
from .sync_broker import SyncBroker
from .sync_handles import SyncFault, SyncQuota, SyncScenario

if TYPE_CHECKING:
    from os import PathLike

    from sluice.broker.faults.actions import AnyAction
    from sluice.broker.faults.rule import Rule
    from sluice.broker.scenarios.model import Scenario


class QuotaFields(TypedDict, total=False):
    client_id: str
    user: str
    produce: float | str
    fetch: float | str
    request_percentage: float
    controller_mutation_rate: float
    producer_byte_rate: float | str
    consumer_byte_rate: float | str


class BrokerOptions(TypedDict, total=False):
    brokers: int
    config: Mapping[str, str | float]
    quota: QuotaFields | Sequence[QuotaFields]
    faults: "Sequence[AnyAction | Rule | Mapping[str, object] | str]"
    scenario: "Scenario | PathLike[str] | str"
    seed: int
    admin_port: int | None
    tls: bool
    sasl: Mechanism
    users: Mapping[str, str]
    acls: Sequence[AclFields]


_ACCEPTED: dict[str, tuple[tuple[type, ...], str]] = {
    "brokers": ((int,), "a number, such as 3"),
    "config": ((Mapping,), 'properties by their names, such as {"num.partitions": 3}'),
    "quota": (
        (Mapping, list, tuple),
        'arguments of quota(), such as {"client_id": "shop", "produce": "100k"}, or several',
    ),
    "faults": ((list, tuple), 'several rules, such as [{"action": "close", "api": "Produce", "times": 1}]'),
    "scenario": ((object,), "a name of the catalogue, a file or a Scenario"),
    "seed": ((int,), "a number"),
    "admin_port": ((int, type(None)), "a port, 0 for a free one, or None"),
    "tls": ((bool,), "True or False"),
    "sasl": ((str,), "one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
    "users": ((Mapping,), 'passwords by user, such as {"alice": "alice-secret"}'),
    "acls": ((list, tuple), 'ACLs, such as [{"user": "alice", "allow": "Read", "topic": "orders"}]'),
}
# The switch is in the environment, which reaches unittest and the processes that a test starts.
UPSTREAM = "SLUICE_KAFKA_UPSTREAM"
UPSTREAM_CONFIG = "SLUICE_KAFKA_UPSTREAM_CONFIG"
_OF_BROKER = ("admin_port", "seed", "tls", "sasl", "users", "acls")
RUNNING_BROKER_OPTIONS = ("quota", "faults")  # can be applied to running brokers


class Started(NamedTuple):
    broker: SyncBroker
    scenario: "SyncScenario | None"


def checked(given: Mapping[str, object]) -> BrokerOptions:
    """Check the options; raise ConfigError for an unknown one or a wrong type."""
    for name, value in given.items():
        if name not in _ACCEPTED:
            raise ConfigError(f"{name}: {unknown('option', name, _ACCEPTED)}")
        types, accepted = _ACCEPTED[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ConfigError(f"{name}: {expected(accepted, repr(value))}")
    return given  # type: ignore[return-value]  # checked above


@contextmanager
def started(**options: Unpack[BrokerOptions]) -> Iterator[Started]:
    """Run brokers during the block. Raises SluiceError, also for a failed fault or scenario."""
    options = checked(options)
    config = dict(options.get("config", {}))
    brokers = options.get("brokers", 1)
    scenario = _scenario(options)
    if scenario is not None:
        from sluice.broker.scenarios.timeline import broker_properties

        own = broker_properties(scenario)
        brokers = options.get("brokers", int(own.pop("sluice.brokers")))
        if has_upstream():
            from sluice.proxy.properties import acts_in_proxy

            own = {name: value for name, value in own.items() if acts_in_proxy(name)}  # the cluster has the others
        config = {**own, **config}
    of_broker = {name: options[name] for name in _OF_BROKER if name in options}  # type: ignore[literal-required]
    with _broker(brokers, config, of_broker) as broker, applied(broker, options):
        if scenario is None:
            yield Started(broker, None)
            return
        run = broker.start_scenario(scenario)
        try:
            yield Started(broker, run)
        finally:
            run.stop()
        for step in run.steps:
            if step.problem:
                raise SluiceError(f"scenario {scenario.name}: {step.what}: {step.problem}")


def has_upstream() -> bool:
    """Return whether proxies in front of a cluster are in place of brokers: `pytest --kafka-upstream`."""
    return bool(os.environ.get(UPSTREAM))


def session_broker() -> AbstractContextManager[SyncBroker]:
    """Return the broker of a whole session, which is reset after each test."""
    return _broker(1, {}, {}, of_session=True)


def _broker(
    brokers: int, config: Mapping[str, str | float], of_broker: Mapping[str, Any], *, of_session: bool = False
) -> AbstractContextManager[SyncBroker]:
    if not has_upstream():
        return SyncBroker(brokers, config=config, **of_broker)
    from .upstream import Upstream, Wanted, new_proxy, proxy_for_test

    run = new_proxy if of_session else proxy_for_test
    upstream = Upstream.of(os.environ[UPSTREAM], os.environ.get(UPSTREAM_CONFIG))
    return run(upstream, Wanted(brokers, config, of_broker))


@contextmanager
def applied(broker: SyncBroker, options: BrokerOptions) -> Iterator[None]:
    with ExitStack() as ends:
        for quota in _several(options.get("quota", ())):
            ends.enter_context(_quota(broker, quota))
        faults = [_fault(broker, index, rule) for index, rule in enumerate(options.get("faults", ()))]
        try:
            yield
        finally:
            for fault in faults:
                fault.remove()
        for fault in faults:
            raise_problem(fault.id, fault.problem)


def _scenario(options: BrokerOptions) -> "Scenario | None":
    given = options.get("scenario")
    if given is None:
        return None
    try:
        return load_scenario(given)
    except TypeError:
        raise ConfigError(f"scenario: {expected(_ACCEPTED['scenario'][1], repr(given))}") from None


def _several(quota: "QuotaFields | Sequence[QuotaFields]") -> Sequence[object]:
    return [quota] if isinstance(quota, Mapping) else quota


def _quota(broker: SyncBroker, given: object) -> "SyncQuota":
    if not isinstance(given, Mapping):
        raise ConfigError(f"quota: {expected(_ACCEPTED['quota'][1], repr(given))}")
    known = QuotaFields.__annotations__
    for name in given:
        if name not in known:
            raise ConfigError(f"quota.{name}: {unknown('field', str(name), known)}")
        if name in ("client_id", "user") and not isinstance(given[name], str):
            raise ConfigError(f"quota.{name}: {expected('text', repr(given[name]))}")
    return broker.quota(**given)


def _fault(broker: SyncBroker, index: int, rule: "AnyAction | Rule | Mapping[str, object] | str") -> "SyncFault":
    try:
        return broker.faults.add(rule)
    except ProxyError:
        raise
    except SluiceError as error:
        raise ConfigError(f"faults[{index}]: {error}") from None
