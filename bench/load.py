"""A load generator for servers of size-prefixed frames, on blocking sockets; it checks the responses.

A block is D requests with ascending correlation ids, sent by one call. A connection sends its next block when it has
received all responses. So C connections have at most C x D requests in flight, like any pipelining client.
"""

import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_size = Struct(">i")
_size_and_id = Struct(">ii")
# The offset of the correlation id in a request frame, after the size, API key and version.
_ID_AT = 8


class Result(NamedTuple):
    """The result of one run; `cpu_us` is the server's CPU time per request, user and system."""

    requests_per_s: float
    bytes_in_per_s: float
    bytes_out_per_s: float
    cpu_us: float


class _Connection:
    def __init__(self, port: int, block: bytes, depth: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.block = block
        self.depth = depth
        self.buffer = memoryview(bytearray(8 * 1024 * 1024))  # fits the responses to any block
        self.filled = self.position = self.answered = 0

    def send(self) -> None:
        self.filled = self.position = self.answered = 0
        self.socket.sendall(self.block)

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


def run(
    pid: int, port: int, frame: bytes, connections: int, depth: int, seconds: float, check: Callable[[memoryview], bool]
) -> Result:
    """Send copies of one request frame for `seconds`, at least one block; `check` validates each response."""
    block = b"".join(frame[:_ID_AT] + _size.pack(i) + frame[_ID_AT + 4 :] for i in range(depth))
    clients = [_Connection(port, block, depth) for _ in range(connections)]
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
        responses / elapsed, responses * len(frame) / elapsed, received / elapsed, cpu / max(responses, 1) * 1e6
    )
