"""The page's event stream, and its lazy import."""

import asyncio
import json
import subprocess
import sys
from typing import Any

from sluice import Broker


async def _watch_over_http() -> tuple[bytes, list[Any], bytes]:
    """Return the head of a stream, its first messages, and the rest until the broker stops."""
    async with Broker(admin_port=0, config={"sluice.admin.token": "a secret"}) as broker:
        assert broker.admin is not None
        host, port = broker.admin.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = (
            "GET /api/v1/stream?journal=true HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a secret\r\n\r\n"
        )
        writer.write(request.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        messages: list[Any] = []
        while len(messages) < 2:
            line = await reader.readline()
            if line.startswith(b"data: "):
                messages.append(json.loads(line.removeprefix(b"data: ")))
                broker_host, broker_port = broker.brokers[1].split(":")
                (await asyncio.open_connection(broker_host, int(broker_port)))[1].close()
    rest = await reader.read()
    writer.close()
    return head, messages, rest


def test_stream_sends_new_events_until_the_broker_stops() -> None:
    head, (first, second), rest = asyncio.run(_watch_over_http())
    assert b"content-type: text/event-stream" in head
    assert first["cluster"]["version"]
    assert second["journal"]["lines"][0]["kind"] == "connection-opened"
    assert rest.endswith(b"0\r\n\r\n"), "the response ends regularly"


def test_starting_a_broker_imports_nothing_of_the_page() -> None:
    code = "import sys, sluice.cli.serve.run; print(sorted(name for name in sys.modules if 'web' in name))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "['sluice.web']"
