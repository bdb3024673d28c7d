"""SocketTransport calls its protocol as asyncio's own transport does, over random scripts of both ends."""

import asyncio
from random import Random
from socket import SHUT_WR, SO_LINGER, SOL_SOCKET, socket, socketpair
from struct import pack

import pytest

from sluice.broker.network.fair_selector import new_loop
from sluice.broker.network.socket_transport import SocketTransport

OPERATIONS = ("peer writes", "peer reads", "pause", "resume", "write", "write much", "write much", "peer reads all")
ENDS = ("peer ends", "peer resets", "close", "abort", "raise")
MUCH = 700_000  # more than the buffers of both sockets
SCRIPTS = 40


class Recorder(asyncio.BufferedProtocol):
    def __init__(self, *, keeps_open: bool) -> None:
        self.calls: list[str] = []
        self.received = b""
        self.fails = False
        self.transport: asyncio.Transport
        self._keeps_open = keeps_open
        self._buffer = bytearray(1000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        if self.fails:
            raise ValueError("a defect of the protocol")

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return self._keeps_open

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(f"lost: {type(exc).__name__}")


async def until_idle() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


def read_all(peer: socket, most: int) -> bytes:
    data = b""
    try:
        while len(data) < most and (piece := peer.recv(min(65_536, most - len(data)))):
            data += piece
    except OSError:
        pass
    return data


def operate(operation: str, protocol: Recorder, peer: socket, number: int) -> bytes:
    """Do one step; return what the peer read."""
    transport = protocol.transport
    match operation:
        case "peer writes" | "raise":
            protocol.fails = operation == "raise"
            peer.send(bytes([number]) * 2500)
        case "peer reads":
            return read_all(peer, 100_000)
        case "peer reads all":
            return read_all(peer, 10 * MUCH)
        case "pause":
            transport.pause_reading()
        case "resume":
            transport.resume_reading()
        case "write":
            transport.write(bytes([number]) * 3)
        case "write much":
            transport.write(memoryview(bytes([number]) * MUCH))
        case "peer ends":
            peer.shutdown(SHUT_WR)
        case "peer resets":
            peer.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
            peer.close()
        case "close":
            transport.close()
        case "abort":
            transport.abort()
    return b""


async def run(seed: int, *, is_ours: bool) -> tuple[list[object], bytes]:
    """Run a script; return what the protocol sees after each step, and what the peer reads."""
    random = Random(seed)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: protocol.calls.append(repr(context["exception"])))
    ours, peer = socketpair()
    ours.setblocking(False)
    peer.setblocking(False)
    protocol = Recorder(keeps_open=random.random() < 0.5)
    if is_ours:
        SocketTransport(loop, ours, protocol, ours.getpeername()).start()
    else:
        await loop.connect_accepted_socket(lambda: protocol, ours)
    seen: list[object] = []
    read = b""
    steps = [*random.choices(OPERATIONS, k=random.randint(0, 10)), random.choice(ENDS), "peer reads all"]
    for number, operation in enumerate(steps):
        if peer.fileno() >= 0:
            read += operate(operation, protocol, peer, number)
        await until_idle()
        transport = protocol.transport
        state = transport.is_closing(), transport.is_reading(), transport.get_write_buffer_size() > 0
        seen.append((operation, protocol.received, list(protocol.calls), state))
    protocol.transport.abort()
    await until_idle()
    peer.close()
    return [*seen, protocol.calls], read


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_protocol_sees_what_it_sees_with_the_transport_of_asyncio(seed: int) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        expected, expected_bytes = runner.run(run(seed, is_ours=False))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        seen, read = runner.run(run(seed, is_ours=True))
    assert seen == expected
    # How much the kernel accepts may differ.
    assert read.startswith(expected_bytes) or expected_bytes.startswith(read)
