"""The brokers that an upstream names, and those that the proxy cannot reach."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from sluice import testing
from sluice.client.errors import KafkaException
from sluice.clock import LoopClock
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.proxy.upstream.cluster import UpstreamCluster
from tests.support.named_upstream import OPTIONS, PORT, NamedUpstream, proxy
from tests.support.wire import frame


@pytest.mark.parametrize("brokers", [[(-1, PORT)], [(number, PORT) for number in range(1001)]])
async def test_an_upstream_names_up_to_1000_brokers(brokers: list[tuple[int, int]]) -> None:
    await NamedUpstream(brokers).listen()
    upstream = UpstreamCluster(OPTIONS, LoopClock(asyncio.get_running_loop()))
    with pytest.raises(KafkaException, match="expected 1 to 1000 brokers, got"):
        await upstream.refresh()
    assert upstream.brokers == {}
    await upstream.close()


async def test_a_negative_node_id_is_no_broker() -> None:
    await NamedUpstream([(-1, PORT), (4, PORT)]).listen()
    async with proxy() as opened:
        assert [*opened.servers] == [4]


def test_a_broker_that_does_not_respond_is_served_like_another(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        await NamedUpstream([(1, PORT), (2, PORT + 1)]).listen()
        async with proxy() as opened:
            assert opened.servers[2].broker.served == opened.servers[1].broker.served

    testing.run(main())
    lines = [
        (line.getMessage(), line.__dict__["broker"])
        for line in caplog.records
        if line.name == "sluice.proxy" and line.levelno >= logging.WARNING
    ]
    assert lines == [("an upstream broker does not respond", 2)]


@pytest.mark.parametrize(
    "error",
    [OverflowError("port must be 0-65535."), UnicodeError("label too long"), OSError(111, "Connection refused")],
    ids=["port", "host name", "refused"],
)
def test_a_client_is_closed_if_the_broker_has_no_valid_address(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        await NamedUpstream([(1, PORT)]).listen()
        loop = asyncio.get_running_loop()
        connect = loop.create_connection

        async def fail(factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **options: Any) -> Any:
            if port == PORT:
                raise error
            return await connect(factory, host, port, **options)

        async with proxy() as opened:
            monkeypatch.setattr(loop, "create_connection", fail)
            reader, writer = await asyncio.open_connection("127.0.0.1", opened.servers[1].endpoints[0].port)
            writer.write(frame(MetadataRequest(), 9, client_id="c", correlation_id=1))
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    testing.run(main())
    lines = [(line.getMessage(), line.__dict__["reason"]) for line in caplog.records if line.name == "sluice.proxy"]
    assert lines == [("upstream broker unreachable", getattr(error, "strerror", None) or str(error))]
