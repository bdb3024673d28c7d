"""Throttles of many connections over real sockets: no response is sent before its throttle ends.

tests/unit/broker/throttling/test_throttler.py checks the exact times in virtual time.
"""

from contextlib import ExitStack
from time import monotonic

import pytest

from sluice import SyncBroker
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import produce_of
from tests.support.wire import WireClient

CONNECTIONS = 100
QUOTA = 1_000
THROTTLE_MS = 300  # longer than 100 requests take, so that the throttles overlap


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_no_throttle_ends_early(version: int) -> None:
    request = produce_of(10 * QUOTA + THROTTLE_MS, version, "wire-00")
    margins = []
    with SyncBroker(config={"quota.producer.default": QUOTA}) as broker, ExitStack() as stack:
        broker.cluster.create_topic("t")
        clients = [stack.enter_context(WireClient(broker.bootstrap, f"wire-{i:02}")) for i in range(CONNECTIONS)]
        sent = []
        for client in clients:
            sent.append(monotonic())
            client.send(request, version)
            client.send(MetadataRequest(topics=[]), 9)
        for client, moment in zip(clients, sent, strict=True):
            assert client.receive().throttle_time_ms == THROTTLE_MS
            client.receive()
            margins.append(monotonic() - moment - THROTTLE_MS / 1000)
    assert min(margins) >= 0
