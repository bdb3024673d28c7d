"""A blocking client of benchmarks, its requests as bytes, and the process that it measures."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from struct import Struct
from typing import Any

from sluice.protocol.apis import api_of
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.codec.compile import decode_prefix, decoder, encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

CLIENT_ID = "bench"
_LARGE_BATCH_BYTES = 64 * 1024
_size = Struct(">i")


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, str]]:
    """Start a module as a process; yield its pid and the first line of its output."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline()
    finally:
        process.terminate()
        process.wait()


class Client:
    """Blocking connections to the counted broker."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port
        self.socket = self.connect()
        self._names = count()

    def new_name(self) -> str:
        """Return a name that was not used before."""
        return f"group-{next(self._names)}"

    def connect(self) -> socket.socket:
        """Return another connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def close(self) -> None:
        """Disconnect, and return when the broker has closed the connection, too."""
        self.socket.shutdown(socket.SHUT_WR)
        assert not self.socket.recv(1), "the broker sent something"
        self.socket.close()

    def call(self, request: Message, version: int, accepted: ErrorCode = ErrorCode.NONE) -> Any:
        """Send one request; return its response, without an error or with an accepted one."""
        self.socket.sendall(frame(request, version))
        body = memoryview(receive(self.socket))
        api = api_of(type(request))
        _, start = decode_prefix(ResponseHeader, api.response_header_version(version))(body, 0, len(body))
        response = decoder(api.response, version)(body, start, len(body))
        assert getattr(response, "error_code", 0) in (0, accepted), response
        return response

    def exchange(self, frames: list[bytes]) -> None:
        """Send requests one at a time; receive each response."""
        for each in frames:
            with self.stopped() if len(each) > _LARGE_BATCH_BYTES else nullcontext():
                self.socket.sendall(each)
            receive(self.socket)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker's process, so that it finds everything at once that is sent meanwhile."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


def frame(request: Message, version: int, client_id: str = CLIENT_ID) -> bytes:
    """Return a request as bytes: size, header, body."""
    api = api_of(type(request))
    parts: list[bytes | memoryview] = []
    header = RequestHeader(request_api_key=api.key, request_api_version=version, client_id=client_id)
    encoder(RequestHeader, api.request_header_version(version))(header, parts)
    encoder(type(request), version)(request, parts)
    body = b"".join(parts)
    return _size.pack(len(body)) + body


def receive(sock: socket.socket) -> bytes:
    """Return the body of the next response."""
    (size,) = _size.unpack(_receive(sock, 4))
    return _receive(sock, size)


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the broker closed the connection"
        data += piece
    return data
