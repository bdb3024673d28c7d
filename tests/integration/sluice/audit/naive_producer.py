"""A producer as one writes it in an afternoon: it retries at once, reconnects at once, and ignores throttle times.

    python naive_producer.py HOST:PORT[,HOST:PORT] TOPIC

It uses nothing of sluice, and sends one record at a time to the leader of partition 0 (Produce v7). A failed attempt is
followed by a pause of 3 ms, so that its storms leave the processor to other tests.
"""

import socket
import struct
import sys
import time
from itertools import count

from crc32c import crc32c

Address = tuple[str, int]
PRODUCE, METADATA, API_VERSIONS = (0, 7), (3, 1), (18, 0)  # API key and version
TIMEOUT_S = 3
PAUSE_S = 0.003


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def skip(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.skip(size), "big", signed=True)

    def text(self) -> str:
        return self.skip(max(0, self.number(2))).decode()


class Connection:
    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.call(API_VERSIONS, b"")

    def call(self, api: tuple[int, int], body: bytes) -> Reader:
        request = struct.pack(">hhi", *api, 1) + text("naive") + body
        self.socket.sendall(struct.pack(">i", len(request)) + request)
        return Reader(self.read(struct.unpack(">i", self.read(4))[0])[4:])

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (part := self.socket.recv(size - len(data))):
                raise ConnectionError("closed by the broker")
            data += part
        return data


def leader(connection: Connection, topic: str) -> Address:
    found = connection.call(METADATA, struct.pack(">i", 1) + text(topic))
    nodes: dict[int, Address] = {}
    for _ in range(found.number(4)):
        node_id, host, port, _ = found.number(4), found.text(), found.number(4), found.text()
        nodes[node_id] = host, port
    found.skip(4 + 4 + 2)  # the controller, one topic, its error
    found.text()
    found.skip(1 + 4 + 2 + 4)  # internal, its partitions, the error and the index of the first
    return nodes[found.number(4)]


def produce(connection: Connection, topic: str, value: bytes) -> int:
    record = b"\0\0\0\1" + bytes((2 * len(value),)) + value + b"\0"
    now = round(time.time() * 1000)
    body = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + bytes((2 * len(record),)) + record
    batch = struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c(body)) + body
    head = struct.pack(">hhii", -1, -1, 1000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(batch))
    answer = connection.call(PRODUCE, head + batch)
    answer.skip(4)  # one topic
    answer.text()
    answer.skip(4 + 4)  # one partition
    return answer.number(2)  # the throttle time follows, and is not read


def main(bootstrap: str, topic: str) -> None:
    addresses = [(host, int(port)) for host, port in (each.rsplit(":", 1) for each in bootstrap.split(","))]
    number = 0
    for attempt in count():
        try:
            connection = Connection(leader(Connection(addresses[attempt % len(addresses)]), topic))
            while True:
                if produce(connection, topic, b"%d" % number) == 0:
                    number += 1
                    time.sleep(0.01)
                else:
                    time.sleep(PAUSE_S)
        except (OSError, KeyError):
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
