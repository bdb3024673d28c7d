"""All brokers of the process with their sockets, and the admin port beside them. Started and stopped as one."""

import asyncio
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

from sluice.clock import Clock
from sluice.config import Config
from sluice.errors import SluiceError
from sluice.protocol.records import crc

from .admin import AdminPort
from .broker import Broker
from .cluster import Cluster
from .server import BACKLOG, Server, bind

# Clients that were waiting for the start have asked their first questions by then.
_PRELOAD_AFTER_MS = 500


class ClusterServer:
    """`sluice.brokers` brokers, each with a server of its own."""

    def __init__(self, config: Config, clock: Clock, random: Random, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.cluster = Cluster(config, clock, random)
        self.servers: dict[int, Server] = {}  # by node id
        self.admin: AdminPort | None = None
        self._loop = loop
        for _ in range(config.integer("sluice.brokers")):
            broker = Broker(config, clock, random, self.cluster)
            self.servers[broker.node_id] = Server(broker, loop)

    async def start(self, admin: tuple[str, int] | None) -> None:
        """Listens where the configuration says and, unless it is None, on the admin host and port; 0 is a free port.

        Raises SluiceError with one line when an address cannot be had; then nothing is left bound.
        """
        try:
            for number, server in enumerate(self.servers.values()):
                await server.start(self.config.listeners(number), self.config.advertised_listeners(number))
            if admin is not None:
                self.admin = AdminPort(self, bind(*admin, BACKLOG), self._loop)
        except SluiceError:
            await self.stop()
            raise
        # Loads what the first Produce needs, which takes 25 ms: no client that comes at once should wait for it.
        self.cluster.housekeeping.later(_PRELOAD_AFTER_MS, crc.preload)

    async def stop(self) -> None:
        """Takes no more connections, cuts those that are open, and frees the ports. Within a second."""
        self.cluster.close()
        for server in self.servers.values():
            server.close()
        if self.admin is not None:
            await self.admin.stop()
        await asyncio.gather(*(server.stop() for server in self.servers.values()))
