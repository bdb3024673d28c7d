"""The reference: an asyncio server for size-prefixed frames without any processing.

It sends one response per frame, with one write per read. `python -m bench.bare_server ANSWER_BYTES` prints its port. A
response has the correlation id (bytes 4 to 8 of the frame's body) and zeros: ANSWER_BYTES after the size prefix. With
ANSWER_BYTES 0 it echoes each frame.
"""

import asyncio
import sys
from struct import Struct

_size = Struct(">i")
# Larger than any frame of the measurements.
BUFFER_BYTES = 4 * 1024 * 1024


class BareProtocol(asyncio.BufferedProtocol):
    """A protocol that answers frames with the cheapest API of asyncio."""

    def __init__(self, response_bytes: int) -> None:
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0
        self._response = memoryview(bytes(max(response_bytes - 4, 0)))
        self._head = _size.pack(response_bytes)
        self._echo = response_bytes == 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        position = 0
        out: list[bytes | memoryview] = []
        while self._filled - position >= 4:
            end = position + 4 + _size.unpack_from(self._buffer, position)[0]
            if end > self._filled:
                break
            if self._echo:
                out.append(bytes(self._buffer[position:end]))
            else:
                out += (self._head, bytes(self._buffer[position + 8 : position + 12]), self._response)
            position = end
        if out:
            self._transport.writelines(out)
        rest = self._filled - position
        if rest and position:
            self._buffer[:rest] = bytes(self._buffer[position : self._filled])
        self._filled = rest


async def main() -> None:
    """Serve until the process is terminated."""
    response_bytes = int(sys.argv[1])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BareProtocol(response_bytes), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
