"""A proxy in virtual time in front of an upstream broker that sends anything, and a client of the proxy.

An input selects the kind of the proxy, a request, how many of them are sent, and how the rest of the input is sent as
the upstream's answer to the first one. Defects are exceptions, a client that gets neither a response nor the end of its
connection, more than a few log lines, and listeners without end.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from struct import Struct
from typing import Any, NamedTuple

from sluice.broker.faults.rule import parse_rule
from sluice.broker.security.sasl.jaas import PLAIN_MODULE
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, ApiKey, api_of
from sluice.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.apis.metadata import MetadataResponse, MetadataResponseBroker
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.message import Message
from sluice.proxy.discovery import open_proxy
from sluice.proxy.mutations import MUTATING
from sluice.proxy.sasl.authentication import CLIENT_ID
from sluice.proxy.server import ProxyOptions, ProxyServer
from sluice.virtual_time.event_loop import VirtualLoop
from sluice.web import load as load_page
from tests.support.wire import frame
from tools.fuzz.messages import random_message


class DefectError(Exception):
    """A target did what it never should."""


# Kind of the proxy, request, number of requests, delivery.
HEADER = Struct(">BHBB")
# As one frame with the right correlation id; as it is; in pieces; then the end, or a TCP reset; to the proxy itself.
FRAMED, RAW, IN_PIECES, CLOSED, RESET, TO_PROXY = range(6)
DELIVERIES = TO_PROXY + 1
REQUESTS = [(api.key, version) for api in API_KEYS.values() for version in range(api.min_version, api.max_version + 1)]
CORRELATION_ID = 1  # of each client's first request

_NODE_IDS = (1, 2)
_PORT, _PROXY_PORT = 9090, 19092  # plus the node id
_MOST_REQUESTS = 3
_PIECE_BYTES = 3
_IN_PIECES_BYTES = 48  # the rest follows at once
# Virtual seconds until the client must have what the upstream sent, or the end of its connection. Delays are included:
# those of rules, between pieces, and of the proxy, which reads the brokers every 5 s.
_PASSED_ON_S = 0.05
_PASSED_ON = {IN_PIECES: 0.2, TO_PROXY: 6.0}
_OPENS_WITHIN_S = 10
_ASKS_FOR_S = 61  # `default.api.timeout.ms` of the proxy's own requests is 60 s
_MOST_BROKERS = 100
_MOST_LINES = 4

_RULES: tuple[Mapping[str, object], ...] = (
    {"kind": "delay", "ms": 10, "when": "after"},
    {"kind": "error", "code": "UNKNOWN_SERVER_ERROR", "when": "after"},
    {"kind": "throttle", "throttle_time_ms": 10},
    {"kind": "unknown-leader"},
    {"kind": "wrong-leader"},
    {"kind": "stale-leader-hint"},
    {"kind": "empty-metadata"},
    {"kind": "offset-lie", "shift": 1},
    {"kind": "corrupt-records"},
)
# Shares of random inputs. The proxy's own requests take the most time.
_OTHERWISE_DELIVERED = 0.3
_TO_PROXY = 0.01
_SASL_SHARE = 0.7  # of SASL's responses, and of those without an error

_QUOTAS = ("quota.producer.default=100000", "quota.consumer.default=100000")


class _Kind(NamedTuple):
    config: tuple[str, ...] = ()
    rule: Mapping[str, object] | None = None
    mutation_rate: float = 0.0  # a quota, if not 0
    passes_sasl: bool = False
    authenticates: bool = False  # the proxy, by SASL


_KINDS = (
    _Kind(),
    _Kind(config=("sluice.journal.events=1000",)),  # a full ring, soon
    *(
        _Kind(config=(*_QUOTAS, each))
        for each in ("quota.profile=by-version", "quota.profile=kip-13", "sluice.quota.mode=shadow")
    ),
    _Kind(mutation_rate=1e9),
    *(_Kind(rule=rule) for rule in _RULES),
    _Kind(passes_sasl=True),
    _Kind(authenticates=True),
)
_TOKENS = (
    ("PLAIN", b"\0alice\0secret"),
    ("SCRAM-SHA-256", b"n,,n=alice,r=nonce"),
    ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01"),
    ("GSSAPI", b"`\x82ticket"),
)
_OF_SASL = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN_MODULE} required username="alice" password="secret";',
}


class _Upstream(asyncio.Protocol):
    """One connection to the upstream broker."""

    def __init__(self, bench: "_Bench") -> None:
        self._bench = bench
        self._received = b""
        self.is_of_proxy = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._bench.connections.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._bench.connections.remove(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4])
            if len(self._received) < end:
                return
            request, self._received = self._received[4:end], self._received[end:]
            self._respond(request)

    def _respond(self, request: bytes) -> None:
        if self.transport is None:
            return
        bench, key, version = self._bench, int.from_bytes(request[:2]), int.from_bytes(request[2:4])
        try:
            header, _ = decode_prefix(RequestHeader, 1)(memoryview(request), 0, len(request))
        except RemoteProtocolError:  # a SASL token
            header = RequestHeader()
        is_login = bench.kind.authenticates and key in _OF_SASL
        self.is_of_proxy = header.client_id == CLIENT_ID and not is_login
        bench.is_reached |= not self.is_of_proxy
        if bench.answer is not None and (is_login or self.is_of_proxy == (bench.delivery == TO_PROXY)):
            bench.deliver(self.transport, header.correlation_id)
        elif header.client_id == CLIENT_ID:
            self.transport.write(_honest(key, version, header.correlation_id))


def _honest(key: int, version: int, correlation_id: int) -> bytes:
    if key == ApiKey.API_VERSIONS:
        served = [
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in API_KEYS.values()
        ]
        return framed(ApiVersionsResponse(api_keys=served), version, correlation_id)
    if key in _OF_SASL:
        return framed(API_KEYS[key].response(), version, correlation_id)
    assert key == ApiKey.METADATA
    brokers = [MetadataResponseBroker(node_id=each, host="127.0.0.1", port=_PORT + each) for each in _NODE_IDS]
    return framed(MetadataResponse(brokers=brokers, cluster_id="fuzz"), version, correlation_id)


def framed(response: Message, version: int, correlation_id: int) -> bytes:
    api = api_of(type(response))
    parts: list[bytes | memoryview] = []
    encoder(ResponseHeader, api.response_header_version(version))(ResponseHeader(correlation_id=correlation_id), parts)
    encoder(api.response, version)(response, parts)
    body = b"".join(parts)
    return len(body).to_bytes(4) + body


@cache
def _request(key: int, version: int, number: int) -> bytes:
    request = random_message(API_KEYS[key].request, version, Random(number))
    return frame(request, version, client_id="fuzz", correlation_id=CORRELATION_ID + number)


def _login(key: int, version: int) -> list[bytes]:
    """Return a SASL exchange of a client, with or without headers, and another request."""
    mechanism, token = _TOKENS[(key + version) % len(_TOKENS)]
    handshake_version = version % 2
    handshake = frame(SaslHandshakeRequest(mechanism=mechanism), handshake_version, client_id="fuzz")
    raw = len(token).to_bytes(4) + token
    with_header = frame(SaslAuthenticateRequest(auth_bytes=token), 1, client_id="fuzz", correlation_id=2)
    return [handshake, with_header if handshake_version else raw, _request(key, version, 2)]


class _Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.received = 0
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True

    def data_received(self, data: bytes) -> None:
        self.received += len(data)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__.get('reason', '')}")


class _Bench:
    """A loop with one upstream and one proxy."""

    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        self.loop = VirtualLoop(until=1e9, max_turns=10**12)
        self.connections: list[_Upstream] = []
        self.answer: bytes | None = None
        self.delivery = FRAMED
        self.is_reached = False
        self.failures: list[str] = []
        self.loop.set_exception_handler(lambda _, context: self.failures.append(str(context)))
        self.proxy = self.loop.run_until_complete(self._start())

    async def _start(self) -> ProxyServer:
        for node_id in _NODE_IDS:
            await self.loop.create_server(lambda: _Upstream(self), "127.0.0.1", _PORT + node_id)
        kind = self.kind
        config = Config.load(None, [f"listeners=PLAINTEXT://127.0.0.1:{_PROXY_PORT}", *kind.config], {})
        upstream = {"bootstrap.servers": f"127.0.0.1:{_PORT + 1}"} | (
            _LOGIN if kind.passes_sasl or kind.authenticates else {}
        )
        options = ProxyOptions(upstream, {}, None, sasl_passthrough=kind.passes_sasl)
        proxy = await open_proxy(options, config, LoopClock(self.loop), Random(0), self.loop, load_page)
        await proxy.start()
        (self.follower,) = (
            task.get_coro() for task in asyncio.all_tasks() if "ProxyServer._follow" in str(task.get_coro())
        )
        if kind.mutation_rate:
            proxy.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": kind.mutation_rate})
        if kind.rule is not None:
            proxy.faults.add(parse_rule({"action": kind.rule}, "rule"))
        return proxy

    def deliver(self, transport: asyncio.Transport, correlation_id: int) -> None:
        """Send the answer of the input to each request."""
        answer = self.answer or b""
        if self.delivery in (FRAMED, TO_PROXY):
            transport.write((4 + len(answer)).to_bytes(4) + correlation_id.to_bytes(4, signed=True) + answer)
        elif self.delivery == IN_PIECES:
            for at in range(0, _IN_PIECES_BYTES, _PIECE_BYTES):
                self.loop.call_later(at / 1e4, transport.write, answer[at : at + _PIECE_BYTES])
            self.loop.call_later(0.1, transport.write, answer[_IN_PIECES_BYTES:])
        else:
            transport.write(answer)
            if self.delivery == CLOSED:
                transport.close()
            elif self.delivery == RESET:
                transport.abort()

    async def _connect(self) -> _Client:
        """Connect to broker 1, whose port is closed after a Metadata with another address, until the next one."""
        for _ in range(_OPENS_WITHIN_S):
            try:
                _, client = await self.loop.create_connection(
                    _Client, "127.0.0.1", self.proxy.servers[1].endpoints[0].port
                )
            except ConnectionRefusedError:
                await asyncio.sleep(1)
            else:
                return client
        raise DefectError(f"the proxy refuses clients for {_OPENS_WITHIN_S} s")

    async def run(self, request: tuple[int, int], count: int, answer: bytes) -> None:
        client = await self._connect()
        self.answer = answer
        assert client.transport is not None
        sent = _login(*request) if self.kind.passes_sasl else [_request(*request, number) for number in range(count)]
        client.transport.write(b"".join(sent))
        await asyncio.sleep(_PASSED_ON.get(self.delivery, _PASSED_ON_S))
        self.answer = None
        is_forwarded = self.is_reached and (self.kind.passes_sasl or request[0] not in _OF_SASL)
        is_served = client.received or client.is_closed or not is_forwarded
        if not is_forwarded:  # the proxy itself responds, or asks the upstream about topics first
            client.transport.abort()
            if request[0] in MUTATING:  # it is still forwarded, but not during the next input
                await asyncio.sleep(_ASKS_FOR_S)
        for connection in self.connections.copy():
            if connection.transport is not None and not connection.is_of_proxy:
                connection.transport.close()
        await asyncio.sleep(_PASSED_ON_S)
        if not client.is_closed:
            raise DefectError("the client's connection stays open without an upstream connection")
        if self.delivery == FRAMED and not is_served and request[0] != ApiKey.PRODUCE:
            raise DefectError("the client got nothing of a whole frame")
        if self.failures:
            raise DefectError(self.failures[0])
        if self.delivery == TO_PROXY and not any(task.get_coro() is self.follower for task in asyncio.all_tasks()):
            raise DefectError("the proxy no longer follows the brokers of the upstream")
        if len(self.proxy.servers) > _MOST_BROKERS:
            raise DefectError(f"{len(self.proxy.servers)} brokers")

    def close(self) -> None:
        self.loop.run_until_complete(self.proxy.stop())
        self.loop.close()


_benches: dict[int, _Bench] = {}


def run_response(data: bytes) -> None:
    if len(data) < HEADER.size:
        return
    kind, request, count, delivery = HEADER.unpack_from(data)
    kind %= len(_KINDS)
    bench = _benches.get(kind)
    if bench is None:
        bench = _benches[kind] = _Bench(_KINDS[kind])
    bench.delivery, bench.is_reached = delivery % DELIVERIES, False
    lines = _Lines()
    log = logging.getLogger("sluice")
    log.addHandler(lines)
    try:
        asked = REQUESTS[request % len(REQUESTS)]
        bench.loop.run_until_complete(bench.run(asked, 1 + count % _MOST_REQUESTS, data[HEADER.size :]))
        if len(lines.lines) > _MOST_LINES:
            raise DefectError(f"{len(lines.lines)} lines: {lines.lines}")
    except BaseException:
        drop(kind)
        raise
    finally:
        log.removeHandler(lines)


def drop(kind: int) -> None:
    """Forget the proxy of a kind."""
    bench = _benches.pop(kind % len(_KINDS), None)
    if bench is not None:
        bench.close()


def random_input(random: Random) -> bytes:
    """Return an input whose answer is a valid response."""
    request = random.randrange(len(REQUESTS))
    delivery = random.randrange(TO_PROXY) if random.random() < _OTHERWISE_DELIVERED else FRAMED
    if random.random() < _TO_PROXY:
        delivery = TO_PROXY
    kind = random.randrange(len(_KINDS))
    header = HEADER.pack(kind, request, random.randrange(_MOST_REQUESTS), delivery)
    key, version = REQUESTS[request]
    if (_KINDS[kind].passes_sasl or _KINDS[kind].authenticates) and random.random() < _SASL_SHARE:
        key, version = random.choice(_OF_SASL), random.randrange(2)
    if delivery == TO_PROXY:
        key = random.choice((ApiKey.METADATA, ApiKey.API_VERSIONS))
        version = API_KEYS[key].max_version
    response: Any = random_message(API_KEYS[key].response, version, random)
    if key in _OF_SASL and random.random() < _SASL_SHARE:
        response.error_code = 0
    answer = framed(response, version, CORRELATION_ID)
    return header + (answer[8:] if delivery in (FRAMED, TO_PROXY) else answer)


def response_seeds() -> Iterator[bytes]:
    random = Random(0)
    for _ in range(60):
        yield random_input(random)
