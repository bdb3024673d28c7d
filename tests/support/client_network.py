"""A network of scripted brokers for the client, without sockets.

Time is virtual: a `ManualClock`, or the clock of a `sluice.testing` loop for coroutines.

    network = VirtualNetwork()
    broker = network.broker(1, "a:9092")               # answers ApiVersions and Metadata automatically
    broker.topics["t"] = [1]                           # the leaders of its partitions
    client = network.client(producer_config({"bootstrap.servers": "a:9092"}), ProducerMetadata(...))
    client.wakeup()
    network.advance(10)                                # connects, requests versions, then metadata
    broker.responses["Produce"] = lambda request: ...  # a message, None for no response, or DISCONNECT
    broker.received[-1]                                # the last request and its time

Brokers can refuse connections, leave them pending (`hangs`), close them on arrival, and `drop` open ones. Use
`ReceivedRequest.respond` for delayed responses.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Literal

from sluice.client.config import ClientConfig
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.connection import Cancelable, Connection
from sluice.client.network.connection_states import Address
from sluice.client.network.network_client import NetworkClient
from sluice.clock import Clock, ManualClock
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sluice.protocol.codec.compile import decode_prefix, decoder, encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

# Not zero, so that a time that was never set differs from a measured one.
START_MS = 5_000_000.0
# Returned by a handler to close the connection instead of responding.
DISCONNECT: Literal["disconnect"] = "disconnect"

ScriptedResponse = Message | None | Literal["disconnect"]


class Middle(Random):
    """A random source that always returns the middle: a factor of 1, and the first node."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


class ReceivedRequest:
    """One request as a broker received it."""

    def __init__(self, end: "BrokerEnd", header: RequestHeader, message: Any, at_ms: float) -> None:
        self._end = end
        self._header = header
        self.message = message  # of the requested API, whose fields mypy cannot know
        self.at_ms = at_ms  # since the start
        self.api = API_KEYS[header.request_api_key].name
        self.version = header.request_api_version
        self.connection = end.number  # counted from 1, of the broker

    def __repr__(self) -> str:
        return f"{self.api} v{self.version} at {self.at_ms} on connection {self.connection}"

    def respond(self, message: Message, *, version: int | None = None, correlation_id: int | None = None) -> None:
        """Respond now; `version` and `correlation_id` default to those of the request."""
        api = API_KEYS[self._header.request_api_key]
        version = self.version if version is None else version
        header = ResponseHeader(
            correlation_id=self._header.correlation_id if correlation_id is None else correlation_id
        )
        parts: list[bytes | memoryview] = []
        encoder(ResponseHeader, api.response_header_version(version))(header, parts)
        encoder(type(message), version)(message, parts)
        body = b"".join(parts)
        self._end.send(len(body).to_bytes(4) + body)


class Wire(asyncio.Transport):
    """The client's end of a connection in memory. Written bytes arrive in the next event-loop iteration."""

    def __init__(self, clock: Clock, connection: Connection, on_bytes: Callable[[bytes], None]) -> None:
        super().__init__()
        self._clock = clock
        self._connection = connection
        self._on_bytes = on_bytes
        self.closed = False
        self.is_stuck = False  # the broker reads nothing
        self._unsent: list[bytes] = []

    def soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the next event-loop iteration."""
        self._clock.call_at(self._clock.monotonic_ms(), callback)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed, "written to a closed connection"
        if self.is_stuck:
            if not self._unsent:
                self._connection.pause_writing()
            self._unsent.append(bytes(data))
        else:
            self.soon(partial(self._on_bytes, bytes(data)))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def unstick(self) -> None:
        """Let the broker read the pending bytes."""
        self.is_stuck = False
        data, self._unsent = b"".join(self._unsent), []
        if data:
            self.soon(partial(self._on_bytes, data))
            self._connection.resume_writing()

    def deliver(self, data: bytes) -> None:
        while data and not self.closed:
            buffer = self._connection.get_buffer(-1)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            data = data[size:]
            self._connection.buffer_updated(size)

    def end(self) -> None:
        """Close the connection from the broker's side."""
        if not self.closed:
            self.closed = True
            self._connection.connection_lost(None)

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self.soon(partial(self._connection.connection_lost, None))

    def close(self) -> None:
        self.abort()

    def is_closing(self) -> bool:
        return self.closed


class BrokerEnd:
    """A scripted broker's end of one connection."""

    def __init__(self, broker: "ScriptedBroker", connection: Connection, number: int) -> None:
        self.broker = broker
        self.number = number
        self.wire = Wire(broker.network.clock, connection, self._take)
        self._rest = b""

    def send(self, data: bytes) -> None:
        """Send bytes, which arrive in the next event-loop iteration."""
        self.wire.soon(partial(self.wire.deliver, data))

    def close(self) -> None:
        """Close the connection; the client notices it in the next event-loop iteration."""
        self.wire.soon(self.wire.end)

    def _take(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 4 and not self.wire.closed:
            size = int.from_bytes(self._rest[:4])
            if len(self._rest) - 4 < size:
                break
            view, self._rest = memoryview(self._rest[4 : 4 + size]), self._rest[4 + size :]
            self.broker.take(self._read(view))

    def _read(self, view: memoryview) -> ReceivedRequest:
        api = API_KEYS[int.from_bytes(view[:2])]
        version = int.from_bytes(view[2:4])
        header, position = decode_prefix(RequestHeader, api.request_header_version(version))(view, 0, len(view))
        message = decoder(api.request, version)(view, position, len(view))
        return ReceivedRequest(self, header, message, self.broker.network.now_ms)


class ScriptedBroker:
    """A scripted broker; without a script it answers only ApiVersions and Metadata."""

    def __init__(self, network: "VirtualNetwork", node_id: int, address: Address) -> None:
        self.network = network
        self.node_id = node_id
        self.address = address
        self.responses: dict[str, Callable[[ReceivedRequest], ScriptedResponse]] = {
            "ApiVersions": self.api_versions,
            "Metadata": self.metadata,
        }
        self.received: list[ReceivedRequest] = []
        self.connected_at_ms: list[float] = []
        self.attempted_at_ms: list[float] = []
        self.ends: list[BrokerEnd] = []
        self.refuses = False
        self.hangs = False
        self.closes_at_once = False
        # Its responses about itself and the cluster. `versions` restricts APIs; leaders are by topic and partition;
        # leader epochs are 0 unless listed.
        self.versions: dict[str, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.topics: dict[str, list[int]] = {}
        self.followers: list[int] = []
        self.offline: list[int] = []
        self.topic_ids: dict[str, bytes] = {}
        self.topic_errors: dict[str, int] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        self.controller_id = node_id

    def requests(self, api: str) -> list[ReceivedRequest]:
        return [request for request in self.received if request.api == api]

    def request_times_ms(self, api: str) -> list[float]:
        return [request.at_ms for request in self.requests(api)]

    def drop(self) -> None:
        """Close all connections."""
        ends, self.ends = self.ends, []
        for end in ends:
            end.close()

    def take(self, request: ReceivedRequest) -> None:
        """Handle a request by its script."""
        self.received.append(request)
        handler = self.responses.get(request.api)
        response = None if handler is None else handler(request)
        if response == DISCONNECT:
            request._end.close()
        elif isinstance(response, Message):
            request.respond(response)

    def accept(self, connection: Connection) -> None:
        self.connected_at_ms.append(self.network.now_ms)
        end = BrokerEnd(self, connection, len(self.connected_at_ms))
        self.ends.append(end)
        connection.connection_made(end.wire)
        if self.closes_at_once:
            end.close()

    def api_versions(self, request: ReceivedRequest) -> ScriptedResponse:
        """Return all versions of all APIs, except for the entries of `versions`."""
        keys = []
        for api in API_KEYS.values():
            lowest, highest = self.versions.get(api.name, (api.min_version, api.max_version))
            if highest >= 0:
                keys.append(ApiVersion(api_key=api.key, min_version=lowest, max_version=highest))
        highest = self.versions.get("ApiVersions", (0, 0x7FFF))[1]
        if request.version > highest:
            request.respond(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys), version=0)
            return None
        features = [FinalizedFeatureKey(name=name, max_version_level=level) for name, level in self.features.items()]
        return ApiVersionsResponse(api_keys=keys, finalized_features=features, finalized_features_epoch=0)

    def metadata(self, request: ReceivedRequest) -> ScriptedResponse:
        """Return all brokers, and the known topics among the requested ones."""
        message: MetadataRequest = request.message
        names = list(self.topics) if message.topics is None else [topic.name or "" for topic in message.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=broker.node_id, host=broker.address[0], port=broker.address[1])
                for broker in self.network.brokers.values()
                if broker.node_id >= 0
            ],
            cluster_id="scripted",
            controller_id=self.controller_id,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        error = self.topic_errors.get(name, 0 if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(
            name=name,
            error_code=error,
            topic_id=self.topic_ids.get(name, bytes(16)),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader_id,
                    leader_epoch=self.epochs.get((name, index), 0),
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader_id < 0 else 0,
                    replica_nodes=[leader_id, *self.followers],
                    offline_replicas=self.offline,
                    isr_nodes=[leader_id],
                )
                for index, leader_id in enumerate(self.topics.get(name, ()))
            ],
        )


class Attempt:
    """A pending connection attempt or name resolution."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def run(self) -> None:
        if self._callback is not None:
            self._callback()

    def cancel(self) -> None:
        self._callback = None


class VirtualNetwork:
    """A `Connector` with connections in memory. `names` maps hosts to other addresses."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or ManualClock(monotonic_ms=START_MS)
        self._start_ms = self.clock.monotonic_ms()
        self.brokers: dict[Address, ScriptedBroker] = {}
        self.names: dict[str, list[str]] = {}
        self.resolved: list[str] = []

    @property
    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return self.clock.monotonic_ms() - self._start_ms

    def advance(self, ms: float) -> None:
        assert isinstance(self.clock, ManualClock), "only a ManualClock can be advanced"
        self.clock.advance(ms)

    def broker(self, node_id: int, address: str) -> ScriptedBroker:
        """Add a broker at `host:port`."""
        host, _, port = address.rpartition(":")
        broker = self.brokers[host, int(port)] = ScriptedBroker(self, node_id, (host, int(port)))
        return broker

    def client(
        self, config: ClientConfig, metadata: Metadata, *, max_in_flight: int = 5, seed: int | Random = 0
    ) -> NetworkClient:
        random = Random(seed) if isinstance(seed, int) else seed
        return NetworkClient(
            config, metadata, self.clock, self, random, max_in_flight=max_in_flight, software_version="0"
        )

    # -- the Connector -------------------------------------------------------------------------------------------------

    def resolve(self, host: str, port: int, resolved: Callable[[Sequence[Address] | OSError], None]) -> Cancelable:
        self.resolved.append(host)
        found = [(name, port) for name in self.names.get(host, [host])]
        return self._later(lambda: resolved(found or OSError(f"no address of {host}")))

    def connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> Cancelable:
        return self._later(lambda: self._connect(address, connection, failed))

    async def close(self) -> None:
        """Do nothing: pending work ends with the test."""

    def _connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> None:
        broker = self.brokers.get(address)
        if broker is None:
            failed(ConnectionRefusedError(f"no broker at {address}"))
            return
        broker.attempted_at_ms.append(self.now_ms)
        if broker.refuses:
            failed(ConnectionRefusedError(f"refused by {address}"))
        elif not broker.hangs:
            broker.accept(connection)

    def _later(self, callback: Callable[[], None]) -> Attempt:
        attempt = Attempt(callback)
        self.clock.call_at(self.clock.monotonic_ms(), attempt.run)
        return attempt
