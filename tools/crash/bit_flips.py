"""One flipped bit in a data directory: a start reports it, and no client reads a wrong record.

The campaign `crash` flips 1,000 bits. A directory with every kind of file is written once, stopped cleanly or left as a
kill leaves it. Each run flips one random bit of a copy, starts a broker on it in virtual time, and reads everything as
clients do, checksums included.
"""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from sluice.errors import SluiceError
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import ensure_valid, iter_batches
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import iter_records
from tests.support.coordinators import ONE_PARTITION
from tests.support.groups import fetch_request, fetched, settled_group
from tests.support.records import batch, fetch, produce, records_of
from tests.support.records import fetched as partition_data
from tests.support.transactions import NEW, Producer
from tests.support.virtual_broker import VirtualBroker
from tests.unit.broker.controller.metadata_log.cluster_metadata import durable_state

PRODUCE_VERSION, FETCH_VERSION = 9, 11
# Several segments, index entries and snapshots with little data.
_SMALL = ("log.segment.bytes=1500", "log.index.interval.bytes=200")
_DELETED_BEFORE = 7
_BATCH = 3  # records in the largest batch
Records = dict[int, bytes | None]


class Content(NamedTuple):
    """Records by topic, committed offsets, and all durable metadata, as clients find them."""

    records: dict[str, Records]
    committed: object
    metadata: dict[str, object]


class Directories(NamedTuple):
    """The same content, as a kill and as a clean stop leave it; `written` includes deleted records."""

    killed: Path
    stopped: Path
    content: Content
    written: dict[str, Records]


class Outcome(NamedTuple):
    flip: str
    is_unprotected: bool  # in the base offset of a partition's last batch, which nothing else confirms
    error: str | None  # of the start
    lines: list[str]  # warnings and errors in the log
    rejected: dict[tuple[str, int], str]  # topic and offset of what a client rejects, with the reason
    found: Content | None


def start(directory: Path) -> VirtualBroker:
    return VirtualBroker(f"log.dirs={directory}", *ONE_PARTITION, *_SMALL)


def write_directories(folder: Path) -> Directories:
    """Write a directory with every kind of file."""
    broker = start(folder / "stopped")
    client = broker.client()
    for name in ("t", "packed"):
        broker.topic(name)
    for number in range(40):
        values = [f"{number}-{one}".encode() * 5 for one in range(3)]
        data = batch(*values, compression=number % 5)
        client.call(produce(PRODUCE_VERSION, data, topic="packed"), PRODUCE_VERSION)
    producer = Producer(broker, NEW)
    assert producer.init() == 0
    for number in range(12):
        producer.commit_values(*[f"tx {number}".encode() * 4] * 2, committed=number % 3 != 2)
    written, _ = content(broker)
    partition = DeleteRecordsPartition(partition_index=0, offset=_DELETED_BEFORE)
    topic = DeleteRecordsTopic(name="packed", partitions=[partition])
    client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    settled_group(broker, 1)[0].commit(5)
    quota = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name="c")],
        ops=[OpData(key="producer_byte_rate", value=1000.0)],
    )
    client.call(AlterClientQuotasRequest(entries=[quota]), 1)
    expected, _ = content(broker)
    directory = broker.cluster.logs.directory
    assert directory is not None
    directory.checkpoint()
    directory.flusher.finish()
    shutil.copytree(folder / "stopped", folder / "killed")
    for node in broker.cluster_server.brokers.values():
        node.close()
    broker.cluster.close()
    return Directories(folder / "killed", folder / "stopped", expected, written.records)


def content(broker: VirtualBroker) -> tuple[Content, dict[tuple[str, int], str]]:
    """Return what clients find, and what they reject."""
    rejected: dict[tuple[str, int], str] = {}
    topics = [name for name in broker.cluster.topics if not name.startswith("__")]
    starts = {name: broker.partition(name).log.log_start_offset for name in topics}
    records = {
        name: {offset: value for offset, value in _read(broker, name, rejected) if offset >= starts[name]}
        for name in topics
    }
    committed = fetched(broker.client().call(fetch_request(), 9))
    metadata = durable_state(broker)
    del metadata["producer ids"]  # a start reserves new ones
    return Content(records, committed, metadata), rejected


def _read(
    broker: VirtualBroker, topic: str, rejected: dict[tuple[str, int], str]
) -> Iterator[tuple[int, bytes | None]]:
    """Yield the records of partition 0; skip one offset after each rejected batch, as a user does."""
    log = broker.partition(topic).log
    offset = log.log_start_offset
    client = broker.client()
    while offset < log.log_end_offset:
        data = partition_data(client.call(fetch(offset, topic=topic, partition_max_bytes=500), FETCH_VERSION))
        next_offset = offset
        try:
            if data.error_code:
                raise InvalidRecords(ErrorCode(data.error_code), "the response has an error")
            found = memoryview(records_of(data))
            for position, header in iter_batches(found):
                whole = found[position : position + header.size_in_bytes]
                ensure_valid(whole)
                if not header.is_control:
                    yield from ((record.offset, record.value) for record in iter_records(bytes(whole)))
                next_offset = max(next_offset, header.last_offset + 1)
        except InvalidRecords as error:
            rejected[topic, next_offset] = error.message
        if next_offset == offset:
            rejected.setdefault((topic, offset), "no batch")
            next_offset += 1
        offset = next_offset


class _Lines(logging.Handler):
    """Collects log lines from warnings on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage() + (" with a traceback" if record.exc_info else ""))


def flip_a_bit(directories: Directories, folder: Path, random: Random) -> Outcome:
    """Flip one bit of a random file in a copy, and start on it."""
    copy = folder / "copy"
    shutil.copytree(random.choice([directories.killed, directories.stopped]), copy)
    path = random.choice(sorted(path for path in copy.rglob("*") if path.is_file() and path.stat().st_size))
    data = bytearray(path.read_bytes())
    byte, bit = random.randrange(len(data)), random.randrange(8)
    is_unprotected = byte in _unprotected(path, bytes(data))
    data[byte] ^= 1 << bit
    path.write_bytes(data)
    flip = f"bit {bit} of byte {byte} in {path.relative_to(copy)}"
    log, lines = logging.getLogger("sluice"), _Lines()
    log.addHandler(lines)
    try:
        broker = start(copy)
    except SluiceError as error:
        return Outcome(flip, is_unprotected, str(error), lines.lines, {}, None)
    else:
        found, rejected = content(broker)
        directory = broker.cluster.logs.directory
        assert directory is not None
        directory.unlock()
        return Outcome(flip, is_unprotected, None, lines.lines, rejected, found)
    finally:
        log.removeHandler(lines)
        shutil.rmtree(copy)


def _unprotected(path: Path, data: bytes) -> range:
    """Return the bytes of the base offset of a partition's last batch; of others, the next batch shows a change."""
    if path.suffix != ".log" or path != max(path.parent.glob("*.log")):
        return range(0)
    last = max(position for position, _ in iter_batches(data))
    return range(last, last + 8)


def problems(directories: Directories, outcome: Outcome) -> Iterator[str]:
    """Yield each wrong record, and each loss without a line or beyond the damaged batch."""
    if outcome.found is None:
        file = outcome.flip.rpartition("/")[2].rpartition(" ")[2]
        if file not in str(outcome.error) or "\n" in str(outcome.error):
            yield f"the error does not name the file in one line: {outcome.error}"
        return
    yield from (line for line in outcome.lines if line.endswith(" with a traceback"))
    if outcome.is_unprotected:
        return
    for topic, records in directories.content.records.items():
        found = outcome.found.records.get(topic, {})
        written = directories.written[topic]
        yield from (f"{topic}: wrong at {at}: {found[at]!r}" for at in found if found[at] != written.get(at, b"none"))
        missing = {offset for offset in records if offset not in found and not outcome.lines}
        missing -= {offset for name, at in outcome.rejected if name == topic for offset in range(at, at + _BATCH)}
        if missing:
            yield f"{topic}: missing without a log line: {sorted(missing)}"
    if not outcome.lines and outcome.found.committed != directories.content.committed:
        yield f"committed offsets are {outcome.found.committed}"
    if not outcome.lines and outcome.found.metadata != directories.content.metadata:
        yield f"metadata is {outcome.found.metadata}"
