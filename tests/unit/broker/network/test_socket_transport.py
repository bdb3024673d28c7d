"""SocketTransport calls its protocol as asyncio's own transport does, over random scripts of both ends."""

import asyncio
from random import Random
from socket import SHUT_WR, SO_LINGER, SOL_SOCKET, socket, socketpair
from struct import pack

import pytest

from sluice.broker.network.fair_selector import FairLoop, new_loop
from sluice.broker.network.socket_transport import MOST_DEFERRED_BYTES, SendQueue, SocketTransport

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
    protocol.transport.set_write_buffer_limits(random.choice((None, MUCH // 2)))
    seen: list[object] = []
    read = b""
    turns = [random.choices(OPERATIONS, k=random.choice((1, 1, 2, 3))) for _ in range(random.randint(0, 5))]
    end = random.choice(ENDS)
    if turns and end in {"close", "abort"}:
        turns[-1].append(end)
    else:
        turns.append([end])
    for number, operations in enumerate([*turns, ["peer reads all"]]):
        # Ours sends small writes after the other operations of a turn, as a loop with several ready sockets does.
        sends = loop.sends if isinstance(loop, FairLoop) else SendQueue()
        sends.is_open = True
        for operation in operations:
            if peer.fileno() >= 0:
                read += operate(operation, protocol, peer, number)
        sends.is_open = False
        sends.flush()
        await until_idle()
        transport = protocol.transport
        state = transport.is_closing(), transport.is_reading(), transport.get_write_buffer_size() > 0
        seen.append((operations, protocol.received, list(protocol.calls), state))
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
    if len(read) < MUCH:
        assert read == expected_bytes
    else:  # how much the kernel accepts may differ
        assert read.startswith(expected_bytes) or expected_bytes.startswith(read)


# -- small writes, deferred while other sockets are read ---------------------------------------------------------------


class Replier(asyncio.BufferedProtocol):
    """Replies to what it reads, and records which replies have arrived by then."""

    def __init__(self, peers: list[socket], reply: bytes, arrived: list[list[int]]) -> None:
        self._peers, self._reply, self._arrived = peers, reply, arrived
        self._buffer = bytearray(1000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._transport.write(self._reply)
        self._arrived.append([len(read_all(peer, 1 << 20)) for peer in self._peers])


SMALL_RESPONSES = {
    "one client gets its response at once": (1, 100, [[100]], [0]),
    "several get theirs after all requests are read": (2, 100, [[0, 0], [0, 0]], [100, 100]),
    "but large ones at once": (2, MOST_DEFERRED_BYTES + 1, [[4097, 0], [0, 4097]], [0, 0]),
}


@pytest.mark.parametrize(("clients", "size", "during", "afterwards"), SMALL_RESPONSES.values(), ids=SMALL_RESPONSES)
def test_small_responses_are_sent_together(
    clients: int, size: int, during: list[list[int]], afterwards: list[int]
) -> None:
    arrived: list[list[int]] = []
    transports: list[SocketTransport] = []
    loop = FairLoop()
    pairs = [socketpair() for _ in range(clients)]
    peers = [peer for _, peer in pairs]
    for ours, peer in pairs:
        for sock in (ours, peer):
            sock.setblocking(False)
        transports.append(SocketTransport(loop, ours, Replier(peers, bytes(size), arrived), None))
        transports[-1].start()
        peer.send(b"request")
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert arrived == during
    assert [len(read_all(peer, 1 << 20)) for peer in peers] == afterwards
    transports[-1].write(b"later")
    assert read_all(peers[-1], 100) == b"later"
    loop.close()
    for pair in pairs:
        for sock in pair:
            sock.close()


@pytest.mark.parametrize("end", ["close", "abort"])
def test_deferred_response_is_sent_before_the_end(end: str) -> None:
    loop = FairLoop()
    ours, peer = socketpair()
    peer.setblocking(False)
    transport = SocketTransport(loop, ours, Recorder(keeps_open=False), None)
    transport.start()
    loop.sends.is_open = True
    transport.write(b"response")
    assert read_all(peer, 100) == b""
    getattr(transport, end)()
    assert read_all(peer, 100) == b"response"
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    peer.close()


@pytest.mark.parametrize("end", ["close", "abort", "reset by the peer"])
def test_socket_that_a_function_writes_is_not_watched_after_its_end(end: str) -> None:
    loop = FairLoop()
    ours, peer = socketpair()
    ours.setblocking(False)
    transport = SocketTransport(loop, ours, Recorder(keeps_open=False), None)
    transport.start()
    transport.write_by(lambda: None)
    if end == "reset by the peer":
        transport.lose(ConnectionResetError())
    else:
        getattr(transport, end)()
    transport.write_by(None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert transport.fd not in {key.fd for key in loop.selector.get_map().values()}
    loop.close()
    peer.close()
