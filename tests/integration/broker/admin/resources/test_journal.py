"""The journal's event stream over real sockets."""

import asyncio
import json
from typing import Any

from sluice import Broker

PATH = "/api/v1/journal"


async def _follow_over_http() -> tuple[list[dict[str, Any]], bytes]:
    """Return the events of a followed stream, and the rest of it after the broker stops."""
    async with Broker(admin_port=0) as broker:
        assert broker.admin is not None
        host, port = broker.admin.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET {PATH}?follow=true&kind=connection-opened&after=0 HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        lines: list[dict[str, Any]] = []
        for number in (1, 2):
            broker_host, broker_port = broker.brokers[1].split(":")
            client = (await asyncio.open_connection(broker_host, int(broker_port)))[1]
            while len(lines) < number:
                chunk = await reader.readline()
                if chunk.startswith(b"{"):
                    lines.append(json.loads(chunk))
            client.close()
    rest = await reader.read()
    writer.close()
    return lines, rest


def test_followed_stream_returns_new_events_until_the_broker_stops() -> None:
    lines, rest = asyncio.run(_follow_over_http())
    assert [(event["kind"], event["connection"]) for event in lines] == [
        ("connection-opened", 1),
        ("connection-opened", 2),
    ]
    assert b"{" not in rest
