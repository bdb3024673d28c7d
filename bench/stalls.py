"""The campaign `stalls`: the longest time that one request of up to 100 MB holds the event loop.

Sends the largest requests of every served API (`large_requests`), one at a time, to a broker in this process, and
measures the CPU time of each event-loop iteration. A client that waits sees at most the longest iteration.
"""

import argparse
import asyncio
import gc
import logging
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.large_requests import TOPIC, Shape, record_shapes, shapes
from bench.wire_client import memory_mb
from sluice import Broker
from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import API_KEYS, ApiKey

MB = 1_000_000
MOST_MS = 50.0
_SIZES = (1 * MB, 10 * MB, 100 * MB)
_LARGEST = 104_857_600  # socket.request.max.bytes
# A request that is served for longer is measured so far.
_PATIENCE_S = 60.0
_PARTITIONS = 1000
_CONFIG: dict[str, str | int] = {
    "auto.create.topics.enable": "false",
    "sluice.journal.events": 0,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class Iterations:
    """Measures the CPU time of the iterations of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.longest_s = 0.0
        self.cpu_s = 0.0
        run_once = loop._run_once  # type: ignore[attr-defined]  # there is no public hook

        def timed() -> None:
            began = time.thread_time()
            run_once()
            spent = time.thread_time() - began
            self.cpu_s += spent
            self.longest_s = max(self.longest_s, spent)

        loop._run_once = timed  # type: ignore[attr-defined]

    def reset(self) -> None:
        self.longest_s = self.cpu_s = 0.0


def _exchange(address: tuple[str, int], data: bytes) -> str:
    """Send a frame and read its response; return what became of it."""
    began = time.monotonic()
    with socket.create_connection(address, timeout=_PATIENCE_S) as connection:
        try:
            connection.sendall(data)
            head = connection.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return "closed"
            size = left = int.from_bytes(head)
            buffer = bytearray(1 << 20)
            while left:
                got = connection.recv_into(buffer)
                if not got:
                    return "closed"
                left -= got
        except TimeoutError:
            return f"no response after {_PATIENCE_S:.0f} s"
        except OSError:
            return "closed"
    return f"{size:,} bytes after {time.monotonic() - began:.1f} s"


def _restart_peak_mb() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return memory_mb("self", "VmRSS")


def _apis(names: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the keys and versions of the served APIs: the first and the last version."""
    for key, handler in HANDLERS.items():
        if not names or API_KEYS[key].name in names:
            yield from ((key, version) for version in dict.fromkeys((handler.max_version, handler.min_version)))


def _shapes(key: int, version: int, size: int, topic_id: bytes) -> Iterator[Shape]:
    yield from shapes(key, version, min(size, _LARGEST), topic_id)
    if key == ApiKey.PRODUCE and version:
        yield from record_shapes(min(size, _LARGEST - 200))


async def _measure(arguments: argparse.Namespace) -> int:
    iterations = Iterations(asyncio.get_running_loop())
    above = 0
    for key, version in _apis(arguments.api):
        async with Broker(config=_CONFIG) as broker:
            topic = broker._running.cluster.create(NewTopic(TOPIC, _PARTITIONS, 1))
            assert isinstance(topic, Topic)
            for size in arguments.size:
                for shape in _shapes(key, version, size, topic.topic_id):
                    if len(shape.frame) < size * 0.3 and size > MB:  # the limit of elements allows no larger one
                        continue
                    name = f"{API_KEYS[key].name} v{version}"
                    above += await _send(broker, iterations, name, shape)
    return above


async def _send(broker: Broker, iterations: Iterations, api: str, shape: Shape) -> bool:
    """Send one request, and print its line; return whether it holds the loop for too long."""
    host, _, port = broker.bootstrap.rpartition(":")
    gc.collect()
    before_mb = _restart_peak_mb()
    await asyncio.sleep(0)  # both belong to an iteration before the measured ones
    iterations.reset()
    outcome = await asyncio.to_thread(_exchange, (host, int(port)), shape.frame)
    await asyncio.sleep(0.05)  # until what is left of the request is freed
    longest_ms = iterations.longest_s * 1e3
    print(
        f"{api:<32} {shape.name:<40} {len(shape.frame) / MB:6.1f} MB"
        f" {longest_ms:8.1f} ms of {iterations.cpu_s:6.2f} s {memory_mb('self', 'VmHWM') - before_mb:6} MB"
        f"  {outcome}{'  ABOVE' if longest_ms > MOST_MS else ''}",
        flush=True,
    )
    return longest_ms > MOST_MS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api", action="append", default=[], help="name of an API; default: all")
    parser.add_argument("--size", action="append", type=int, default=[], help="bytes; default: 1, 10 and 100 MB")
    arguments = parser.parse_args()
    arguments.size = arguments.size or list(_SIZES)
    logging.disable()
    above = asyncio.run(_measure(arguments))
    print(f"{above} requests hold the event loop for more than {MOST_MS:g} ms of CPU")
    sys.exit(min(above, 1))


if __name__ == "__main__":
    main()
