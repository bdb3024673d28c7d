"""Records of large Fetch responses, moved from the upstream broker's socket to the client's by splice(2).

The proxy reads the start of such a response, up to the records of its last partition. The rest follows through a pipe,
as it arrives, and is not copied: Kafka's records come from the page cache (sendfile), and their pages are passed on.
A third of the processor time of reading and writing them remains.

This needs Linux, sockets without TLS on both sides, and a response that nothing changes: no fault rule or quota acts
on it, and it has no addresses. A fault rule that is added meanwhile to the client's connection acts on the next one.
"""

import errno
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sluice.broker.network.connection import Connection
from sluice.broker.network.socket_transport import SocketTransport
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.frame import SIZE_BYTES

from .forwarded_route import ForwardedRoute

if sys.platform != "win32":
    import fcntl

CAN_RELAY = sys.platform == "linux"
_FLAGS = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE if CAN_RELAY else 0
# Less is read and written in the time that a relay takes.
LEAST_BYTES = 64 * 1024
# Enough for a partition and its aborted transactions; a longer start is read as a whole.
_START_BYTES = 4096
# The largest that an unprivileged process may set; Kafka sends 100 KiB at once.
_PIPE_BYTES = 1 << 20
_SPARE_PIPES = 8


class Pipe(NamedTuple):
    output: int
    input: int

    def close(self) -> None:
        os.close(self.output)
        os.close(self.input)


class Pipes:
    """Empty pipes for reuse."""

    def __init__(self) -> None:
        self.are_usable = CAN_RELAY
        self._spare: list[Pipe] = []

    def take(self) -> Pipe:
        """Return a pipe. Raises OSError if the process has too many open files."""
        if self._spare:
            return self._spare.pop()
        pipe = Pipe(*os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))
        with suppress(OSError):  # the user has too many: a smaller one is only slower
            fcntl.fcntl(pipe.input, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return pipe

    def give(self, pipe: Pipe) -> None:
        if len(self._spare) < _SPARE_PIPES:
            self._spare.append(pipe)
        else:
            pipe.close()

    def close(self) -> None:
        while self._spare:
            self._spare.pop().close()


def without_records(start: memoryview, size: int, route: ForwardedRoute) -> mmap.mmap | None:
    """Return a Fetch response of `size` bytes, prefix included, with zeros as the records of its last partition.

    `start` has the bytes that were received so far. Return None if these may change, or what follows them: they do not
    reach the records, or the rest has tagged fields, such as the addresses of new leaders (KIP-951).
    """
    frame = mmap.mmap(-1, size)  # pages that nobody writes use no memory
    known = min(len(start), _START_BYTES)
    header_end = SIZE_BYTES + route.header_bytes
    if known < header_end or (route.flexible and start[header_end - 1]):  # the header has tagged fields
        return None
    with memoryview(frame) as view:
        view[:known] = start[:known]
        body = view[header_end:]
        try:
            response, end = route.decode_response(body, 0, len(body))
        except RemoteProtocolError:
            return None
    assert isinstance(response, FetchResponse)
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    records = partitions[-1].records if partitions else None
    # Without tagged fields, the partition, the topic and the response end with a zero byte each.
    tail = 3 if route.flexible else 0
    is_rest = end == len(body) and records is not None and size - tail - len(records) <= known
    return frame if is_rest else None


class Relay:
    """The rest of one response on its way.

    Args:
        source: Socket of the upstream broker.
        client: The client's connection.
        start: The received bytes of the response.
        left: Number of the other bytes.
        on_moved: Called with each number of bytes that have arrived.
        on_end: Called when the client's socket has all of them.
    """

    def __init__(
        self,
        source: SocketTransport,
        client: Connection,
        pipes: Pipes,
        start: memoryview,
        left: int,
        on_moved: Callable[[int], None],
        on_end: Callable[[], None],
    ) -> None:
        assert isinstance(client.transport, SocketTransport)
        self._source, self._sink, self._client = source, client.transport, client
        self._pipes, self._pipe = pipes, pipes.take()
        self._left = left
        self._in_pipe = 0
        self._on_moved, self._on_end = on_moved, on_end
        self._is_over = self._is_waiting = False
        source.read_by(self._on_readable)
        self._unsent = self._sink.write_part(start)
        if self._unsent:
            self._wait_for_sink()

    def stop(self) -> None:
        """Let the sockets be read and written as before."""
        if self._is_over:
            return
        self._is_over = True
        if self._is_waiting:
            self._sink.write_by(None)
        self._source.read_by(None)
        if self._in_pipe:
            self._pipe.close()
        else:
            self._pipes.give(self._pipe)

    def _on_readable(self) -> None:
        try:
            moved = os.splice(self._source.fd, self._pipe.input, min(self._left, _PIPE_BYTES), flags=_FLAGS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._pipes.are_usable &= error.errno != errno.EINVAL  # this kernel cannot splice sockets
            self.stop()
            self._source.lose(error)
            return
        if not moved:
            self.stop()
            self._source.close()
            return
        self._left -= moved
        self._in_pipe = moved
        self._client.last_active_ms = self._client.request_handler.clock.monotonic_ms()
        self._on_moved(moved)
        self._drain()

    def _on_writable(self) -> None:
        if self._unsent:
            self._unsent = self._sink.write_part(self._unsent)
            if self._unsent:
                return
        self._drain()

    def _drain(self) -> None:
        try:
            while self._in_pipe:
                self._in_pipe -= os.splice(self._pipe.output, self._sink.fd, self._in_pipe, flags=_FLAGS)
        except (BlockingIOError, InterruptedError):
            self._wait_for_sink()
            return
        except OSError as error:
            self.stop()
            self._sink.lose(error)
            return
        if self._is_waiting:
            self._is_waiting = False
            self._sink.write_by(None)
            self._source.resume_reading()
        if not self._left:
            self.stop()
            self._on_end()

    def _wait_for_sink(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._source.pause_reading()
            self._sink.write_by(self._on_writable)
