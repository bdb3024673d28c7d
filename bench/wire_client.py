"""A blocking client of benchmarks, and its requests."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.messages import request
from tests.support.records import batch, produce
from tests.support.wire import WireClient
from tests.support.wire import frame as frame_of

CLIENT_ID = "bench"
_LARGE_BATCH_BYTES = 64 * 1024
_HIGH_QUOTA = 1e12  # bytes/s: charged, never throttled


class Client(WireClient):
    """Blocking connections to the measured broker."""

    def __init__(self, pid: int, bootstrap: str) -> None:
        super().__init__(bootstrap, CLIENT_ID)
        self.pid = pid
        self._names = count()

    def new_name(self) -> str:
        """Return a name that was not used before."""
        return f"group-{next(self._names)}"

    def connect(self) -> "Client":
        """Return another connection."""
        host, port = self.socket.getpeername()
        return Client(self.pid, f"{host}:{port}")

    def close(self) -> None:
        """Disconnect, and return when the broker has closed the connection, too."""
        self.socket.shutdown(socket.SHUT_WR)
        assert not self.socket.recv(1), "the broker sent something"
        self.socket.close()

    def call(self, request: Message, version: int, accepted: ErrorCode = ErrorCode.NONE) -> Any:
        """Send one request; return its response, without an error or with an accepted one."""
        response = super().call(request, version)
        assert getattr(response, "error_code", 0) in (0, accepted), response
        return response

    def exchange(self, frames: list[bytes], in_flight: int = 1) -> None:
        """Send requests, up to some of them before their responses; receive each response."""
        for start in range(0, len(frames), in_flight):
            block = b"".join(frames[start : start + in_flight])
            with self.stopped() if in_flight == 1 and len(block) > _LARGE_BATCH_BYTES else nullcontext():
                self.socket.sendall(block)
            for _ in frames[start : start + in_flight]:
                self.receive_bytes()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker's process, so that it finds everything at once that is sent meanwhile."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


class Member(NamedTuple):
    """The only member of a classic group."""

    group_id: str
    member_id: str
    generation_id: int

    def heartbeat(self) -> Message:
        return request("Heartbeat", **self._asdict())

    def commit(self, topic: str, offset: int) -> Message:
        return request(
            "OffsetCommit",
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}],
        )


def join(client: Client) -> Member:
    """Join a new group as its only member."""
    group_id = client.new_name()
    join_group = request(
        "JoinGroup",
        group_id=group_id,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )
    joined = client.call(join_group, 3)
    member = Member(group_id, joined.member_id, joined.generation_id)
    client.call(request("SyncGroup", **member._asdict()), 3)
    return member


def frame(message: Message, version: int, client_id: str = CLIENT_ID) -> bytes:
    """Return a request as bytes: size, header, body."""
    return frame_of(message, version, client_id=client_id)


def memory_mb(pid: int | str, field: str) -> int:
    """Return a field of /proc/PID/status."""
    found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def hello() -> Message:
    """Return a request for the supported versions."""
    return request("ApiVersions", client_software_name="bench", client_software_version="1")


def metadata(*topics: str) -> Message:
    """Return a request for topics, which creates them."""
    return request("Metadata", topics=[{"name": name} for name in topics])


def create(topics: dict[str, int]) -> Message:
    """Return a request that creates topics, each with its number of partitions."""
    each = [{"name": name, "num_partitions": number, "replication_factor": 1} for name, number in topics.items()]
    return request("CreateTopics", topics=each, timeout_ms=60_000)


def produce_record(topic: str, partition: int = 0, size: int = 100) -> Message:
    """Return a request with a record whose value has `size` bytes."""
    return produce(12, batch(bytes(size)), topic=topic, partition=partition, acks=-1, timeout_ms=1000)


def high_quotas(client_ids: list[str], *keys: str) -> Message:
    """Return a request that sets quotas which no client reaches."""
    ops = [{"key": key, "value": _HIGH_QUOTA} for key in keys]
    entities = [[{"entity_type": "client-id", "entity_name": name}] for name in client_ids]
    return request("AlterClientQuotas", entries=[{"entity": entity, "ops": ops} for entity in entities])
