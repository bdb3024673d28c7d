"""Broker stop with connected HTTP clients."""

import asyncio
import logging
from collections.abc import AsyncIterator
from urllib.request import urlopen

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from sluice import SyncBroker
from sluice.broker.admin.operation import AdminExtension
from sluice.broker.admin.server import AdminPort
from sluice.broker.network.socket_server import bind
from sluice.broker.server.cluster_server import ClusterServer
from tests.support.virtual_broker import VirtualBroker

PATHS = {
    "a finished response": "/healthz",
    "the stream of the web page": "/api/v1/stream",
    "the stream of the journal": "/api/v1/journal?follow=true",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_broker_stops_without_warnings_with_a_connected_http_client(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), SyncBroker(admin_port=0) as broker:
        response = urlopen(f"{broker.admin}{path}", timeout=60)
        assert response.readline()
    response.close()
    assert caplog.messages == []


def test_broker_stops_while_a_client_does_not_read_its_response(caplog: pytest.LogCaptureFixture) -> None:
    async def endless(request: Request) -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield bytes(100_000)
                await asyncio.sleep(0)

        return StreamingResponse(chunks())

    def page(server: ClusterServer) -> AdminExtension:
        return AdminExtension([], [Route("/endless", endless)])

    async def run() -> None:
        async with asyncio.timeout(60):
            listening, loop = bind("127.0.0.1", 0, 8), asyncio.get_running_loop()
            port = AdminPort(VirtualBroker().cluster_server, listening, loop, lambda: page)
            reader, writer = await asyncio.open_connection(port.host, port.port)
            writer.write(b"GET /endless HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            await port.stop()
            writer.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.messages == []
