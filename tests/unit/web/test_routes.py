"""What the admin port serves of the page, over real sockets where it is a stream."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from sluice import Broker
from sluice.broker.admin.server import application
from sluice.web import load
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

TOKEN = "sluice.admin.token=a secret"


def test_the_page_and_its_files_are_served() -> None:
    app = application(VirtualBroker().cluster_server, load())
    status, headers, body = call(app, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert '<script type="module" src="/page/main.js">' in body
    assert call(app, "/page/main.js")[1]["content-type"] == "text/javascript; charset=utf-8"


@pytest.mark.parametrize("name", ["nothing.js", "..%2fassets.py", "%2e%2e/assets.py"])
def test_no_other_file_is(name: str) -> None:
    assert call(application(VirtualBroker().cluster_server, load()), f"/page/{name}")[0] == 404


def test_a_file_that_is_known_is_not_sent_again() -> None:
    app = application(VirtualBroker().cluster_server, load())
    etag = call(app, "/page/main.js")[1]["etag"]
    headers = {"if-none-match": etag}
    assert (call(app, "/page/main.js", **headers)[0], call(app, "/page/main.js", **headers)[2]) == (304, "")


def test_a_broker_that_was_given_no_page_has_none() -> None:
    assert call(application(VirtualBroker().cluster_server), "/")[0] == 404


def test_the_page_is_for_everyone_and_what_it_shows_for_who_has_the_token() -> None:
    app = application(VirtualBroker(TOKEN).cluster_server, load())
    assert call(app, "/")[0] == 200
    assert call(app, "/api/v1/stream")[0] == 401
    assert call(app, "/api/v1/stream", authorization="Bearer another")[0] == 401


def test_a_view_that_cannot_be_is_refused() -> None:
    app = application(VirtualBroker().cluster_server, load())
    status, _, body = call(app, "/api/v1/stream", query="sort=size")
    assert (status, json.loads(body)) == (
        400,
        {"error": "sort: 'size': must be one of activity, name, quota, throttled"},
    )


async def _watch_over_http() -> tuple[bytes, list[Any], bytes]:
    """The head of a stream, its first messages, and what comes after these until the broker has stopped."""
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


def test_a_stream_tells_what_is_new_until_the_broker_stops() -> None:
    head, (first, second), rest = asyncio.run(asyncio.wait_for(_watch_over_http(), 20))
    assert b"content-type: text/event-stream" in head
    assert first["cluster"]["version"]
    assert second["journal"]["lines"][0]["kind"] == "connection-opened"
    assert rest.endswith(b"0\r\n\r\n"), "the answer ends; it is not broken off"


def test_who_starts_a_broker_imports_nothing_of_the_page() -> None:
    code = "import sys, sluice.cli.serve.run; print(sorted(name for name in sys.modules if 'web' in name))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "['sluice.web']"
