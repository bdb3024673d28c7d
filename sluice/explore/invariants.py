"""Invariants of an application, checked when its program has ended: each returns the first violation, or ""."""

from collections.abc import Sequence

import msgspec

from sluice.client.consumer import Consumer, ConsumerRecord, TopicPartition

from .events import OWN_ID
from .run import Run

_POLL_MS = 100.0


class Invariant(msgspec.Struct, frozen=True):
    """A property of the records of a topic.

    topic: topic name
    """

    topic: str

    async def violation(self, run: Run) -> str:
        """Return what violates it, else ""."""
        raise NotImplementedError


class AtLeastOnce(Invariant, frozen=True):
    """Every committed record of the topic is processed, once or more."""

    async def violation(self, run: Run) -> str:
        for record in await committed_records(run, self.topic):
            if not run.processed_records[self.topic, record.partition, record.offset]:
                return f"{self.topic}-{record.partition} offset {record.offset} ({_text(record)}) was not processed"
        return ""


class ExactlyOnce(Invariant, frozen=True):
    """Every committed record of the topic is processed once, and no other."""

    async def violation(self, run: Run) -> str:
        left = {place: count for place, count in run.processed_records.items() if place[0] == self.topic}
        for record in await committed_records(run, self.topic):
            count = left.pop((self.topic, record.partition, record.offset), 0)
            if count != 1:
                times = "not processed" if not count else f"processed {count} times"
                return f"{self.topic}-{record.partition} offset {record.offset} ({_text(record)}) was {times}"
        if left:
            _, partition, offset = min(left)
            return f"{self.topic}-{partition} offset {offset} was processed, but is not committed"
        return ""


class InOrder(Invariant, frozen=True):
    """The records of a partition are processed in order; one that was processed before may be processed again."""

    async def violation(self, run: Run) -> str:
        highest: dict[int, int] = {}
        for (topic, partition, offset), _ in run.order:
            if topic != self.topic:
                continue
            before = highest.get(partition, -1)
            if offset > before + 1 and any(
                (topic, partition, between) in run.processed_records for between in range(before + 1, offset)
            ):
                return f"{topic}-{partition} offset {offset} was processed before {before + 1}"
            highest[partition] = max(before, offset)
        return ""


class NoDuplicates(Invariant, frozen=True):
    """No two committed records of the topic have the same key and value, as of an output with exactly one per input."""

    async def violation(self, run: Run) -> str:
        seen: dict[tuple[bytes | None, bytes | None], ConsumerRecord] = {}
        for record in await committed_records(run, self.topic):
            first = seen.setdefault((record.key, record.value), record)
            if first is not record:
                places = (f"{self.topic}-{each.partition} offset {each.offset}" for each in (first, record))
                return f"{_text(record)} is twice in the output: {' and '.join(places)}"
        return ""


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


def _text(record: ConsumerRecord) -> str:
    return repr(record.value)
