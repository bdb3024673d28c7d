"""The Python clients behave through `sluice proxy` as on the Apache Kafka behind it, and meet none of its addresses.

The campaign `proxy-clients` runs the whole matrix, with three brokers and SASL_SSL as well.
"""

import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

from tests.clients.clients import CLIENTS
from tests.clients.driver import Driver, InProcess
from tests.clients.scenarios import SCENARIOS
from tests.clients.test_matrix import run
from tests.support import apache_kafka, skips
from tools.proxy.matrix import RELAY_HOST, UPSTREAM_HOST, Cell, Place, Security, kafka_of, port_of, proxied
from tools.proxy.sniffer import Leaks, Sockets

STATUS = Path("/proc/net/tcp")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason=skips.system("/proc; run it on Linux"))
# Each kind of request that clients send, once.
CHOSEN = ["acks-0", "50000-records", "offsets-in-transactions", "group-classic", "share-accept", "topics", "cluster"]
PYTHON = [client for client in CLIENTS if isinstance(client, InProcess)]
SAMPLED_WITHIN_S = 60  # a thread of this process, on a busy machine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if (reason := apache_kafka.why_not()) is not None:
        pytest.skip(skips.build(apache_kafka.BUILD, reason))
    cell, folder = Cell(1, Security.PLAIN), tmp_path_factory.mktemp("proxied")
    with kafka_of(cell, folder) as kafka, proxied(cell, kafka, folder) as place:
        yield place
        assert place.leaks() == []


@pytest.mark.kafka_commands
@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("client", PYTHON, ids=[client.name for client in PYTHON])
def test_client_passes_the_scenario(client: Driver, name: str, place: Place) -> None:
    if (reason := client.unsupported.get(name)) is not None:
        pytest.skip(skips.feature(client.name, reason))
    run(client, SCENARIOS[name], place.bootstrap, f"{client.name}-{name}-{uuid4().hex[:8]}")
    assert place.leaks() == []
    assert place.relays is not None
    assert place.relays.received_bytes > 0


def _address(host: str, port: int, *, is_compact: bool = False) -> bytes:
    size = bytes([len(host) + 1]) if is_compact else len(host).to_bytes(2)
    return b"\0\0\0\1" + size + host.encode() + port.to_bytes(4) + b"\0"


LEAKS = {
    "the proxy's address": (_address(RELAY_HOST, 19093), 0),
    "the proxy's address, compact": (_address(RELAY_HOST, 19093, is_compact=True), 0),
    "the upstream's host": (_address(UPSTREAM_HOST, 19093), 1),
    "the upstream's host, compact": (_address(UPSTREAM_HOST, 9092, is_compact=True), 1),
    "the upstream's port": (_address(RELAY_HOST, 9092), 1),
    "the upstream's port, compact": (_address(RELAY_HOST, 9092, is_compact=True), 1),
    "an address in an error message": (f"upstream {UPSTREAM_HOST}:9092 is down".encode(), 1),
    "the value of a config": (f"PLAINTEXT://{UPSTREAM_HOST}:9092".encode(), 0),
}


@pytest.mark.parametrize(("data", "leaks"), LEAKS.values(), ids=LEAKS)
def test_leaked_address_is_found(data: bytes, leaks: int) -> None:
    assert len(Leaks(UPSTREAM_HOST, RELAY_HOST, [19093]).find(b"before" + data + b"after")) == leaks


def test_connection_that_bypasses_the_proxy_is_found() -> None:
    with socket.create_server((UPSTREAM_HOST, 0)) as upstream:
        port = port_of(f"{UPSTREAM_HOST}:{upstream.getsockname()[1]}")
        with Sockets(UPSTREAM_HOST, [port], allowed=[]) as sockets, socket.create_connection((UPSTREAM_HOST, port)):
            end = monotonic() + SAMPLED_WITHIN_S
            while not sockets.found and monotonic() < end:
                sleep(0.01)
    assert sockets.found
