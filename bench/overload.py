"""The campaign `overload`: memory, and the time that a new client waits, beside clients that a broker must withstand.

    unread metadata   500 clients pipeline requests with large responses, and read nothing
    unread fetches    500 clients have one response of 55 MB each, and read nothing
    crowd             5,000 idle connections, 2,000 that send a byte each second, and 2,000 new ones a second

Meanwhile a probe connects, sends ApiVersions and disconnects, again and again. The clients are other processes; run it
on a machine with idle cores. The broker runs with this Python.
"""

import multiprocessing
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench.wire_client import Client, create, frame, hello, memory_mb, metadata, produce_record
from tests.support.broker_process import running_broker
from tests.support.records import fetch
from tests.support.wire import WireClient

_UNREAD_CLIENTS, _PIPELINED = 500, 300
_IDLE, _SLOW, _NEW_PER_S = 5_000, 2_000, 2_000
_SECONDS = 10.0
_PROBE_EVERY_S = 0.01
# For the crowd, and for clients that read nothing: each of those first has its share of the processor.
_MOST_PROBE_MS, _MOST_MB = 100.0, 400
_TOPIC, _WIDE_TOPIC, _WIDE_PARTITIONS = "large", "wide", 5_000
_BATCH_BYTES, _FETCH_BYTES = 900_000, 55_000_000
_FILES = 20_000

_HELLO = frame(hello(), 3)


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
    sockets = _connections(port, _UNREAD_CLIENTS)
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


def _connections(port: int, number: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(number)]


def _unread_metadata(port: int, ready: Event) -> None:
    _unread(port, ready, frame(metadata(_WIDE_TOPIC), 9) * _PIPELINED)


def _unread_fetches(port: int, ready: Event) -> None:
    wanted = fetch(topic=_TOPIC, min_bytes=0, max_bytes=_FETCH_BYTES, partition_max_bytes=_FETCH_BYTES)
    _unread(port, ready, frame(wanted, 11))


def _idle_and_slow(port: int, ready: Event) -> None:
    idle, slow = _connections(port, _IDLE), _connections(port, _SLOW)
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
    with WireClient(f"127.0.0.1:{port}") as client:
        client.socket.sendall(_HELLO)
        client.receive_bytes()


# -- measuring ---------------------------------------------------------------------------------------------------------


def _measure(loads: tuple[Callable[[int, Event], None], ...]) -> Result:
    context = multiprocessing.get_context("spawn")
    with running_broker(Path(os.devnull)) as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        _fill(Client(broker.process.pid, broker.bootstrap))
        running = []
        try:
            for load in loads:
                ready = context.Event()
                process = context.Process(target=load, args=(port, ready), daemon=True)
                process.start()
                running.append(process)
                ready.wait()
            probes_ms = _probe(port)
            peak_mb = memory_mb(broker.process.pid, "VmHWM")
        finally:
            for process in running:
                process.kill()
        _, stop_s, _ = broker.stop()
    return Result(peak_mb, probes_ms, stop_s)


def _fill(client: Client) -> None:
    client.call(create({_WIDE_TOPIC: _WIDE_PARTITIONS, _TOPIC: 1}), 5)
    record = frame(produce_record(_TOPIC, size=_BATCH_BYTES), 7)
    client.exchange([record] * (_FETCH_BYTES // _BATCH_BYTES + 1))
    client.close()


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
