"""Invariants of an application, checked when its program has ended: each returns the first violation, or ""."""

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from sluice import testing
from sluice.client.consumer import Consumer, ConsumerRecord, TopicPartition
from sluice.journal_events import Request

from .events import OWN_CLIENTS, OWN_ID
from .run import Place, Run

_POLL_MS = 100.0
# The times of the journal are rounded.
_ROUNDING_S = 1e-5
# For the end of applications that close their clients, which may have to wait for a request.
_STOP_S = 60.0


class Invariant(msgspec.Struct, frozen=True):
    """A property that holds when a program has ended."""

    async def violation(self, run: Run) -> str:
        """Return what violates it, else ""."""
        raise NotImplementedError


class _OfTopic(Invariant, frozen=True):
    """A property of the records of a topic.

    topic: topic name
    """

    topic: str


# -- processing --------------------------------------------------------------------------------------------------------


class AtLeastOnce(_OfTopic, frozen=True):
    """Every committed record of the topic is processed, once or more."""

    async def violation(self, run: Run) -> str:
        for record in await committed_records(run, self.topic):
            if not run.processed_records[self.topic, record.partition, record.offset]:
                return f"{_named(record)} was not processed"
        return ""


class AtMostOnce(_OfTopic, frozen=True):
    """No record of the topic is processed twice."""

    async def violation(self, run: Run) -> str:
        for (topic, partition, offset), count in sorted(run.processed_records.items()):
            if topic == self.topic and count > 1:
                return f"{topic}-{partition} offset {offset} was processed {count} times"
        return ""


class ExactlyOnce(_OfTopic, frozen=True):
    """Every committed record of the topic is processed once, and no other."""

    async def violation(self, run: Run) -> str:
        before = _processed(run, self.topic)
        records = await committed_records(run, self.topic)
        for record in records:
            count = run.processed_records[self.topic, record.partition, record.offset]
            if count != 1:
                return f"{_named(record)} was {f'processed {count} times' if count else 'not processed'}"
        return _uncommitted(before, records)


class NoAbortedRecords(_OfTopic, frozen=True):
    """No record of an aborted transaction in the topic is processed."""

    async def violation(self, run: Run) -> str:
        before = _processed(run, self.topic)
        return _uncommitted(before, await committed_records(run, self.topic))


class InOrder(_OfTopic, frozen=True):
    """The records of a partition are processed in order; one that was processed before may be processed again."""

    async def violation(self, run: Run) -> str:
        places = (place for place, _ in run.order if place[0] == self.topic)
        found = _disorder((partition, offset) for _, partition, offset in places)
        return f"{self.topic}-{found.lane} offset {found.offset} was processed before {found.earlier}" if found else ""


class InOrderPerKey(_OfTopic, frozen=True):
    """The records of a partition with the same key are processed in order; those of other keys need not be."""

    async def violation(self, run: Run) -> str:
        records = await committed_records(run, self.topic)
        keys = {(self.topic, each.partition, each.offset): (each.partition, each.key) for each in records}
        found = _disorder((keys[place], place[2]) for place, _ in run.order if place in keys)
        if not found:
            return ""
        partition, key = found.lane
        return f"{self.topic}-{partition} offset {found.offset} with key {key!r} was processed before {found.earlier}"


class Progress(_OfTopic, frozen=True):
    """Every committed record of the topic is processed in time, after the last failure and after it was produced.

    within_s: time in seconds
    """

    within_s: float = 120.0

    async def violation(self, run: Run) -> str:
        first = _first_times(run)
        for record in await committed_records(run, self.topic):
            produced_s = (record.timestamp * 1_000_000 - run.began_ns) / 1e9
            due_s = max(run.failed_at_s, produced_s) + self.within_s
            if first.get((self.topic, record.partition, record.offset), run.now_s) > due_s:
                return f"{_named(record)} was not processed within {self.within_s:g} s after the last failure"
        return ""


# -- outputs and commits -----------------------------------------------------------------------------------------------


class NoDuplicates(_OfTopic, frozen=True):
    """No two committed records of the topic have the same key and value, as of an output with exactly one per input."""

    async def violation(self, run: Run) -> str:
        seen: dict[tuple[bytes | None, bytes | None], ConsumerRecord] = {}
        for record in await committed_records(run, self.topic):
            first = seen.setdefault((record.key, record.value), record)
            if first is not record:
                places = (f"{self.topic}-{each.partition} offset {each.offset}" for each in (first, record))
                return f"{record.value!r} is twice in the output: {' and '.join(places)}"
        return ""


class NoCommitAhead(_OfTopic, frozen=True):
    """No OffsetCommit precedes the processing of a record below its offset."""

    async def violation(self, run: Run) -> str:
        first = _first_times(run)
        records = await committed_records(run, self.topic)
        for commit in _commits(run, self.topic):
            for record in records:
                if record.partition != commit.partition or record.offset >= commit.offset:
                    continue
                at_s = first.get((self.topic, record.partition, record.offset), run.now_s)
                if at_s > commit.at_s + _ROUNDING_S:
                    what = f"group {commit.group_id} committed offset {commit.offset}"
                    return f"{what} before {_named(record)} was processed"
        return ""


class MonotonicCommits(_OfTopic, frozen=True):
    """The committed offsets of the topic never decrease."""

    async def violation(self, run: Run) -> str:
        last: dict[tuple[str, int], int] = {}
        for commit in _commits(run, self.topic):
            group_id, partition, offset, _ = commit
            before = last.get((group_id, partition), offset)
            if offset < before:
                return f"group {group_id} committed offset {offset} of {self.topic}-{partition} after {before}"
            last[group_id, partition] = offset
        return ""


# -- clients -----------------------------------------------------------------------------------------------------------


class BoundedRetries(Invariant, frozen=True):
    """No client sends too many requests to an API that all fail.

    most: maximum number of failed requests in a row
    """

    most: int = 50

    async def violation(self, run: Run) -> str:
        failed: Counter[tuple[str, str, str]] = Counter()
        for request in _requests(run):
            # Instances of an application have the same client id, and each its own address.
            who = request.client_id, request.peer.rpartition(":")[0], request.api
            is_failed = any(request.error_codes) or request.answered_ns is None
            failed[who] = failed[who] + 1 if is_failed else 0
            if failed[who] > self.most:
                return f"{failed[who]} {request.api} requests of {request.client_id} in a row failed"
        return ""


class NoLeaks(Invariant, frozen=True):
    """When the applications are cancelled at the end, they end, and leave no task and no connection."""

    async def violation(self, run: Run) -> str:
        running = run.processes.running()
        for host in await run.processes.stop(_STOP_S):
            return f"{host} did not end within {_STOP_S:g} s after it was cancelled"
        await asyncio.sleep(1)  # noqa: TID251  (virtual time; until connections are closed)
        for host in run.processes.running():
            if host not in running:  # it was paused, and not cancelled
                continue
            tasks = run.processes.tasks_of(host)
            if tasks:
                return f"{host} has left {len(tasks)} tasks, such as {tasks[0]}"
            connections = testing.network().unclosed(host)
            if connections:
                return f"{host} has left {connections} open connections"
        return ""


# -- details -----------------------------------------------------------------------------------------------------------


async def committed_records(run: Run, topic: str) -> Sequence[ConsumerRecord]:
    """Return the records of a topic, without those of transactions that are open or aborted."""
    config = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": OWN_ID,
        "isolation.level": "read_committed",
    }
    found: list[ConsumerRecord] = []
    async with Consumer(config) as consumer:
        partitions = [TopicPartition(topic, index) for index in await consumer.partitions_for(topic)]
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        while any([await consumer.position(each) < ends[each] for each in partitions]):
            found += await consumer.poll(_POLL_MS)
    return found


class _Commit(NamedTuple):
    group_id: str
    partition: int
    offset: int
    at_s: float


class _Disorder(NamedTuple):
    lane: Any
    offset: int
    earlier: int


def _first_times(run: Run) -> Mapping[Place, float]:
    """Return when each record was processed first."""
    first: dict[Place, float] = {}
    for place, at_s in run.order:
        first.setdefault(place, at_s)
    return first


def _commits(run: Run, topic: str) -> Iterator[_Commit]:
    """Yield the successful commits of a topic's offsets."""
    for request in _requests(run):
        if request.api == "OffsetCommit" and request.answered_ns is not None and not any(request.error_codes):
            at_s = (request.received_ns - run.began_ns) / 1e9
            for each in request.partitions:
                if each.topic == topic and each.offset >= 0:
                    yield _Commit(request.group_id, each.partition, each.offset, at_s)


def _requests(run: Run) -> Iterator[Request]:
    return (each for each in run.broker.journal.requests() if each.client_id not in OWN_CLIENTS)


def _disorder(processed: Iterable[tuple[Hashable, int]]) -> _Disorder | None:
    """Return the first offset that was processed before an earlier one of its lane, if that was processed at all."""
    in_order = list(processed)
    offsets: dict[Hashable, set[int]] = {}
    for lane, offset in in_order:
        offsets.setdefault(lane, set()).add(offset)
    highest: dict[Hashable, int] = {}
    for lane, offset in in_order:
        before = highest.get(lane, -1)
        earlier = min((each for each in offsets[lane] if before < each < offset), default=None)
        if earlier is not None:
            return _Disorder(lane, offset, earlier)
        highest[lane] = max(before, offset)
    return None


def _processed(run: Run, topic: str) -> Sequence[Place]:
    """Return the records of a topic that are processed now; further ones are while committed records are read."""
    return [place for place, count in run.processed_records.items() if place[0] == topic and count]


def _uncommitted(processed: Iterable[Place], committed: Iterable[ConsumerRecord]) -> str:
    places = {(each.topic, each.partition, each.offset) for each in committed}
    topic, partition, offset = min((place for place in processed if place not in places), default=("", 0, 0))
    return f"{topic}-{partition} offset {offset} was processed, but is not committed" if topic else ""


def _named(record: ConsumerRecord) -> str:
    return f"{record.topic}-{record.partition} offset {record.offset} ({record.value!r})"
