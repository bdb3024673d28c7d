"""The facts of a topic: what the domains of clients and groups contribute, merged in any order with the same result."""

from collections import defaultdict

import msgspec

from sluice.lint.clients import ClientKey

from .measures.examples import Example

_MOST_CLIENTS = 16
_MOST_EXAMPLES = 5

Span = tuple[int, int]  # times of the first and the last event, ns


class Produced(msgspec.Struct):
    """What was produced to a partition.

    batches, records, bytes: without failed requests
    transactional: those of the batches that belong to transactions
    span: times of the first and the last request
    """

    batches: int
    records: int
    bytes: int
    transactional: int
    span: Span

    def merge(self, other: "Produced") -> None:
        self.batches += other.batches
        self.records += other.records
        self.bytes += other.bytes
        self.transactional += other.transactional
        self.span = joined(self.span, other.span)


class TopicFacts(msgspec.Struct):
    """The facts of one topic.

    clients: up to 16 clients that use it, the first in alphabetical order
    produced: by partition
    read: by partition, when records of it were fetched
    is_unlisted: whether a reader's requests have partitions that the journal left off
    reads_uncommitted: number of responses with records to requests with isolation level read_uncommitted
    uncommitted_readers: up to 16 clients that sent these requests
    reading_groups: by group id, when clients that read the topic were members; without clients of several groups
    groups_without_commits: groups that were assigned the topic and never committed an offset of any
    is_created: whether a client sent CreateTopics for it
    appeared: requests of Metadata that allow auto creation, to which it was unknown, and known shortly after
    """

    clients: list[ClientKey] = []
    produced: dict[int, Produced] = {}
    read: dict[int, Span] = {}
    is_unlisted: bool = False
    reads_uncommitted: int = 0
    uncommitted_readers: list[ClientKey] = []
    reading_groups: dict[str, Span] = {}
    groups_without_commits: set[str] = set()
    is_created: bool = False
    appeared: list[Example] = []

    def merge(self, other: "TopicFacts") -> None:
        """Add the facts of another client or group."""
        self.uncommitted_readers = _first({*self._uncommitted_readers, *other._uncommitted_readers})
        self.clients = _first({*self.clients, *other.clients})
        for partition, produced in other.produced.items():
            if partition in self.produced:
                self.produced[partition].merge(produced)
            else:
                self.produced[partition] = msgspec.structs.replace(produced)
        for partition, span in other.read.items():
            self.note_read(partition, span)
        self.is_unlisted = self.is_unlisted or other.is_unlisted
        self.reads_uncommitted += other.reads_uncommitted
        for group_id, span in other.reading_groups.items():
            self.note_group(group_id, span)
        self.groups_without_commits |= other.groups_without_commits
        self.is_created = self.is_created or other.is_created
        self.appeared = sorted({*self.appeared, *other.appeared})[:_MOST_EXAMPLES]

    @property
    def _uncommitted_readers(self) -> list[ClientKey]:
        """Those of merged facts; a contribution has one client."""
        return self.uncommitted_readers or (self.clients if self.reads_uncommitted else [])

    def note_read(self, partition: int, span: Span) -> None:
        self.read[partition] = joined(self.read.get(partition, span), span)

    def note_group(self, group_id: str, span: Span) -> None:
        self.reading_groups[group_id] = joined(self.reading_groups.get(group_id, span), span)


class Topics(defaultdict[str, TopicFacts]):
    """Facts by topic name."""

    def __init__(self) -> None:
        super().__init__(TopicFacts)


def joined(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1])


def _first(clients: set[ClientKey]) -> list[ClientKey]:
    return sorted(clients)[:_MOST_CLIENTS]
