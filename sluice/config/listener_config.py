"""Properties of one listener, or of one of its SASL mechanisms (KIP-103, KIP-85).

Their names, in lower case, are `listener.name.<listener>.<property>` and
`listener.name.<listener>.<mechanism>.<property>`. Follows `AbstractConfig.valuesWithPrefixOverride` and ListenerName: a
mechanism's setting overrides the listener's, which overrides the broker's. Loaded only for listeners with TLS, SASL or
limits.
"""

from collections.abc import Mapping

from sluice.errors import ConfigError

from .property_table import PROPERTIES, Property
from .value_types import Value, Values

PREFIX = "listener.name."
_OF_MECHANISM = frozenset({"sasl.jaas.config", "connections.max.reauth.ms"})
_OF_SASL = frozenset({"sasl.enabled.mechanisms", "sasl.server.max.receive.size"})
_LIMITS = frozenset({"max.connections", "max.connection.creation.rate"})
_OF_LISTENER = (
    _OF_MECHANISM | _OF_SASL | _LIMITS | {name for name in PROPERTIES if name.startswith(("ssl.", "sasl.oauthbearer."))}
)


def row_of_listener(name: str) -> Property | None:
    _, _, own = name.removeprefix(PREFIX).partition(".")
    if own in _OF_LISTENER:
        return PROPERTIES[own]
    of_mechanism = own.partition(".")[2]
    return PROPERTIES[of_mechanism] if of_mechanism in _OF_MECHANISM else None


class ListenerConfig:
    def __init__(self, listener: str, values: dict[str, Value], origins: Mapping[str, str]) -> None:
        self.listener = listener
        self._all = values
        self._typed = Values(values)
        self._origins = origins

    def has_own(self, name: str) -> bool:
        return f"{self._prefix}{name}" in self._all

    def integer(self, name: str, mechanism: str = "") -> int:
        return self._typed.integer(self.key(name, mechanism))

    def names(self, name: str) -> tuple[str, ...]:
        return self._typed.names(self.key(name))

    def is_set(self, name: str) -> bool:
        return self.key(name) in self._origins

    def boolean(self, name: str) -> bool:
        return self._typed.boolean(self.key(name))

    def text(self, name: str, mechanism: str = "") -> str | None:
        value = self._all[self.key(name, mechanism)]
        assert value is None or isinstance(value, str), name
        return value

    def key(self, name: str, mechanism: str = "") -> str:
        names = [f"{self._prefix}{name}", name]
        if mechanism:
            names.insert(0, f"{self._prefix}{mechanism.lower()}.{name}")
        return next(key for key in names if key in self._all)

    def wrong(self, name: str, problem: str, mechanism: str = "") -> ConfigError:
        key = self.key(name, mechanism)
        return ConfigError(f"{self._origins.get(key, 'default')}: {key}: {problem}")

    @property
    def _prefix(self) -> str:
        return f"{PREFIX}{self.listener.lower()}."
