"""Consumers that get no records, and groups without committed offsets.

The partition is empty, they start at its end, or wait for a transaction; another group has committed offsets, or the
group reads and does not commit.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from sluice.journal_events import NO_ID, FetchedRecords, Request, TransactionState
from sluice.trace.described import counted, has_failed
from sluice.trace.model import Severity

from .history import (
    NS_PER_S,
    READ_COMMITTED,
    Found,
    History,
    client_of,
    duration,
    grouped,
    listed,
    number_value,
    seqs,
    topics_of,
)

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


def nothing_read(history: History) -> Iterator[Found]:
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


_COMMITS = ("OffsetCommit", "TxnOffsetCommit")
_MEMBERS = ("JoinGroup", "ConsumerGroupHeartbeat")
_LONG_NS = 6 * NS_PER_S  # above Kafka's auto.commit.interval.ms of 5 s


def without_offsets(history: History) -> Iterator[Found]:
    commits = grouped((one for one in history.apis(*_COMMITS) if not has_failed(one)), lambda one: one.group_id)
    lookups = grouped((one for one in history.apis("OffsetFetch") if not has_failed(one)), lambda one: one.group_id)
    for group_id, requests in lookups.items():
        first = requests[0]
        found = any(one.offset != NO_ID for one in first.partitions)
        if found or not first.partitions:
            continue
        for other, of_other in commits.items():
            earlier = [one for one in of_other if one.received_ns < first.received_ns]
            shared = [topic for topic in topics_of(earlier) if topic in topics_of([first])]
            if other != group_id and shared:
                yield _another_group(history, group_id, other, first, earlier[-1], shared[0])
                break
    yield from _nothing_committed(history, commits, lookups)


def _another_group(history: History, group_id: str, other: str, lookup: Request, commit: Request, topic: str) -> Found:
    client = client_of(lookup)
    title = f"Group {group_id} has no committed offsets of {topic}, but group {other} has some"
    text = f"Client {client} fetched the offsets of group {group_id} at {history.when(lookup.received_ns)}. There were "
    text += "none, so auto.offset.reset applies. Group "
    text += f"{other} had committed at {history.when(commit.received_ns)}: check the group id."
    shown = [lookup.seq, commit.seq]
    names = [client, group_id, other, topic]
    return Found("group-without-offsets", "warning", title, text, lookup.received_ns, shown, names)


def _nothing_committed(
    history: History, commits: dict[str, list[Request]], lookups: dict[str, list[Request]]
) -> Iterator[Found]:
    joins = grouped((one for one in history.apis(*_MEMBERS) if not has_failed(one)), lambda one: one.group_id)
    for group_id, requests in joins.items():
        clients = {client_of(one) for one in requests}
        reads = [
            one
            for one in history.apis("Fetch")
            if client_of(one) in clients
            and any(each.fetched is not None and each.fetched.bytes for each in one.partitions)
        ]
        if not reads or group_id in commits:
            continue
        again = [one for one in lookups.get(group_id, ()) if one.received_ns > reads[0].received_ns]
        if not again and history.end_ns - reads[0].received_ns < _LONG_NS:
            continue
        first = reads[0]
        client = client_of(first)
        title = f"Group {group_id} reads, but never committed an offset"
        text = (
            f"Client {client} got records of {listed(topics_of(reads))} from {history.when(first.received_ns)} on. The "
        )
        text += f"group committed nothing within {duration(history.end_ns - first.received_ns)}. "
        if again:
            when = history.when(again[0].received_ns)
            text += f"Client {client_of(again[0])} fetched its offsets at {when}, and found none."
        else:
            text += "Its next start reads the same records, or none of them."
        names = [client, group_id, *topics_of(reads)]
        severity: Severity = "warning" if again else "info"
        yield Found("nothing-committed", severity, title, text, first.received_ns, seqs([first, *again[:1]]), names)
