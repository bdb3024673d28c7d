"""The search for leaked addresses: what clients receive from a proxy, and what they connect to.

Clients connect to relays at the address that the proxy advertises. A relay searches the responses for the host of the
upstream brokers, and for the advertised host with a port that is not the proxy's. Meanwhile, the sockets of the system
are searched for connections of other processes to the upstream brokers.
"""

import asyncio
import re
import ssl
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

# An address in a response is shorter.
_OVERLAP = 64
_READ_BYTES = 1 << 18
_SAMPLE_S = 0.02


class Leaks:
    """Search of the bytes of one direction of a connection.

    Args:
        upstream_host: Host that no response may contain, except in the values of configs, as `PLAINTEXT://host:port`.
        host: Advertised host of the proxy.
        ports: Its ports.
    """

    def __init__(self, upstream_host: str, host: str, ports: Collection[int]) -> None:
        name = host.encode()
        sizes = b"|".join(re.escape(size) for size in (len(name).to_bytes(2), bytes([len(name) + 1])))
        self._upstream = re.compile(rb"(?<!://)" + re.escape(upstream_host.encode()))
        self._advertised = re.compile(rb"(?:" + sizes + rb")" + re.escape(name) + rb"(.{4})", re.DOTALL)
        self._ports = {port.to_bytes(4) for port in ports}

    def find(self, data: bytes) -> list[str]:
        """Return the leaks in these bytes, with the bytes around each."""
        found = [match.start() for match in self._upstream.finditer(data)]
        found += [match.start() for match in self._advertised.finditer(data) if match[1] not in self._ports]
        return [repr(data[max(0, start - 40) : start + 40]) for start in found]


class Relays:
    """Relays in a thread: each listens on `host` with the port of the address it relays to. A context manager."""

    def __init__(
        self,
        host: str,
        targets: Iterable[str],
        leaks: Leaks,
        contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
    ) -> None:
        """Create relays to these addresses. With TLS contexts, those of a server and of a client, relays decrypt."""
        self.found: list[str] = []
        self.connections = self.received_bytes = 0
        self._host = host
        self._targets = [*targets]
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaks = leaks
        self._server_context = contexts[0] if contexts else None
        self._client_context = contexts[1] if contexts else None
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> "Relays":
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()
        servers = [await self._listen(target) for target in self._targets]
        self._listening.set()
        await self._is_over.wait()
        for server in servers:
            server.close()

    async def _listen(self, target: str) -> asyncio.Server:
        host, _, port = target.rpartition(":")

        def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            # The loop has only weak references to tasks.
            task = self._loop.create_task(self._relay(host, int(port), reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return await asyncio.start_server(relay, self._host, int(port), ssl=self._server_context)

    async def _relay(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(host, port, ssl=self._client_context)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(self._copy(reader, there[1]), self._copy(there[0], writer, is_response=True))
        finally:
            writer.close()
            there[1].close()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_response: bool = False
    ) -> None:
        tail = b""
        try:
            while data := await reader.read(_READ_BYTES):
                writer.write(data)
                await writer.drain()
                if is_response:
                    self.received_bytes += len(data)
                    self.found += self._leaks.find(tail + data)
                    tail = (tail + data)[-_OVERLAP:]
            writer.write_eof() if writer.can_write_eof() else writer.close()
        except OSError:
            writer.transport.abort()


class Sockets:
    """Samples of the system's sockets: other processes with connections to the upstream. A context manager.

    Args:
        host: Host of the upstream brokers.
        ports: Their ports.
        allowed: Processes that may connect to them: the proxy and the brokers.
    """

    def __init__(self, host: str, ports: Collection[int], allowed: Collection[int]) -> None:
        self.found: set[str] = set()
        address = bytes(reversed([int(part) for part in host.split(".")])).hex().upper()
        self._remote = {f"{address}:{port:04X}" for port in ports}
        self._allowed = allowed
        self._seen: set[str] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Sockets":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_SAMPLE_S):
            inodes = self._connected() - self._seen
            if not inodes:
                continue
            self._seen |= inodes
            owners = _owners(self._allowed)
            unknown = [inode for inode in inodes if inode not in owners]
            if unknown:
                everyone = _owners(int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
                self.found |= {everyone[inode] for inode in unknown if inode in everyone}

    def _connected(self) -> set[str]:
        """Return the inodes of the sockets that are connected to the upstream."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {row[9] for row in rows if row[2] in self._remote and row[9] != "0"}


def _owners(processes: Iterable[int]) -> dict[str, str]:
    """Return the command line by inode of the sockets of these processes."""
    found = {}
    for process in processes:
        with suppress(OSError):  # it has ended
            command = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")[:200]
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    target = str(descriptor.readlink())
                    if target.startswith("socket:["):
                        found[target[8:-1]] = f"{process}: {command}"
    return found
