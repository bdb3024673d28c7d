"""The Proxy API for code without an event loop, or with another one; its methods block.

    with SyncProxy("kafka:9092") as proxy:
        producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap})

The proxy runs in a thread of its own.
"""

from sluice.text.arguments import checks_arguments

from .blocking import runs
from .proxy import Proxy
from .sync_broker import SyncBroker


@checks_arguments
class SyncProxy(SyncBroker):
    """The blocking counterpart of `sluice.Proxy`, with the same arguments, state and errors."""

    _target: Proxy

    @runs(Proxy)
    def __init__(self) -> None: ...

    @property
    def refused(self) -> list[str]:
        """The requests that `protect_existing` refused, each with its reason."""
        return self._target.refused
