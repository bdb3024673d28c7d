"""The events of a journal, from a file, standard input, an admin port or a topic.

| source | what |
|---|---|
| FILE | lines of JSON (`sluice journal export`), also in gzip; Parquet; or Kafka's request log |
| - | the same lines from standard input |
| http://HOST:PORT | the admin port of a running broker: the events that it keeps |
| kafka://HOST:PORT/TOPIC | a topic with events, up to its current end; default `__sluice_journal` |
"""

import asyncio
import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit

import msgspec

from sluice.client.consumer.consumer import Consumer
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import BLOCK_BYTES, AnyEvent, decode, decode_lines
from sluice.spark.charges.request_log_line import NotUnderstoodError
from sluice.text.error_text import expected

from .export import JournalClient
from .request_log import RequestLog

_LONGEST_LINE = 16 << 20
_BATCH = 1000
_TIMEOUT_MS = 10_000
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_CONSUMER = {"auto.offset.reset": "earliest", "allow.auto.create.topics": "false", "client.id": "sluice-journal"}
_DEFAULT_TOPIC = "__sluice_journal"
_NO_EVENT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_events(source: str, token: str | None = None) -> Iterator[Sequence[AnyEvent]]:
    """Yield batches of events in their order. Raises SluiceError with the place of the first problem."""
    scheme = urlsplit(source).scheme if "://" in source else ""
    if scheme in ("http", "https"):
        lines = JournalClient(source, token).lines({})
        while batch := [decode(line) for line in islice(lines, _BATCH)]:
            yield batch
    elif scheme == "kafka":
        yield from _of_topic(source)
    elif scheme:
        accepted = "a file, -, http://HOST:PORT (an admin port) or kafka://HOST:PORT/TOPIC"
        raise ConfigError(f"SOURCE: {expected(accepted, source)}")
    elif source == "-":
        yield from _of_text("standard input", sys.stdin.buffer)
    else:
        yield from _of_file(source)


# -- files -------------------------------------------------------------------------------------------------------------


def _of_file(path: str) -> Iterator[Sequence[AnyEvent]]:
    try:
        with Path(path).open("rb") as file:
            magic = file.read(len(_PARQUET))
            file.seek(0)
            if magic == _PARQUET:
                yield from _of_parquet(path, file)
            elif magic.startswith(_GZIP):
                yield from _of_text(path, cast("IO[bytes]", gzip.GzipFile(fileobj=file)))  # it has IO's methods
            else:
                yield from _of_text(path, file)
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SluiceError(f"{path}: cannot read: {problem}") from None


def _of_text(name: str, file: IO[bytes]) -> Iterator[Sequence[AnyEvent]]:
    line, log = 1, None
    while block := file.read(BLOCK_BYTES):
        if not block.endswith(b"\n"):
            block += file.readline(_LONGEST_LINE)
        if line == 1 and not block.lstrip().startswith(b"{") and b"Completed request:" in block:
            log = RequestLog()
        try:
            yield decode_lines(block) if log is None else list(_of_log(log, name, line, block))
        except _NO_EVENT:
            raise SluiceError(_problem(name, line, block)) from None
        line += block.count(b"\n")


def _of_log(log: RequestLog, name: str, number: int, block: bytes) -> Iterator[AnyEvent]:
    for at, line in enumerate(block.decode(errors="replace").split("\n"), number):
        try:
            event = log.event(line) if line.strip() else None
        except NotUnderstoodError as error:
            raise SluiceError(f"{name}: line {at}: {error}") from None
        if event is not None:
            yield event


def _problem(name: str, number: int, block: bytes) -> str:
    """Describe the first line that is not an event."""
    for line in block.split(b"\n"):
        try:
            if line.strip():
                decode(line)
        except _NO_EVENT as error:
            accepted = "an event of sluice's journal as JSON"
            return f"{name}: line {number}: {expected(accepted, line[:60].decode(errors='replace'))}: {error}"
        number += 1
    raise AssertionError("the caller could not decode the block")


def _of_parquet(path: str, file: IO[bytes]) -> Iterator[Sequence[AnyEvent]]:
    if find_spec("pyarrow") is None:
        raise SluiceError(f"{path}: Parquet needs pyarrow, which is not installed; run pip install pyarrow")
    from sluice.spark.journal_parquet import read

    for lines in read(path, file):
        try:
            yield decode_lines(lines)
        except _NO_EVENT as error:
            raise SluiceError(f"{path}: event of another journal version: {error}") from None


# -- topics ------------------------------------------------------------------------------------------------------------


def _of_topic(source: str) -> Iterator[Sequence[AnyEvent]]:
    url = urlsplit(source)
    config = {"bootstrap.servers": url.netloc, **_CONSUMER}
    topic = url.path.strip("/") or _DEFAULT_TOPIC
    try:
        consumer = Consumer(config)
    except ConfigError:
        raise ConfigError(f"SOURCE: {expected('kafka://HOST:PORT/TOPIC', source)}") from None
    with asyncio.Runner() as runner:
        try:
            runner.run(consumer.__aenter__())
            found = runner.run(consumer.partitions_for(topic, timeout_ms=_TIMEOUT_MS))
            partitions = [TopicPartition(topic, index) for index in found]
            begins = runner.run(consumer.beginning_offsets(partitions, timeout_ms=_TIMEOUT_MS))
            ends = runner.run(consumer.end_offsets(partitions, timeout_ms=_TIMEOUT_MS))
            left = {each: end for each, end in ends.items() if end > begins[each]}
            consumer.assign(left)
            while left:
                records = runner.run(consumer.poll(_TIMEOUT_MS))
                if not records:
                    raise SluiceError(f"{source}: no records for {_TIMEOUT_MS / 1000:g} s")
                yield [_of_record(source, each) for each in records]
                for each in list(left):
                    if runner.run(consumer.position(each)) >= left[each]:
                        consumer.pause([each])
                        del left[each]
        except KafkaException as error:
            raise SluiceError(f"{source}: {error}") from None
        finally:
            runner.run(consumer.close())


def _of_record(source: str, record: ConsumerRecord) -> AnyEvent:
    try:
        return decode(record.value or b"")
    except _NO_EVENT as error:
        place = f"{source}: partition {record.partition}, offset {record.offset}"
        raise SluiceError(f"{place}: expected an event of sluice's journal as JSON: {error}") from None
