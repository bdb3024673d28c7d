"""Our own client, documented by its table of settings and by Kafka (client/config_table.py, docs/kip-580.md)."""

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import PROBES
from sluice.audit.subjects.client import JUDGED, Client, Known
from sluice.client.config_table import ADMIN, CONSUMER, PRODUCER, Table

_TABLES: dict[Role, Table] = {Role.PRODUCER: PRODUCER, Role.CONSUMER: CONSUMER, Role.ADMIN: ADMIN}
# Those that a probe sets, a statement depends on, or a model of a fleet has.
_NAMES = JUDGED | {name for probe in PROBES.values() for name in probe.settings} | {"metadata.max.age.ms"}


def _known() -> tuple[Known, ...]:
    return tuple(
        Known(name, (name,), _value(table.properties[name].default), frozenset({role}))
        for role, table in _TABLES.items()
        for name in sorted(_NAMES)
        if name in table.properties
    )


def _value(default: str | None) -> float | str | bool | None:
    if default is None or not (default.isdigit() or default in ("true", "false")):
        return default
    return int(default) if default.isdigit() else default == "true"


CLIENT = Client(
    name="sluice",
    distribution="kafka-sluice",
    driver="sluice.audit.subjects.drivers.sluice_driver",
    settings=_known(),
    kips=frozenset({"KIP-13", "KIP-91", "KIP-144", "KIP-219", "KIP-580", "KIP-601", "KIP-899", "KIP-951"}),
)
