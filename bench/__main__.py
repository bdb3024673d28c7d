"""`make bench`: the broker against a bare asyncio server of the same frames, by one load generator, in one run.

The two take turns within each repetition; a figure is the median over the repetitions, a ratio the median of the ratios
within one. What the ratio says: how much of what the runtime can do is left once there is a broker in it.

Bulk receive is measured twice: into a log that grows, where each batch goes to memory that the system has to clear
first, which a virtual machine may even have to get from its host; and into one that is full, where it goes to what the
oldest segment gave up. The latter is what a broker does after its first GiB.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench import load, purgatory
from bench.load import Result
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.codec.compile import encoder
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

MIB = 1024 * 1024
_TOPIC = "bench"


class Cell:
    """One measurement: a request, how it is sent, and how large the answer to it is."""

    def __init__(
        self, name: str, frame: bytes, connections: int, depth: int, least_answer_bytes: int, log_bytes: int = 0
    ) -> None:
        """`log_bytes`: what is produced before the measurement."""
        self.log_bytes = log_bytes
        self.name = name
        self.frame = frame
        self.connections = connections
        self.depth = depth
        self.least_answer_bytes = least_answer_bytes


def request(message: Message, api_key: int, version: int) -> bytes:
    """A request frame: size prefix, header, body."""
    parts: list[bytes | memoryview] = []
    header = RequestHeader(request_api_key=api_key, request_api_version=version, client_id="bench")
    encoder(RequestHeader, 1)(header, parts)
    encoder(type(message), version)(message, parts)
    body = b"".join(parts)
    return len(body).to_bytes(4, "big") + body


def produce(size: int, records: int) -> bytes:
    """Produce v7 of one batch with `records` records of `size` bytes in all."""
    now_ms = time.time_ns() // 1_000_000
    value = bytes(size // records)
    batch = build_batch([Record(offset=i, timestamp=now_ms, key=None, value=value, headers=()) for i in range(records)])
    data = [PartitionProduceData(index=0, records=batch)]
    message = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=_TOPIC, partition_data=data)])
    return request(message, ProduceRequest.API_KEY, 7)


def fetch(size: int) -> bytes:
    """Fetch v4 from the beginning, `size` bytes at most."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    topics = [FetchTopic(topic=_TOPIC, partitions=[partition])]
    message = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=size, topics=topics)
    return request(message, FetchRequest.API_KEY, 4)


def metadata() -> bytes:
    """Metadata v4 of the one topic, which creates it."""
    message = MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)])
    return request(message, MetadataRequest.API_KEY, 4)


# 900,000 bytes fit into the default max.message.bytes with the batch's own bytes; a record of 1 KiB is a usual one.
BULK_BYTES = 900_000
# Twelve tenths of sluice.log.memory.bytes.
FULL_LOG_BYTES = 1200 * MIB
CELLS = (
    Cell("produce 100 B, c1 d1", produce(100, 1), 1, 1, 40),
    Cell("produce 100 B, c8 d16", produce(100, 1), 8, 16, 40),
    Cell("metadata, c8 d16", metadata(), 8, 16, 40),
    Cell("bulk receive, log growing (0.9 MB, c1 d4)", produce(BULK_BYTES, BULK_BYTES // 1024), 1, 4, 40),
    Cell("bulk receive, log full (0.9 MB, c1 d4)", produce(BULK_BYTES, BULK_BYTES // 1024), 1, 4, 40, FULL_LOG_BYTES),
    Cell("bulk send (fetch 0.9 MB, c1 d4)", fetch(BULK_BYTES + 50_000), 1, 4, BULK_BYTES),
)


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, str]]:
    """A server in a process of its own: its pid, and the first line it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline()
    finally:
        process.terminate()
        process.wait()


def run_ours(cell: Cell, seconds: float) -> Result:
    """A fresh broker, with a topic that holds one batch of the bulk size."""
    with server("sluice", "serve", "--port", "0", "--admin-port", "0") as (pid, line):
        port = int(json.loads(line.split(" ", 1)[1])["bootstrap"].rpartition(":")[2])
        load.run(pid, port, metadata(), 1, 1, 0.0, _at_least(0))
        bulk = produce(BULK_BYTES, BULK_BYTES // 1024)
        for _ in range(1 + cell.log_bytes // BULK_BYTES):
            load.run(pid, port, bulk, 1, 1, 0.0, _at_least(0))
        large_enough = _at_least(cell.least_answer_bytes)
        return load.run(pid, port, cell.frame, cell.connections, cell.depth, seconds, large_enough)


def run_bare(cell: Cell, seconds: float, answer_bytes: int) -> Result:
    """A server that answers with as many bytes, and does nothing else."""
    with server("bench.bare_server", str(answer_bytes)) as (pid, line):
        return load.run(pid, int(line), cell.frame, cell.connections, cell.depth, seconds, _at_least(0))


def _at_least(size: int) -> Callable[[memoryview], bool]:
    return lambda answer: len(answer) >= size


def measure(cell: Cell, repetitions: int, seconds: float) -> None:
    """Runs one cell, and prints its row."""
    ours, bare = [], []
    for _ in range(repetitions):
        ours.append(run_ours(cell, seconds))
        answer_bytes = round(ours[-1].bytes_out_per_s / ours[-1].requests_per_s) - 4  # without the size prefix
        bare.append(run_bare(cell, seconds, answer_bytes))
    median = statistics.median
    rate = f"{median(r.requests_per_s for r in ours):>10,.0f} {median(r.requests_per_s for r in bare):>10,.0f}"
    ratio = median(a.requests_per_s / b.requests_per_s for a, b in zip(ours, bare, strict=True))
    cpu = f"{median(r.cpu_us for r in ours):>9.1f} {median(r.cpu_us for r in bare):>9.1f}"
    megabytes = median(max(r.bytes_in_per_s, r.bytes_out_per_s) for r in ours) / 1e6
    print(f"{cell.name:<42} {rate} {ratio:>7.2f} {cpu} {megabytes:>9.0f}")


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    arguments = parser.parse_args()
    print(f"{'':<42} {'requests/s':>21} {'':>7} {'CPU us/request':>19} {'ours':>9}")
    print(f"{'':<42} {'ours':>10} {'bare':>10} {'ratio':>7} {'ours':>9} {'bare':>9} {'MB/s':>9}")
    for cell in CELLS:
        if arguments.only in cell.name:
            measure(cell, arguments.repetitions, arguments.seconds)
    if not arguments.only:
        purgatory.main()


if __name__ == "__main__":
    main()
