"""`make bench`: the broker compared with a bare asyncio server for the same frames and load.

Each repetition runs both. Figures are medians over the repetitions, ratios are medians of the ratios within one. The
ratio is the share of the runtime's throughput that the broker achieves.

Bulk receive is measured twice: into a growing log, where each batch needs new memory that the system first clears; and
into a full log, where it reuses the memory of the oldest segment, as a broker does after its first GiB.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
    """One measurement: a request, its load, and the size of its response."""

    def __init__(
        self,
        name: str,
        frames: Sequence[bytes],
        connections: int,
        depth: int,
        least_response_bytes: int,
        log_bytes: int = 0,
    ) -> None:
        """`log_bytes` are produced before the measurement; the topic has a partition for each frame."""
        self.log_bytes = log_bytes
        self.name = name
        self.frames = frames
        self.connections = connections
        self.depth = depth
        self.least_response_bytes = least_response_bytes


def request(message: Message, api_key: int, version: int) -> bytes:
    """Return a request frame: size prefix, header, body."""
    parts: list[bytes | memoryview] = []
    header = RequestHeader(request_api_key=api_key, request_api_version=version, client_id="bench")
    encoder(RequestHeader, 1)(header, parts)
    encoder(type(message), version)(message, parts)
    body = b"".join(parts)
    return len(body).to_bytes(4, "big") + body


def produce(size: int, records: int, partitions: int = 1) -> list[bytes]:
    """Return a Produce v7 request per partition: a batch of `records` records with `size` bytes of values in total."""
    now_ms = time.time_ns() // 1_000_000
    value = bytes(size // records)
    batch = build_batch([Record(offset=i, timestamp=now_ms, key=None, value=value, headers=()) for i in range(records)])
    return [_produce(PartitionProduceData(index=index, records=batch)) for index in range(partitions)]


def _produce(data: PartitionProduceData) -> bytes:
    topic_data = [TopicProduceData(name=_TOPIC, partition_data=[data])]
    return request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data), ProduceRequest.API_KEY, 7)


def fetch(size: int) -> list[bytes]:
    """Return a Fetch v4 request from offset 0, for at most `size` bytes."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    topics = [FetchTopic(topic=_TOPIC, partitions=[partition])]
    message = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=size, topics=topics)
    return [request(message, FetchRequest.API_KEY, 4)]


def metadata() -> list[bytes]:
    """Return a Metadata v4 request, which creates the topic."""
    message = MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)])
    return [request(message, MetadataRequest.API_KEY, 4)]


_NUMBERS = (1, 10, 100, 1000)  # of connections, and of partitions
# 900,000 bytes and the batch's overhead fit into the default max.message.bytes.
BULK_BYTES = 900_000
# 120 % of sluice.log.memory.bytes.
FULL_LOG_BYTES = 1200 * MIB
CELLS = (
    *(Cell(f"produce 100 B, c{number} d1", produce(100, 1), number, 1, 40) for number in _NUMBERS),
    Cell("produce 100 B, c8 d16", produce(100, 1), 8, 16, 40),
    *(Cell(f"the same, {number:,} partitions", produce(100, 1, number), 8, 16, 40) for number in _NUMBERS[1:]),
    Cell("metadata, c8 d16", metadata(), 8, 16, 40),
    Cell("bulk receive, log growing (0.9 MB, c1 d4)", produce(BULK_BYTES, BULK_BYTES // 1024), 1, 4, 40),
    Cell("bulk receive, log full (0.9 MB, c1 d4)", produce(BULK_BYTES, BULK_BYTES // 1024), 1, 4, 40, FULL_LOG_BYTES),
    Cell("bulk send (fetch 0.9 MB, c1 d4)", fetch(BULK_BYTES + 50_000), 1, 4, BULK_BYTES),
)


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, str]]:
    """Start a server process; yield its pid and the first line of its output."""
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
    """Measure a new broker, with a topic that contains one bulk batch."""
    partitions = f"num.partitions={len(cell.frames)}"
    with server("sluice", "serve", "--port", "0", "--admin-port", "0", "--override", partitions) as (pid, line):
        port = int(json.loads(line.split(" ", 1)[1])["bootstrap"].rpartition(":")[2])
        load.run(pid, port, metadata(), 1, 1, 0.0, _at_least(0))
        bulk = produce(BULK_BYTES, BULK_BYTES // 1024)
        for _ in range(1 + cell.log_bytes // BULK_BYTES):
            load.run(pid, port, bulk, 1, 1, 0.0, _at_least(0))
        large_enough = _at_least(cell.least_response_bytes)
        return load.run(pid, port, cell.frames, cell.connections, cell.depth, seconds, large_enough)


def run_bare(cell: Cell, seconds: float, response_bytes: int) -> Result:
    """Measure a bare server whose responses have this size."""
    with server("bench.bare_server", str(response_bytes)) as (pid, line):
        return load.run(pid, int(line), cell.frames, cell.connections, cell.depth, seconds, _at_least(0))


def _at_least(size: int) -> Callable[[memoryview], bool]:
    return lambda response: len(response) >= size


def measure(cell: Cell, repetitions: int, seconds: float) -> None:
    """Run one cell and print its row."""
    ours, bare = [], []
    for _ in range(repetitions):
        ours.append(run_ours(cell, seconds))
        response_bytes = round(ours[-1].bytes_out_per_s / ours[-1].requests_per_s) - 4  # without the size prefix
        bare.append(run_bare(cell, seconds, response_bytes))
    median = statistics.median
    rate = f"{median(r.requests_per_s for r in ours):>10,.0f} {median(r.requests_per_s for r in bare):>10,.0f}"
    ratio = median(a.requests_per_s / b.requests_per_s for a, b in zip(ours, bare, strict=True))
    cpu = f"{median(r.cpu_us for r in ours):>9.1f} {median(r.cpu_us for r in bare):>9.1f}"
    megabytes = median(max(r.bytes_in_per_s, r.bytes_out_per_s) for r in ours) / 1e6
    print(f"{cell.name:<42} {rate} {ratio:>7.2f} {cpu} {megabytes:>9.0f}")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each run")
    parser.add_argument("--only", default="", help="text that the names of the cells to run contain")
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
