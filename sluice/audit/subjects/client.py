"""The known properties of a client library: its names for Kafka's settings, their defaults, and its KIPs.

A probe specifies settings by Kafka's names. The client receives those that it has, under its own names. The judge
receives the values in force.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes.probe import Setting

ALL = frozenset(Role)
JUDGED = frozenset(
    {"metadata.recovery.strategy", *(name for statement in STATEMENTS.values() for name in statement.settings)}
)
PRODUCER, CONSUMER, ADMIN = (frozenset({role}) for role in Role)


class Known(NamedTuple):
    """One setting of a client.

    name: Kafka's name
    own: the client's names; several if all must be set; none if it has no such setting
    default: documented default, or the KIP's for a setting without an own name; None: not known
    """

    name: str
    own: tuple[str, ...]
    default: Setting | None
    roles: frozenset[Role] = ALL


class Client(NamedTuple):
    """A client library.

    distribution: Python distribution with its version; or the library's name in go.mod or package.json
    driver: module of its driver, or its folder below programs/
    kips, before, otherwise: as in SubjectInfo
    fixed: settings by its own names that are always set
    """

    name: str
    distribution: str
    driver: str
    settings: tuple[Known, ...]
    kips: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    otherwise: frozenset[str] = frozenset()
    fixed: Mapping[Role, Mapping[str, Setting]] = {}
    roles: frozenset[Role] = ALL

    def own(self, role: Role, given: Mapping[str, Setting]) -> dict[str, Setting]:
        known = {own: given[row.name] for row in self._of(role) if row.name in given for own in row.own}
        return {**self.fixed.get(role, {}), **known}

    def info(self, role: Role, given: Mapping[str, Setting], library_version: str) -> SubjectInfo:
        in_force: dict[str, float | str | bool] = {}
        for row in self._of(role):
            value = given.get(row.name, row.default) if row.own else row.default
            if value is not None and not _is_set_alone(row.name, given):
                in_force[row.name] = value
        return SubjectInfo(
            name=self.name,
            version=library_version,
            role=role,
            settings=in_force,
            kips=self.kips,
            before=self.before,
            otherwise=self.otherwise,
            lacks=JUDGED - {row.name for row in self._of(role) if row.own},
        )

    def _of(self, role: Role) -> list[Known]:
        return [row for row in self.settings if role in row.roles]


def _is_set_alone(name: str, given: Mapping[str, Setting]) -> bool:
    """Return whether only the base is set, which is then the maximum (KIP-144)."""
    return name == "reconnect.backoff.max.ms" and name not in given and "reconnect.backoff.ms" in given


@cache
def installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
