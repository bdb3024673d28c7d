"""Consumers that get no records of a partition that has some: they start at the end, or wait for a transaction."""

from collections.abc import Iterator
from typing import NamedTuple

from sluice.journal_events import NO_ID, FetchedRecords, Request, TransactionState
from sluice.trace.described import counted, has_failed
from sluice.trace.findings.history import Found, History, client_of, number_value

_LATEST = -1  # the timestamp in ListOffsets
_READ_COMMITTED = 1
_CLOSED = ("CompleteCommit", "CompleteAbort", "Empty", "Dead")


class _Last(NamedTuple):
    """The last Fetch of a client for a partition."""

    request: Request
    offset: int
    fetched: FetchedRecords


class _Reader:
    """What a client fetched from a partition."""

    def __init__(self) -> None:
        self.bytes = 0
        self.first: _Last | None = None
        self.last: _Last | None = None

    def add(self, found: _Last) -> None:
        self.bytes += found.fetched.bytes
        self.first = self.first or found
        self.last = found


def find(history: History) -> Iterator[Found]:
    looked_up = {
        (client_of(request), partition.topic, partition.partition): request
        for request in history.apis("ListOffsets")
        if number_value(request.sent, "timestamp") == _LATEST and not has_failed(request)
        for partition in request.partitions
    }
    for (client, topic, partition), reader in _readers(history).items():
        first, last = reader.first, reader.last
        assert first is not None
        assert last is not None
        name = f"{topic}-{partition}"
        lookup = looked_up.get((client, topic, partition))
        if lookup is not None and not reader.bytes and first.offset > 0:
            yield _starts_at_end(history, client, name, topic, lookup, first)
        stable = last.fetched.last_stable_offset
        waits = last.offset == stable < last.fetched.high_watermark and stable != NO_ID
        if waits and number_value(last.request.sent, "isolation_level") == _READ_COMMITTED:
            yield _waits_for_transaction(history, client, name, topic, last)


def _readers(history: History) -> dict[tuple[str, str, int], _Reader]:
    readers: dict[tuple[str, str, int], _Reader] = {}
    for request in history.apis("Fetch"):
        if has_failed(request):
            continue
        for one in request.partitions:
            if one.fetched is not None and one.offset != NO_ID:
                key = client_of(request), one.topic, one.partition
                readers.setdefault(key, _Reader()).add(_Last(request, one.offset, one.fetched))
    return readers


def _starts_at_end(history: History, client: str, name: str, topic: str, lookup: Request, first: _Last) -> Found:
    title = f"Client {client} starts at the end of {name}, and skips {counted(first.offset, 'record')}"
    text = f"It looked up the latest offset, {first.offset}, at {history.when(lookup.received_ns)}, and no record was "
    text += "produced after that. Set auto.offset.reset=earliest, or start the consumer before the producer."
    seqs = [lookup.seq, first.request.seq]
    return Found("starts-at-end", "error", title, text, lookup.received_ns, seqs, [client, topic])


def _waits_for_transaction(history: History, client: str, name: str, topic: str, last: _Last) -> Found:
    states = {event.transactional_id: event for event in history.of(TransactionState)}
    opened = [event for event in states.values() if event.after not in _CLOSED]
    held = last.fetched.high_watermark - last.fetched.last_stable_offset
    title = f"Client {client} waits for an open transaction on {name}"
    text = f"With isolation.level=read_committed, it gets no records from offset {last.offset} on: "
    text += f"{counted(held, 'record')} up to the high watermark {last.fetched.high_watermark}."
    if opened:
        text += f" Open transactions: {', '.join(f'{one.transactional_id} ({one.after})' for one in opened)}."
    names = [client, topic, *(one.transactional_id for one in opened)]
    seqs = [last.request.seq, *(one.seq for one in opened)]
    return Found("waits-for-transaction", "error", title, text, last.request.received_ns, seqs, names)
