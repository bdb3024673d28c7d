"""The Proxy API for code without an event loop, or with another one; its methods block.

    with SyncProxy("kafka:9092") as proxy:
        producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap})

The proxy runs in a thread of its own.
"""

from collections.abc import Mapping, Sequence

from sluice.text.arguments import Port, checks_arguments

from .blocking import Blocking
from .loop_thread import BrokerThread
from .proxy import Proxy
from .security import Mechanism
from .sync_broker import SyncBroker


@checks_arguments
class SyncProxy(SyncBroker):
    """The blocking counterpart of `sluice.Proxy`, with the same arguments, state and errors."""

    _target: Proxy

    def __init__(
        self,
        upstream: str,
        *,
        upstream_config: Mapping[str, str | float | bool] | None = None,
        sasl_passthrough: bool = False,
        config: Mapping[str, str | float | bool] | None = None,
        admin_port: Port | None = None,
        seed: int = 0,
        tls: bool = False,
        sasl: Mechanism | None = None,
        users: Mapping[str, str] | None = None,
        protect_existing: bool = False,
        only_clients: Sequence[str] = (),
        only_topics: Sequence[str] = (),
    ) -> None:
        proxy = Proxy(
            upstream,
            upstream_config=upstream_config,
            sasl_passthrough=sasl_passthrough,
            config=config,
            admin_port=admin_port,
            seed=seed,
            tls=tls,
            sasl=sasl,
            users=users,
            protect_existing=protect_existing,
            only_clients=only_clients,
            only_topics=only_topics,
        )
        Blocking.__init__(self, proxy, BrokerThread(proxy))

    __init__.__doc__ = Proxy.__init__.__doc__

    @property
    def refused(self) -> list[str]:
        """The requests that `protect_existing` refused, each with its reason."""
        return self._target.refused
