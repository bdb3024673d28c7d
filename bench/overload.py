"""The campaign `overload`: memory, and the time that a new client waits, beside clients that a broker must withstand.

    unread metadata   500 clients pipeline requests with large responses, and read nothing
    unread fetches    500 clients have one response of 55 MB each, and read nothing
    crowd             5,000 idle connections, 2,000 that send a byte each second, and 2,000 new ones a second

Meanwhile a probe connects, sends ApiVersions and disconnects, again and again. The clients are other processes; run it
on a machine with idle cores. The broker runs with this Python.
"""

import json
import multiprocessing
import re
import resource
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench.wire_client import Client, frame, receive, server
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

_UNREAD_CLIENTS, _PIPELINED = 500, 300
_IDLE, _SLOW, _NEW_PER_S = 5_000, 2_000, 2_000
_SECONDS = 10.0
_PROBE_EVERY_S = 0.01
# For the crowd, and for clients that read nothing: each of those first has its share of the processor.
_MOST_PROBE_MS, _MOST_MB = 100.0, 400
_TOPIC, _WIDE_TOPIC, _WIDE_PARTITIONS = "large", "wide", 5_000
_BATCH_BYTES, _FETCH_BYTES = 900_000, 55_000_000
_FILES = 20_000

_HELLO = frame(ApiVersionsRequest(client_software_name="probe", client_software_version="1"), 3)


class Result(NamedTuple):
    """What a broker did under one load."""

    peak_mb: int
    probes_ms: list[float]
    stop_s: float

    def line(self, name: str) -> str:
        return (
            f"{name:<16} {self.peak_mb:6} MB at most   probes: {len(self.probes_ms):5}, median "
            f"{median(self.probes_ms):.1f} ms, p99 {quantiles(self.probes_ms, n=100)[98]:.1f} ms, at most "
            f"{max(self.probes_ms):.1f} ms   stopped in {self.stop_s:.1f} s"
        )


# -- loads, each in its own process ------------------------------------------------------------------------------------


def _unread(port: int, ready: Event, data: bytes) -> None:
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(_UNREAD_CLIENTS)]
    for each in sockets:
        each.setblocking(False)
    left = dict.fromkeys(sockets, memoryview(data))
    ready.set()
    while True:
        for each, rest in left.items():
            try:
                left[each] = rest[each.send(rest) :] if rest else rest
            except BlockingIOError:
                continue
            except OSError:  # closed by the broker
                left[each] = memoryview(b"")
        time.sleep(0.05)


def _unread_metadata(port: int, ready: Event) -> None:
    topics = [MetadataRequestTopic(name=_WIDE_TOPIC)]
    _unread(port, ready, frame(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9) * _PIPELINED)


def _unread_fetches(port: int, ready: Event) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
    topics = [FetchTopic(topic=_TOPIC, partitions=[partition])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_BYTES, topics=topics)
    _unread(port, ready, frame(request, 11))


def _idle_and_slow(port: int, ready: Event) -> None:
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(_IDLE)]
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(_SLOW)]
    ready.set()
    sent = 0
    while idle:
        for each in slow:
            each.send(_HELLO[sent % len(_HELLO) :][:1])
            time.sleep(1 / _SLOW)
        sent += 1


def _new(port: int, ready: Event) -> None:
    ready.set()
    began, opened = time.perf_counter(), 0
    while True:
        _greet(port)
        opened += 1
        time.sleep(max(0.0, began + opened / _NEW_PER_S - time.perf_counter()))


def _greet(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(_HELLO)
        receive(client)


# -- measuring ---------------------------------------------------------------------------------------------------------


def _measure(loads: tuple[Callable[[int, Event], None], ...]) -> Result:
    context = multiprocessing.get_context("spawn")
    with server("sluice", "serve", "--port", "0", "--admin-port", "0") as (pid, line):
        port = int(json.loads(line.split(" ", 1)[1])["bootstrap"].rpartition(":")[2])
        _fill(pid, port)
        running = []
        try:
            for load in loads:
                ready = context.Event()
                process = context.Process(target=load, args=(port, ready), daemon=True)
                process.start()
                running.append(process)
                ready.wait()
            probes_ms = _probe(port)
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            assert found is not None
        finally:
            for process in running:
                process.kill()
        began = time.perf_counter()
    return Result(int(found[1]) // 1024, probes_ms, time.perf_counter() - began)


def _fill(pid: int, port: int) -> None:
    client = Client(pid, port)
    topic = CreatableTopic(name=_WIDE_TOPIC, num_partitions=_WIDE_PARTITIONS, replication_factor=1)
    client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)], allow_auto_topic_creation=True), 9)
    batch = bytes(build_batch([Record(0, 1_700_000_000_000, None, bytes(_BATCH_BYTES))]))
    partitions = [PartitionProduceData(index=0, records=batch)]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=_TOPIC, partition_data=partitions)]
    )
    for _ in range(_FETCH_BYTES // _BATCH_BYTES + 1):
        client.call(request, 7)
    client.socket.close()


def _probe(port: int) -> list[float]:
    probes_ms: list[float] = []
    end = time.perf_counter() + _SECONDS
    while (began := time.perf_counter()) < end:
        _greet(port)
        probes_ms.append((time.perf_counter() - began) * 1e3)
        time.sleep(_PROBE_EVERY_S)
    return probes_ms


def main() -> None:
    """Measure each load; exit with 1 if a bound is exceeded."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, min(_FILES, most)), most))
    print(f"Python {sys.version.split()[0]}")
    above = False
    loads: dict[str, tuple[Callable[[int, Event], None], ...]] = {
        "unread metadata": (_unread_metadata,),
        "unread fetches": (_unread_fetches,),
        "crowd": (_idle_and_slow, _new),
    }
    for name, load in loads.items():
        result = _measure(load)
        print(result.line(name), flush=True)
        above |= max(result.probes_ms) > _MOST_PROBE_MS if name == "crowd" else result.peak_mb > _MOST_MB
    sys.exit(int(above))


if __name__ == "__main__":
    main()
