"""The broker properties that act in a proxy; all others belong to the brokers behind it."""

from sluice.config.broker_config import Config
from sluice.errors import ConfigError

_PREFIXES = (
    "advertised.listeners",
    "client.quota.",
    "connection.",
    "connections.",
    "controller.listener.names",
    "controller.quota.",
    "inter.broker.listener.name",
    "listener",
    "max.connection",
    "principal.builder.class",
    "queued.max.request.bytes",
    "quota.",
    "sasl.",
    "sluice.admin.",
    "sluice.journal.events",
    "sluice.journal.record.hashes",
    "sluice.metrics.",
    "sluice.queued.max.response.bytes",
    "sluice.quota.",
    "sluice.sasl.users",
    "socket.",
    "ssl.",
)
# Creates and writes a topic of the cluster, so a proxy that stands in for a test's broker leaves it out.
_WRITES_TO_CLUSTER = "sluice.journal.topic"


def acts_in_proxy(name: str) -> bool:
    return name.startswith(_PREFIXES)


def check_properties(config: Config) -> None:
    """Raise ConfigError if a property is set that has no effect in a proxy."""
    given = (name for name in config.set_names() if config.origin(name) != "default")
    wrong = [name for name in given if not acts_in_proxy(name) and name != _WRITES_TO_CLUSTER]
    if wrong:
        names = ", ".join(sorted(wrong))
        raise ConfigError(f"{names}: no effect in a proxy; set it on the brokers behind it, or leave it out")
