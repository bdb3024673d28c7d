"""A minimal client of a broker in another thread or in the event loop of the test."""

import asyncio
from collections.abc import Sequence

from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.wire import WireClient


def send_metadata(address: str, client_id: str = "wire", versions: Sequence[int] = (9,)) -> None:
    """Connect, send Metadata requests in these versions, and disconnect."""
    with WireClient(address, client_id) as client:
        for version in versions:
            client.call(MetadataRequest(), version)


async def request_metadata(address: str, client_id: str = "wire", versions: Sequence[int] = (9,)) -> None:
    """Do the same without blocking the event loop."""
    await asyncio.to_thread(send_metadata, address, client_id, versions)
