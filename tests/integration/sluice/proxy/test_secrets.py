"""No secret of the proxy or of its clients is in its log, journal, metrics, web page or HTTP API."""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from sluice import Broker
from sluice.broker.journal.reader import JournalReader
from sluice.cli.logs import JsonFormatter
from sluice.client.admin import AdminClient
from sluice.client.errors import KafkaException
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.proxy.server import ProxyOptions, ProxyServer
from tests.support.proxy_over_sockets import bootstrap_of, client, listener, running_proxy
from tests.support.sasl import ALL_MECHANISMS, bearer, plain, token
from tests.support.wire import WireClient

BEARER = token({"sub": "alice", "exp": 9e9, "jti": "bearer-secret"})
# Passwords are NAME-secret.
SECRETS = [
    text
    for secret in (b"secret", plain(), plain("proxy", "proxy-secret"), bearer(BEARER))
    for text in (secret.decode(), b64encode(secret).decode(), secret.hex(), repr(secret)[2:-1])
] + [BEARER, BEARER.split(".")[1]]
PROXY = client("SASL_PLAINTEXT", "proxy", "PLAIN")
CLUSTER = listener("SASL_PLAINTEXT") | dict([ALL_MECHANISMS.split("=", 1)])


def by_tokens(bootstrap: str, mechanism: str, auth_bytes: bytes, version: int) -> None:
    """Authenticate, with headers or without, and send a request."""
    with WireClient(bootstrap) as wire, suppress(ConnectionError):
        wire.call(SaslHandshakeRequest(mechanism=mechanism), version)
        if version:
            wire.call(SaslAuthenticateRequest(auth_bytes=auth_bytes), 2)
        else:
            wire.socket.sendall(len(auth_bytes).to_bytes(4) + auth_bytes)
            wire._read(4)
        wire.call(MetadataRequest(topics=[]), 9)


async def use(proxy: ProxyServer) -> None:
    """Log in by right and wrong passwords and tokens, with all mechanisms."""
    bootstrap = bootstrap_of(proxy)
    for user in ("alice", "mallory"):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with suppress(KafkaException):
                async with AdminClient(
                    {"bootstrap.servers": bootstrap, **client("SASL_PLAINTEXT", user, mechanism)}
                ) as admin:
                    await admin.describe_cluster(timeout_ms=20_000)
    for version in (0, 1):
        await asyncio.to_thread(by_tokens, bootstrap, "PLAIN", plain(), version)
        await asyncio.to_thread(by_tokens, bootstrap, "PLAIN", plain("alice", "wrong-secret"), version)
        await asyncio.to_thread(by_tokens, bootstrap, "PLAIN", b"\0\0secret", version)
        await asyncio.to_thread(by_tokens, bootstrap, "OAUTHBEARER", bearer(BEARER), version)
        await asyncio.to_thread(by_tokens, bootstrap, "OAUTHBEARER", b"n,,\1auth=Bearer secret\1\1", version)


def http(url: str) -> Iterator[str]:
    """Return the responses to all GET requests without parameters in the path."""
    with urlopen(f"{url}/api/openapi.json", timeout=60) as response:
        paths = json.load(response)["paths"]
    for path in ["/", "/metrics", *(path for path, methods in paths.items() if "get" in methods and "{" not in path)]:
        if "stream" not in path:  # endless
            try:
                with urlopen(url + path, timeout=60) as response:
                    yield f"{path}: {response.read().decode()}"
            except HTTPError as error:
                yield f"{path}: {error.read().decode()}"


def shown_by(proxy: ProxyServer, records: list[logging.LogRecord]) -> list[str]:
    cluster = proxy.cluster
    assert cluster.journal is not None
    events = [*JournalReader(cluster.journal, cluster.runtime.clock).events()]
    assert len(events) > 20
    config = proxy.upstream.config
    options = ProxyOptions({"bootstrap.servers": "a:1", **PROXY}, {}, None)
    return [JsonFormatter().format(record) for record in records] + [
        repr(shown)
        for shown in (
            *events,
            options,
            proxy,
            proxy.upstream,
            proxy.upstream.admin,
            config,
            config.warnings,
            proxy.config,
        )
    ]


@pytest.mark.parametrize("sasl_passthrough", [False, True], ids=["ended at the proxy", "passed through"])
async def test_secrets_are_shown_nowhere(sasl_passthrough: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    above = {"listeners": "PLAINTEXT://127.0.0.1:0"} if sasl_passthrough else CLUSTER
    async with (
        Broker(config=CLUSTER) as broker,
        running_proxy(
            {"bootstrap.servers": broker.bootstrap, **PROXY},
            above,
            sasl_passthrough=sasl_passthrough,
            admin=("127.0.0.1", 0),
        ) as proxy,
    ):
        await use(proxy)
        assert proxy.admin is not None
        pages = await asyncio.to_thread(lambda url: [*http(url)], f"http://127.0.0.1:{proxy.admin.port}")
        shown = shown_by(proxy, caplog.records)
    assert len(pages) > 5
    leaks = [(secret, text[:200]) for text in (*pages, *shown) for secret in SECRETS if secret in text]
    assert leaks == []
