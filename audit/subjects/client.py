"""What is known of a client library: how it calls Kafka's settings, what they are by default, which KIPs it knows.

A probe gives settings by Kafka's names. Of these a client gets those that it has, by its own names; and the judge is
told what is in force: what was given, else what the client's documentation says it is by default. What the client does
not have is not told, and what depends on it is not judged.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes import Setting

ALL = frozenset(Role)
# Settings that a judge asks for.
_ASKED_FOR = frozenset(
    {"metadata.recovery.strategy", *(name for statement in STATEMENTS.values() for name in statement.settings)}
)
PRODUCER, CONSUMER, ADMIN = (frozenset({role}) for role in Role)


class Known(NamedTuple):
    """A setting that a client has.

    name: Kafka's
    own: the client's; several, where it takes several to mean the same; none, where it has no such setting
    default: by its documentation, or, of what it has no setting for, by the KIP; None: not known
    roles: of which
    """

    name: str
    own: tuple[str, ...]
    default: Setting | None
    roles: frozenset[Role] = ALL


class Client(NamedTuple):
    """A client library.

    name: as it is called in reports
    distribution: whose version is its version
    driver: module that is run
    settings: those that it has, by Kafka's names
    kips: that it says it implements
    before: that it says it does not, or that are younger than it
    otherwise: statements in whose place it says in so many words what else it does
    fixed: settings by its own names that it is always given
    """

    name: str
    distribution: str
    driver: str
    settings: tuple[Known, ...]
    kips: frozenset[str]
    before: frozenset[str]
    otherwise: frozenset[str] = frozenset()
    fixed: Mapping[Role, Mapping[str, Setting]] = {}

    def own(self, role: Role, given: Mapping[str, Setting]) -> dict[str, Setting]:
        """What the client is given, by its own names."""
        known = {own: given[row.name] for row in self._of(role) if row.name in given for own in row.own}
        return {**self.fixed.get(role, {}), **known}

    def info(self, role: Role, given: Mapping[str, Setting], library_version: str) -> SubjectInfo:
        """Who it is with these settings."""
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
            lacks=_ASKED_FOR - {row.name for row in self._of(role) if row.own},
        )

    def _of(self, role: Role) -> list[Known]:
        return [row for row in self.settings if role in row.roles]


def _is_set_alone(name: str, given: Mapping[str, Setting]) -> bool:
    """KIP-144: a base that is set without a maximum is its own. What a client documents instead is not the question."""
    return name == "reconnect.backoff.max.ms" and name not in given and "reconnect.backoff.ms" in given


@cache
def installed(distribution: str) -> str:
    """The version of a distribution; "" where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
