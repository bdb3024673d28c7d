"""Consumers that get no records of a partition: it is empty, they start at its end, or wait for a transaction."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from sluice.journal_events import NO_ID, FetchedRecords, Request, TransactionState
from sluice.trace.described import counted, has_failed
from sluice.trace.findings.history import READ_COMMITTED, Found, History, client_of, grouped, listed, number_value
from sluice.trace.model import Severity

_LATEST = -1  # the timestamp in ListOffsets
_CLOSED = ("CompleteCommit", "CompleteAbort", "Empty", "Dead")
_INTERNAL = "__"

_Place = tuple[str, int]  # topic and partition


class _Read(NamedTuple):
    """A Fetch of a client for a partition."""

    request: Request
    offset: int
    fetched: FetchedRecords


class _Reader(NamedTuple):
    """What a client fetched from a partition, in order."""

    client: str
    place: _Place
    reads: list[_Read]

    @property
    def name(self) -> str:
        return "{}-{}".format(*self.place)

    @property
    def bytes(self) -> int:
        return sum(read.fetched.bytes for read in self.reads)


def find(history: History) -> Iterator[Found]:
    readers = [*_readers(history)]
    yield from _read_from_end(history, readers)
    yield from _not_committed(history, readers)
    yield from _read_elsewhere(history, readers)


def _readers(history: History) -> Iterator[_Reader]:
    reads: dict[tuple[str, _Place], list[_Read]] = {}
    for request in history.apis("Fetch"):
        if has_failed(request):
            continue
        for one in request.partitions:
            if one.fetched is not None and one.offset != NO_ID:
                key = client_of(request), (one.topic, one.partition)
                reads.setdefault(key, []).append(_Read(request, one.offset, one.fetched))
    for (client, place), of_client in reads.items():
        yield _Reader(client, place, of_client)


def _read_from_end(history: History, readers: list[_Reader]) -> Iterator[Found]:
    looked_up = {
        (client_of(request), (partition.topic, partition.partition)): request
        for request in history.apis("ListOffsets")
        if number_value(request.sent, "timestamp") == _LATEST and not has_failed(request)
        for partition in request.partitions
    }
    skipped = [
        (reader, lookup)
        for reader in readers
        if (lookup := looked_up.get((reader.client, reader.place))) is not None
        and reader.reads[0].offset > 0
        and reader.reads[0].request.received_ns >= lookup.received_ns
    ]
    for (client, topic), alike in grouped(skipped, lambda one: (one[0].client, one[0].place[0])).items():
        records = sum(reader.reads[0].offset for reader, _ in alike)
        names = listed(f"{reader.name} (offset {reader.reads[0].offset})" for reader, _ in alike)
        lookup = alike[0][1]
        title = f"Client {client} starts at the end of {topic}, and skips {counted(records, 'record')}"
        text = (
            f"It looked up the latest offsets at {history.when(lookup.received_ns)}, and fetches from there: {names}. "
        )
        text += "Set auto.offset.reset=earliest, or start the consumer before the producer."
        shown = [lookup.seq, *(reader.reads[0].request.seq for reader, _ in alike)]
        severity: Severity = "warning" if any(reader.bytes for reader, _ in alike) else "error"
        yield Found("read-from-end", severity, title, text, lookup.received_ns, shown, [client, topic])


def _not_committed(history: History, readers: list[_Reader]) -> Iterator[Found]:
    states = {event.transactional_id: event for event in history.of(TransactionState)}
    opened = [event for event in states.values() if event.after not in _CLOSED]
    for reader in readers:
        request, offset, fetched = reader.reads[-1]
        if number_value(request.sent, "isolation_level") != READ_COMMITTED:
            continue
        held = fetched.high_watermark - fetched.last_stable_offset
        if not offset == fetched.last_stable_offset < fetched.high_watermark:
            continue
        title = f"Client {reader.client} waits for an open transaction on {reader.name}"
        text = f"With isolation.level=read_committed, it gets no records from offset {offset} on: "
        text += f"{counted(held, 'record')} up to the high watermark {fetched.high_watermark}."
        if opened:
            since = (f"{one.transactional_id} ({one.after} since {history.when(one.at_ns)})" for one in opened)
            text += f" Open transactions: {listed(since)}."
        names = [reader.client, reader.place[0], *(one.transactional_id for one in opened)]
        shown = [request.seq, *(one.seq for one in opened)]
        yield Found("records-not-committed", "error", title, text, request.received_ns, shown, names)


def _read_elsewhere(history: History, readers: list[_Reader]) -> Iterator[Found]:
    produced: dict[_Place, Request] = {}
    for request in history.apis("Produce"):
        if not has_failed(request):
            for one in request.partitions:
                produced.setdefault((one.topic, one.partition), request)
    fetched = {reader.place for reader in readers}
    unread = {place: request for place, request in produced.items() if place not in fetched}
    unread = {place: request for place, request in unread.items() if not place[0].startswith(_INTERNAL)}
    if not unread:
        return
    members = {client_of(one) for one in history.apis("JoinGroup", "ConsumerGroupHeartbeat")}
    for client, of_client in grouped(readers, lambda reader: reader.client).items():
        if any(reader.bytes or reader.reads[-1].fetched.high_watermark > 0 for reader in of_client):
            continue
        # Of the topics of a group, other members read the other partitions.
        own = {reader.place[0] for reader in of_client} if client in members else set()
        names = {"{}-{}".format(*place): place for place in unread if place[0] not in own}
        if not names:
            continue
        empty = [reader.name for reader in of_client]
        near = get_close_matches(empty[0], names, n=1, cutoff=0) or [*names]
        place = names[near[0]]
        writer = client_of(unread[place])
        others = listed([near[0], *(name for name in names if name != near[0])])
        title = f"Client {client} reads {listed(empty)}, but the records are in {others}"
        text = f"The partitions that it fetched stayed empty. Client {writer} produced to {near[0]} at "
        text += f"{history.when(unread[place].received_ns)}, which no client fetched."
        first = of_client[0].reads[0].request
        shown = [first.seq, unread[place].seq]
        found = [client, writer, of_client[0].place[0], place[0]]
        yield Found("read-elsewhere", "error", title, text, first.received_ns, shown, found)
