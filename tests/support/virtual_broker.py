"""A broker in virtual time, and clients that use it without sockets.

`VirtualBroker` is the real Broker, SocketServer, Exchange and Connection on a ManualClock. A stand-in for the event
loop runs `call_soon` callbacks as timers that are already due, so that everything happens at its own virtual
millisecond. `Client` is the other end of one connection: it encodes requests, buffers bytes while the broker does not
read, and decodes the responses with their times.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.broker.broker import Broker
from sluice.broker.journal.reader import JournalReader
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.network.connection import Connection
from sluice.broker.network.shaped_transport import ShapedTransport
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import ManualClock, TimerHandle
from sluice.config.broker_config import Config
from sluice.protocol.apis import API_KEYS, api_of
from sluice.protocol.message import Message
from sluice.virtual_time.transport import MemorySocket
from tests.support.wire import frame, read_response

if TYPE_CHECKING:
    from sluice.broker.network.tls_transport import TlsTransport

# Not zero, so that a time that was never set differs from a measured one.
START_MS = 5_000_000.0
WALL_START_MS = 1_700_000_000_000
# With a journal, which is off by default.
JOURNAL = "sluice.journal.events=16384"
# Of each internal topic: creating Kafka's 50 in each test took 5 % of the time of all unit tests.
INTERNAL_PARTITIONS = 5
_DEFAULTS = (
    "listeners=PLAINTEXT://127.0.0.1:0",
    f"offsets.topic.num.partitions={INTERNAL_PARTITIONS}",
    f"transaction.state.log.num.partitions={INTERNAL_PARTITIONS}",
)
# asyncio's default: above this many unsent bytes a transport pauses its protocol.
HIGH_WATER_BYTES = 64 * 1024
# The last requests and responses, which the report of a failed test shows: as many as fit on a screen.
TRACED = 15


class VirtualLoop:
    """The part of an event loop that starts a SocketServer; `call_soon` is a timer that is already due."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.factories: dict[int, Callable[[], Connection | TlsTransport | ShapedTransport]] = {}  # by listening port
        self.trace: deque[Traced] = deque(maxlen=TRACED)
        self._next_port = 32_768  # the first of Linux' ephemeral ports

    def call_soon(self, callback: Callable[..., object], *args: object) -> TimerHandle:
        def call() -> None:
            callback(*args)

        return self.clock.call_at(self.clock.monotonic_ms(), call)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> TimerHandle:
        def call() -> None:
            callback()

        return self.clock.call_at(self.clock.monotonic_ms() + delay_s * 1e3, call)

    def create_task(self, coroutine: Coroutine[object, None, None]) -> "Task":
        return Task(self, coroutine)

    def bind(self, host: str, port: int, backlog: int) -> MemorySocket:
        """Return a listening socket in memory; port 0 picks the next free one."""
        if not port:
            port = self._next_port
            self._next_port += 1
        return MemorySocket((host, port))

    async def create_server(
        self, factory: "Callable[[], Connection | TlsTransport | ShapedTransport]", *, sock: MemorySocket
    ) -> "Listening":
        port = sock.getsockname()[1]
        self.factories[port] = factory
        return Listening(self, port)


class Traced(NamedTuple):
    """A request that a client encoded, or a response that it received."""

    at_ms: float
    port: int
    client_id: str | None
    what: str
    api: str
    version: int

    def __str__(self) -> str:
        return f"{self.at_ms:.3f} ms {self.client_id} (port {self.port}) {self.what} {self.api} v{self.version}"


class Task:
    """A coroutine that starts a broker and never waits."""

    def __init__(self, loop: VirtualLoop, coroutine: Coroutine[object, None, None]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._done: list[Callable[[Task], object]] = []
        loop.call_soon(self._run)

    def add_done_callback(self, callback: "Callable[[Task], object]") -> None:
        self._done.append(callback)

    def _run(self) -> None:
        run(self._coroutine)
        for callback in self._done:
            callback(self)


class Listening:
    """The server of one listening socket, in place of asyncio.Server."""

    def __init__(self, loop: VirtualLoop, port: int) -> None:
        self._loop = loop
        self._port = port

    def close(self) -> None:
        self._loop.factories.pop(self._port, None)


class Transport(asyncio.Transport):
    """The transport of a connection. As asyncio's, it reports its end in the next event-loop iteration."""

    def __init__(self, client: "Client", loop: VirtualLoop) -> None:
        super().__init__({"peername": (client.host, client.port), "sockname": ("127.0.0.1", 9092)})
        self._client = client
        self._loop = loop
        self.reading = True
        self.closing = False
        self.aborted = False
        self.writes: list[bytes] = []  # one entry for each send system call
        self.unsent = bytearray()
        self._protocol_paused = False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        if not self.reading and not self.closing:
            self.reading = True
            self._loop.call_soon(self._client.deliver)

    def is_closing(self) -> bool:
        return self.closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, Connection | ShapedTransport)
        self._client.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closing, "the connection wrote to a closed socket"
        assert len(data), "the connection wrote nothing"
        self.writes.append(bytes(data))
        self.unsent += data
        if self._client.reads:
            self.drain()
        elif len(self.unsent) > HIGH_WATER_BYTES and not self._protocol_paused:
            self._protocol_paused = True
            self._client.protocol.pause_writing()

    def writelines(self, parts: Sequence[bytes | memoryview]) -> None:  # type: ignore[override]  # fewer types are sent
        self.write(b"".join(parts))

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def drain(self) -> None:
        """Remove the sent bytes from the buffer, as a reading client does."""
        data, self.unsent = bytes(self.unsent), bytearray()
        if data:
            self._client.on_bytes(data)
        if self._protocol_paused:
            self._protocol_paused = False
            self._loop.call_soon(self._client.protocol.resume_writing)
        if self.closing:
            self._end(None)

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self.reading = False
            if not self.unsent:
                self._end(None)

    def abort(self) -> None:
        self.closing = self.aborted = True
        self.reading = False
        self._end(None)

    def fail(self, error: Exception) -> None:
        """End the connection with an error."""
        if not self.closing:
            self.closing = True
            self.reading = False
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        self._loop.call_soon(self._client.lost, error)


class ReceivedResponse(NamedTuple):
    """One response as a client received it."""

    message: Any  # of the requested API, whose fields mypy cannot know
    api: str
    version: int
    correlation_id: int
    at_ms: float  # since the broker's start
    size: int  # of the frame without the size prefix

    @property
    def throttle_time_ms(self) -> int:
        throttle_time_ms = getattr(self.message, "throttle_time_ms", None)
        assert isinstance(throttle_time_ms, int), f"{self.api} v{self.version} has no throttle time"
        return throttle_time_ms


class Client:
    """The client's end of one connection."""

    def __init__(
        self,
        broker: "VirtualBroker",
        client_id: str | None,
        port: int,
        server: SocketServer,
        *,
        host: str = "127.0.0.1",
        listener: int = 0,
    ) -> None:
        self.broker = broker
        self.host = host
        self.client_id = client_id
        self.port = port
        self.reads = True
        self.on_bytes: Callable[[bytes], object] = self.take  # handles received bytes
        self.closed_at_ms: float | None = None
        self.responses: list[ReceivedResponse] = []
        self._in_flight: dict[int, tuple[int, int]] = {}  # correlation id -> API key, version of the response
        self._last_id = 0
        self._sent = bytearray()  # what the broker has not read yet
        self._received = bytearray()
        self._ended = False
        self._gone = False
        self.transport = Transport(self, broker.loop)
        self.protocol = broker.loop.factories[server.endpoints[listener].port]()
        above = self.protocol.above if isinstance(self.protocol, ShapedTransport) else self.protocol
        self.connection: Connection = above  # type: ignore[assignment]  # a TlsClient has another type
        self.protocol.connection_made(self.transport)

    # -- sending -------------------------------------------------------------------------------------------------------

    def frame(self, request: Message, version: int, *, answered_in: int | None = None) -> bytes:
        """Return the bytes of a request; `answered_in` is the version of the response, if it differs."""
        self._last_id += 1
        api = api_of(type(request))
        self._in_flight[self._last_id] = api.key, version if answered_in is None else answered_in
        self._trace("sends", api.name, version)
        return frame(request, version, client_id=self.client_id, correlation_id=self._last_id)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes; the broker has processed them on return, as far as it reads."""
        self._sent += data
        self.broker.loop.call_soon(self.deliver)
        self.broker.settle()

    def send(self, request: Message, version: int, *, answered_in: int | None = None) -> None:
        """Send a request without waiting for the response."""
        self.send_bytes(self.frame(request, version, answered_in=answered_in))

    def send_together(self, *requests: tuple[Message, int]) -> None:
        """Send several requests that the broker receives in one read."""
        self.send_bytes(b"".join(self.frame(request, version) for request, version in requests))

    def exchange(self, request: Message, version: int) -> ReceivedResponse:
        """Send a request and return its response, which must be immediate, with its time and size."""
        assert not self.responses, f"unread responses: {self.responses}"
        self.send(request, version)
        return self.response()

    def call(self, request: Message, version: int) -> Any:
        """Send a request and return the message of its response, which must be immediate."""
        return self.exchange(request, version).message

    def response(self) -> ReceivedResponse:
        """Return the only new response."""
        assert len(self.responses) == 1, f"expected one response, got {len(self.responses)}: {self.responses}"
        return self.responses.pop()

    def take_responses(self) -> list[ReceivedResponse]:
        responses, self.responses = self.responses, []
        return responses

    # -- leaving -------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Shut down the sending side only."""
        self._ended = True
        self.broker.loop.call_soon(self.deliver)
        self.broker.settle()

    def leave(self) -> None:
        """Disconnect as a killed process does."""
        self._gone = True
        self.broker.loop.call_soon(self.deliver)
        self.broker.settle()

    def stop_reading(self) -> None:
        """Stop reading: sent responses stay in the broker's transport."""
        self.reads = False

    def read_on(self) -> None:
        """Resume reading, including the responses that waited."""
        self.reads = True
        self.transport.drain()
        self.broker.settle()

    @property
    def is_open(self) -> bool:
        """Whether the broker has not closed the connection."""
        return not self.transport.closing

    @property
    def unread_bytes(self) -> int:
        return len(self._sent)

    # -- what the transport and the loop call --------------------------------------------------------------------------

    def deliver(self) -> None:
        """Run one event-loop iteration: one read, if the broker reads and there are bytes."""
        transport, connection = self.transport, self.protocol
        if not transport.reading:
            return
        if self._gone:
            transport.fail(ConnectionResetError())
        elif self._sent:
            buffer = connection.get_buffer(-1)
            assert len(buffer) > 0
            size = min(len(buffer), len(self._sent))
            buffer[:size] = self._sent[:size]
            del self._sent[:size]
            connection.buffer_updated(size)
            self.broker.loop.call_soon(self.deliver)
        elif self._ended:
            self._ended = False
            transport.reading = False
            if not connection.eof_received():
                transport.close()

    def take(self, data: bytes) -> None:
        """Split received bytes into responses."""
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4])
            if len(self._received) - 4 < size:
                break
            body = memoryview(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]
            self.responses.append(self._decode(body))

    def lost(self, error: Exception | None) -> None:
        """Handle the end of the transport."""
        if self.closed_at_ms is None:
            self.closed_at_ms = self.broker.now_ms
            self.protocol.connection_lost(error)

    def _decode(self, body: memoryview) -> ReceivedResponse:
        correlation_id = int.from_bytes(body[:4], signed=True)
        key, version = self._in_flight.pop(correlation_id)
        message = read_response(body, key, version)
        self._trace("receives", API_KEYS[key].name, version)
        return ReceivedResponse(message, API_KEYS[key].name, version, correlation_id, self.broker.now_ms, len(body))

    def _trace(self, what: str, api: str, version: int) -> None:
        self.broker.loop.trace.append(Traced(self.broker.now_ms, self.port, self.client_id, what, api, version))


class VirtualBroker:
    """A broker in virtual time; `overrides` are `key=value`, as of `sluice serve --override`.

    With `sluice.brokers=3` it has three brokers: `broker` and `server` are the first, the others are found by node id.
    """

    def __init__(self, *overrides: str) -> None:
        self.clock = ManualClock(WALL_START_MS, START_MS)
        self.loop = VirtualLoop(self.clock)
        config = Config.load(None, [*_DEFAULTS, *overrides])
        self.cluster_server = ClusterServer(config, self.clock, Random(0), self.loop)  # type: ignore[arg-type]  # has the methods that it uses
        self.cluster = self.cluster_server.cluster
        self.run(self.cluster_server.start())
        self.broker: Broker = next(iter(self.cluster_server.brokers.values()))
        self.server = self.cluster_server.servers[self.broker.node_id]
        self._next_port = 40_000

    def run(self, coroutine: Coroutine[object, None, None]) -> None:
        """Run a coroutine that starts or stops brokers."""
        run(coroutine)
        self.settle()

    @property
    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return self.clock.monotonic_ms() - START_MS

    def advance(self, ms: float) -> None:
        self.clock.advance(ms)

    def settle(self) -> None:
        """Run everything that is due."""
        self.clock.advance(0)

    def client(
        self,
        client_id: str | None = "client",
        *,
        node_id: int | None = None,
        host: str = "127.0.0.1",
        listener: int = 0,
    ) -> Client:
        """Open a connection with this client id from `host` to a broker, by default the first."""
        self._next_port += 1
        server = self.cluster_server.servers[node_id or self.broker.node_id]
        return Client(self, client_id, self._next_port, server, host=host, listener=listener)

    def topic(
        self,
        name: str = "t",
        partitions: int = 1,
        replicas: int = -1,
        *,
        assignments: Mapping[int, tuple[int, ...]] | None = None,
        **configs: str,
    ) -> Topic:
        """Create a topic, optionally with the brokers of each partition; config names have underscores for dots."""
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        topic = self.cluster.create(
            NewTopic(name, -1 if assignments else partitions, replicas, tuple((assignments or {}).items()), dotted)
        )
        assert isinstance(topic, Topic), topic
        return topic

    @property
    def journal(self) -> JournalReader:
        """Return a reader of the journal, which must be on."""
        assert self.cluster.journal is not None
        return JournalReader(self.cluster.journal, self.clock)

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        partition = self.cluster.metadata.partition(topic, index)
        assert partition is not None, f"{topic}-{index} does not exist"
        return partition


def broker_with_topic(*overrides: str, **options: Any) -> VirtualBroker:
    """Return a broker with a topic, by default t with one partition."""
    broker = VirtualBroker(*overrides)
    broker.topic(**options)
    return broker


def run(coroutine: Coroutine[object, None, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("the coroutine waited")
