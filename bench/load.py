"""A load generator for servers of size-prefixed frames, on blocking sockets; it checks the responses.

A block is D requests with ascending correlation ids, sent by one call. A connection sends its next block when it has
received all responses. So C connections have at most C x D requests in flight, like any pipelining client.
"""

import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_size = Struct(">i")
_size_and_id = Struct(">ii")
# A buffer fits the responses to any block; with more than _FEW connections, they are small.
_BUFFERS_BYTES = 64 * 1024 * 1024
_FEW = 8
# The offset of the correlation id in a request frame, after the size, API key and version.
_ID_AT = 8


class Result(NamedTuple):
    """The result of one run; `cpu_us` is the server's CPU time per request, user and system."""

    requests_per_s: float
    bytes_in_per_s: float
    bytes_out_per_s: float
    cpu_us: float


class _Connection:
    def __init__(self, port: int, blocks: Iterator[bytes], depth: int, buffer_bytes: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.blocks = blocks
        self.depth = depth
        self.buffer = memoryview(bytearray(buffer_bytes))
        self.filled = self.position = self.answered = 0

    def send(self) -> None:
        self.filled = self.position = self.answered = 0
        self.socket.sendall(next(self.blocks))

    def receive(self, check: Callable[[memoryview], bool]) -> int:
        """Receive bytes; return the complete responses."""
        self.filled += (nbytes := self.socket.recv_into(self.buffer[self.filled :]))
        if not nbytes:
            raise SystemExit("the server closed a connection")
        before = self.answered
        while self.filled - self.position >= _size_and_id.size:
            size, correlation_id = _size_and_id.unpack_from(self.buffer, self.position)
            end = self.position + 4 + size
            if end > self.filled:
                break
            if correlation_id != self.answered or not check(self.buffer[self.position : end]):
                raise SystemExit(f"response: expected correlation id {self.answered}, got {correlation_id}")
            self.position = end
            self.answered += 1
        return self.answered - before


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100  # USER_HZ is 100 on every Linux


def _blocks(frames: Sequence[bytes], depth: int) -> list[bytes]:
    """Return blocks that contain each frame about equally often."""
    numbers = range(0, max(len(frames), depth), depth)
    sent = [[frames[(start + i) % len(frames)] for i in range(depth)] for start in numbers]
    return [b"".join(_with_id(frame, i) for i, frame in enumerate(block)) for block in sent]


def _with_id(frame: bytes, correlation_id: int) -> bytes:
    return frame[:_ID_AT] + _size.pack(correlation_id) + frame[_ID_AT + 4 :]


def run(
    pid: int,
    port: int,
    frames: Sequence[bytes],
    connections: int,
    depth: int,
    seconds: float,
    check: Callable[[memoryview], bool],
) -> Result:
    """Send copies of these request frames for `seconds`, at least one block; `check` validates each response."""
    blocks = cycle(_blocks(frames, depth))  # shared by the connections
    buffer_bytes = _BUFFERS_BYTES // max(connections, _FEW)
    clients = [_Connection(port, blocks, depth, buffer_bytes) for _ in range(connections)]
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send()
    responses = received = 0
    cpu, start = cpu_seconds(pid), time.perf_counter()
    now = start
    while now - start < seconds or responses < depth * connections:
        for key, _ in selector.select():
            client = key.data
            responses += client.receive(check)
            if client.answered == depth:
                received += client.filled
                client.send()
        now = time.perf_counter()
    cpu, elapsed = cpu_seconds(pid) - cpu, now - start
    for client in clients:
        client.socket.close()
    selector.close()
    return Result(
        responses / elapsed, responses * len(frames[0]) / elapsed, received / elapsed, cpu / max(responses, 1) * 1e6
    )
