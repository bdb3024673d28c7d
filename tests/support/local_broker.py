"""A broker in the test's own event loop, and a minimal client."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sluice import Broker
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.wire import WireClient


async def ask_metadata(address: str, client_id: str = "wire", versions: Sequence[int] = (9,)) -> None:
    """Connect, send requests in these versions, and disconnect."""

    def ask() -> None:
        with WireClient(address, client_id) as client:
            for version in versions:
                client.ask(MetadataRequest(), version)

    await asyncio.to_thread(ask)


def live(do: Callable[[Broker], Awaitable[None]], broker: Broker) -> None:
    """Use a broker while it runs."""

    async def run() -> None:
        async with broker:
            await do(broker)

    asyncio.run(asyncio.wait_for(run(), 30))
