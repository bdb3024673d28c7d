"""A recorder of TCP: the time of each connection attempt and Kafka request to some ports of the loopback interface.

It reads packets, so that it sees refused connections and needs no proxy. Requires CAP_NET_RAW.
"""

import socket
import struct
import threading
import time
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from sluice.fleet.simulation.arrays import Times

_KINDS = {
    0: "produce_requests", 1: "fetch_requests", 3: "metadata_requests", 10: "coordinator_lookups", 12: "heartbeats",
}  # fmt: skip
_ALL_PROTOCOLS, _RECEIVE_BUFFER = 3, 64 << 20
_SO_RCVBUFFORCE = 33  # of Linux; not in the module
_ETHERNET, _SYN, _ACK = 14, 0x02, 0x10
_LARGEST_FRAME = 1 << 24
_RETRANSMITTED_S = 8  # a SYN of the same port within this time is no new attempt


class Packet(NamedTuple):
    at_s: float  # time.time()
    port: int
    client_port: int
    is_connect: bool
    payload: bytes


class Recorder:
    """Records packets from clients to `ports` until it is closed."""

    def __init__(self, ports: Collection[int]) -> None:
        self._ports = frozenset(ports)
        self._packets: list[Packet] = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.1)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed.set()
        self._thread.join()
        self._socket.close()

    def times_us(self, start_s: float) -> dict[str, Times]:
        """Return the sorted times of connection attempts and requests since a time of `time.time()`."""
        found: dict[str, list[float]] = {"connections": [], **{kind: [] for kind in _KINDS.values()}}
        syn_s: dict[int, float] = {}
        for packet in self._packets:
            if packet.is_connect:
                is_repeated = packet.at_s - syn_s.get(packet.client_port, 0) < _RETRANSMITTED_S
                syn_s[packet.client_port] = packet.at_s
                kinds = [] if is_repeated else ["connections"]
            else:
                kinds = _requests(packet.payload)
            for kind in kinds:
                found[kind].append((packet.at_s - start_s) * 1e6)
        return {kind: np.sort(np.array(times, dtype=np.float64)).astype(np.int64) for kind, times in found.items()}

    def _read(self) -> None:
        while not self._is_closed.is_set():
            try:
                data, address = self._socket.recvfrom(65536)
            except TimeoutError:
                continue
            if address[2] == socket.PACKET_OUTGOING:  # each packet is also received
                packet = _parse(data)
                if packet is not None and packet.port in self._ports:
                    self._packets.append(packet)


def _parse(data: bytes) -> Packet | None:
    if len(data) < _ETHERNET + 40 or data[_ETHERNET] >> 4 != 4 or data[_ETHERNET + 9] != socket.IPPROTO_TCP:
        return None
    tcp = _ETHERNET + (data[_ETHERNET] & 0xF) * 4
    flags = data[tcp + 13]
    payload = data[tcp + (data[tcp + 12] >> 4) * 4 :]
    is_connect = flags & (_SYN | _ACK) == _SYN
    if not is_connect and not payload:
        return None
    client_port, port = struct.unpack_from(">HH", data, tcp)
    return Packet(time.time(), port, client_port, is_connect, payload)


def _requests(payload: bytes) -> list[str]:
    """Return the kinds of the requests that begin in a packet; small requests begin at its start."""
    found = []
    while len(payload) >= 8:
        size, api = struct.unpack_from(">ih", payload)
        if not 0 < size < _LARGEST_FRAME:
            break
        if api in _KINDS:
            found.append(_KINDS[api])
        payload = payload[4 + size :]
    return found
