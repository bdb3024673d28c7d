"""`make bench-page`: the cost of the web page for a broker with 500 clients, 2,000 requests/s and one viewer.

Segments with and without a viewer alternate, so that other load on the machine affects both. A broker has one thread;
"slowed" is the share of it that the viewer costs: the additional CPU time per second. The latency of clients is printed
too.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.load import cpu_seconds
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.records import produce
from tests.support.wire import WireClient, frame

CLIENTS, REQUESTS_PER_S = 500, 2000
VERSION = 9  # of Produce
LEAST_UPDATES_PER_S, MOST_SLOWED = 1.9, 0.05
_OVERRIDES = ("quota.producer.default=1M", "sluice.journal.events=16384")


class Segment(NamedTuple):
    """The results of one period."""

    requests: int
    cpu_s_per_s: float
    latency_ms: float
    updates_per_s: float
    update_bytes: float


class Client:
    """A connection that sends requests at a fixed rate and waits for the responses."""

    def __init__(self, number: int) -> None:
        self.name = f"client-{number:03}"
        self.frame = frame(produce(VERSION, topic="t"), VERSION, client_id=self.name)
        self.latencies_ms: list[float] = []

    async def run(self, host: str, port: int, offset_s: float) -> None:
        """Send requests until cancelled."""
        reader, writer = await asyncio.open_connection(host, port)
        every_s = CLIENTS / REQUESTS_PER_S
        due = time.perf_counter() + offset_s
        while True:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent = time.perf_counter()
            writer.write(self.frame)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            self.latencies_ms.append((time.perf_counter() - sent) * 1e3)
            due = max(due + every_s, sent)


class Viewer:
    """A viewer of the page, with the journal."""

    def __init__(self) -> None:
        self.updates = self.received = 0

    async def run(self, admin: str) -> None:
        """Read the stream until cancelled."""
        where = urlsplit(admin)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(f"GET /api/v1/stream?journal=true HTTP/1.1\r\nhost: {where.netloc}\r\n\r\n".encode())
        try:
            while line := await reader.readline():
                self.updates += line.startswith(b"data: ")
                self.received += len(line)
        finally:
            writer.close()


@contextmanager
def _broker() -> Iterator[tuple[int, str, str]]:
    """Start a broker; yield its pid, bootstrap address and admin URL."""
    command = [sys.executable, "-m", "sluice", "serve", "--port", "0", "--admin-port", "0"]
    for override in _OVERRIDES:
        command += ["--override", override]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert broker.stdout is not None
    try:
        ready = json.loads(broker.stdout.readline().removeprefix("ready "))
        yield broker.pid, ready["bootstrap"], ready["admin"]
    finally:
        broker.terminate()
        broker.wait()


async def _segment(pid: int, admin: str, clients: list[Client], seconds: float, *, watched: bool) -> Segment:
    viewer = Viewer()
    watching = asyncio.create_task(viewer.run(admin)) if watched else None
    await asyncio.sleep(1)  # the first message has everything
    viewer.updates = viewer.received = 0
    for client in clients:
        client.latencies_ms.clear()
    cpu, began = cpu_seconds(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    cpu, took = cpu_seconds(pid) - cpu, time.perf_counter() - began
    if watching is not None:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    latencies = [each for client in clients for each in client.latencies_ms]
    size = viewer.received / max(1, viewer.updates)
    return Segment(len(latencies), cpu / took, statistics.median(latencies), viewer.updates / took, size)


async def _measure(pid: int, bootstrap: str, admin: str, seconds: float, pairs: int) -> list[tuple[Segment, Segment]]:
    host, _, port = bootstrap.rpartition(":")
    clients = [Client(number) for number in range(CLIENTS)]
    every_s = CLIENTS / REQUESTS_PER_S
    tasks = [
        asyncio.create_task(client.run(host, int(port), every_s * number / CLIENTS))
        for number, client in enumerate(clients)
    ]
    await asyncio.sleep(2)
    found = []
    for number in range(pairs):
        order = (False, True) if number % 2 == 0 else (True, False)
        segments = {watched: await _segment(pid, admin, clients, seconds, watched=watched) for watched in order}
        found.append((segments[False], segments[True]))
        print(
            f"pair {number + 1} of {pairs}: {_summary(segments[False])}; with viewer: {_summary(segments[True])}",
            flush=True,
        )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def _summary(segment: Segment) -> str:
    return f"{segment.cpu_s_per_s:.1%} of the thread, median latency {segment.latency_ms:.2f} ms"


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="duration of each segment")
    parser.add_argument("--pairs", type=int, default=4)
    given = parser.parse_args()
    with _broker() as (pid, bootstrap, admin):
        with WireClient(bootstrap) as client:
            client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)  # creates it
        pairs = asyncio.run(_measure(pid, bootstrap, admin, given.seconds, given.pairs))
    slowed = statistics.median(watched.cpu_s_per_s - alone.cpu_s_per_s for alone, watched in pairs)
    latency = statistics.median(watched.latency_ms / alone.latency_ms for alone, watched in pairs)
    requests = sum(alone.requests + watched.requests for alone, watched in pairs) / given.seconds / given.pairs / 2
    updates = statistics.median(watched.updates_per_s for _, watched in pairs)
    size = statistics.median(watched.update_bytes for _, watched in pairs)
    print(f"{CLIENTS} clients, {requests:,.0f} requests/s; medians of {given.pairs} pairs of {given.seconds:g} s:")
    reached = {
        f"updates: {updates:.2f} per second, of {size / 1e3:.1f} kB": updates >= LEAST_UPDATES_PER_S,
        f"slowed by {slowed:.1%} (latency: {latency:.2f} times)": slowed < MOST_SLOWED,
    }
    for line, is_met in reached.items():
        print(f"{line:<60} {'ok' if is_met else 'MISSED'}")
    return 0 if all(reached.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
