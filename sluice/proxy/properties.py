"""The broker properties that have an effect in a proxy; all others belong to the brokers behind it."""

from sluice.config.broker_config import Config
from sluice.errors import ConfigError

_OF_A_PROXY = (
    "listeners",
    "advertised.listeners",
    "listener.",
    "max.connection",
    "socket.",
    "queued.max.request.bytes",
    "connections.max.",
    "connection.failed.",
    "ssl.",
    "sasl.",
    "super.users",
    "quota.",
    "client.quota.callback.class",
    "controller.quota.",
    "sluice.queued.max.response.bytes",
    "sluice.sasl.users",
    "sluice.journal.",
    "sluice.admin.",
    "sluice.metrics.",
    "sluice.quota.",
)
# The journal of a proxy is no topic: it would have to be one of the upstream cluster.
_JOURNAL_TOPIC = "sluice.journal.topic"


def check_properties(config: Config) -> None:
    """Raise ConfigError if a property is set that has no effect in a proxy."""
    given = [name for name in config.set_names() if config.origin(name) != "default"]
    wrong = [name for name in given if not name.startswith(_OF_A_PROXY) or name == _JOURNAL_TOPIC]
    if wrong:
        names = ", ".join(sorted(wrong))
        raise ConfigError(f"{names}: no effect in a proxy; set it on the brokers behind it, or leave it out")
