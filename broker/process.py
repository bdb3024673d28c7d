"""A cluster of brokers with its admin port, for the CLI and `sluice.Broker`."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (only the type of an injected value)

from sluice.broker.admin.server import AdminPort, LoadPage
from sluice.broker.network.socket_server import BACKLOG, bind
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import Clock
from sluice.config.broker_config import Config, Endpoint
from sluice.errors import SluiceError


class BrokerProcess(ClusterServer):
    def __init__(
        self,
        config: Config,
        clock: Clock,
        random: Random,
        loop: asyncio.AbstractEventLoop,
        load_page: LoadPage,
        node_ids: Sequence[int] | None = None,
    ) -> None:
        """`load_page` imports the web page of the admin port."""
        super().__init__(config, clock, random, loop, node_ids)
        self.admin: AdminPort | None = None
        self._load_page = load_page

    async def start(
        self, listeners: Mapping[int, Sequence[Endpoint]] | None = None, admin: tuple[str, int] | None = None
    ) -> None:
        """Start the brokers and, unless `admin` is None, the admin port on this host and port; 0 picks a free port.

        Raises:
            SluiceError: An address is not available; then no port stays bound.
        """
        await super().start(listeners)
        if admin is None:
            return
        try:
            if self.is_virtual:
                raise SluiceError("admin HTTP port: not available in virtual time, which has no sockets")
            self.admin = AdminPort(self, bind(*admin, BACKLOG), self._loop, self._load_page)
        except SluiceError:
            await self.stop()
            raise

    async def stop(self) -> None:
        self.close()
        if self.admin is not None:
            await self.admin.stop()
        await super().stop()
