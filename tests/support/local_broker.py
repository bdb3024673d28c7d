"""A minimal client of a broker in the event loop of the test."""

import asyncio
from collections.abc import Sequence

from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.wire import WireClient


async def request_metadata(address: str, client_id: str = "wire", versions: Sequence[int] = (9,)) -> None:
    """Connect, send requests in these versions, and disconnect."""

    def send() -> None:
        with WireClient(address, client_id) as client:
            for version in versions:
                client.call(MetadataRequest(), version)

    await asyncio.to_thread(send)
