"""Batches in Produce requests: an attempt is one batch in one request (KIP-580, KIP-91).

A retry of an idempotent producer has the same producer id, epoch, base sequence and records. (A client may use a
sequence number again for other records.) Without idempotence, records are identified by the hashes of their content
(`sluice.journal.record.hashes`). Clients may regroup them, so a sequence is the attempts of records that were always
sent together, and one request may be an attempt of several.

A sequence is *doubtful*, and decides no verdict, if records of equal content were sent (kafkajs chooses a partition for
each retry), or the journal has no hashes. Then a batch counts as a retry of a failed one of the same size.

The journal lists error codes without partitions: a batch of a request for several failed if it is sent again.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

import msgspec

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.journal_events import NO_ID, AnyEvent, Request, TopicPartition

from .outcomes import Outcomes, maybe_unread

EQUAL_RECORDS = "records of equal content were sent, so a retry cannot be distinguished from another record"
MOVED = (
    "records of equal content were sent to several partitions, so a retry in another partition cannot be distinguished "
    "from another record"
)
NO_HASHES = (
    "the producer is not idempotent, and the content of its batches is not known: they cannot be read, or the journal "
    "does not hash records. So a retry cannot be distinguished from another batch. Enable idempotence in the producer"
)


class Sent(NamedTuple):
    request: Request
    partition: TopicPartition
    is_alone: bool
    may_be_unread: bool

    @property
    def where(self) -> str:
        return f"{self.partition.topic}-{self.partition.partition}"

    @property
    def has_failed(self) -> bool:
        return bool(self.request.error_codes) or self.request.answered_ns is None

    @property
    def ended_ns(self) -> int:
        """When the client could know the outcome: at the response, or at the end of the connection."""
        return self.request.at_ns if self.request.written_ns is None else self.request.written_ns


class _Found(NamedTuple):
    key: str
    tries: list[Sent]
    doubt: str = ""


def produce_sequences(events: Iterable[AnyEvent]) -> list[AttemptSequence]:
    events = list(events)
    outcomes = Outcomes(events)
    return [
        AttemptSequence(
            kind=Kind.PRODUCE,
            key=found.key,
            attempts=[
                _attempt(one, outcomes, is_last=number == len(found.tries)) for number, one in enumerate(found.tries, 1)
            ],
            doubt=found.doubt,
        )
        for found in _batches(list(_sent(events)))
    ]


def produce_requests(events: Iterable[AnyEvent]) -> list[Request]:
    found = [event for event in events if isinstance(event, Request) and event.api == "Produce"]
    return sorted(found, key=lambda each: (each.received_ns, each.seq))


def _sent(events: Iterable[AnyEvent]) -> Iterator[Sent]:
    events = list(events)
    unread = maybe_unread(events)
    for request in produce_requests(events):
        is_alone = len(request.partitions) == 1 and not request.partitions_left_off
        for partition in request.partitions:
            yield Sent(request, partition, is_alone, (request.connection, request.received_ns) in unread)


def _batches(sent: Sequence[Sent]) -> list[_Found]:
    numbered: dict[tuple[str, tuple[str, ...]], list[Sent]] = {}  # by identity and content
    hashed: dict[tuple[str, str], list[Sent]] = {}
    places: dict[tuple[str, str, str], set[str]] = {}  # by client, topic and hash
    unknown = _BySize()
    for one in sent:
        if one.partition.producer_id != NO_ID:
            numbered.setdefault((_key(one), tuple(one.partition.record_hashes)), []).append(one)
        elif one.partition.record_hashes:
            hashed.setdefault((_client(one), one.where), []).append(one)
            for each in one.partition.record_hashes:
                places.setdefault((_client(one), one.partition.topic, each), set()).add(one.where)
        else:
            unknown.append(one)
    found = [_Found(key, tries) for (key, _), tries in numbered.items()]
    moved = {place for place, where in places.items() if len(where) > 1}
    found += [each for of_one in hashed.values() for each in _by_records(of_one, moved)]
    found += [_Found(f"{tries[0].where}~", tries, NO_HASHES) for tries in unknown.made]
    found.sort(key=lambda each: (each.tries[0].request.received_ns, each.tries[0].request.seq))
    counts: dict[str, int] = {}
    return [each if each.key[-1:] != "~" else each._replace(key=_counted(each.key, counts)) for each in found]


def _counted(key: str, counts: dict[str, int]) -> str:
    counts[key] = counts.get(key, 0) + 1
    return f"{key}{counts[key]}"


def _key(sent: Sent) -> str:
    one = sent.partition
    return f"{sent.where}@{one.producer_id}.{one.producer_epoch}.{one.base_sequence}"


def _client(sent: Sent) -> str:
    return f"{sent.request.client_id}@{sent.request.peer.rpartition(':')[0]}"


def _by_records(sent: Sequence[Sent], moved: Set[tuple[str, str, str]]) -> Iterator[_Found]:
    """Yield attempts of records that were always sent together; `sent` is of one client and partition."""
    client, topic = _client(sent[0]), sent[0].partition.topic
    attempts: dict[str, list[int]] = {}  # record hash -> indexes in `sent`
    equal: set[str] = set()
    for number, one in enumerate(sent):
        hashes = one.partition.record_hashes
        for each in dict.fromkeys(hashes):
            before = attempts.setdefault(each, [])
            if hashes.count(each) > 1 or (before and _is_another_record(sent[before[-1]], one)):
                equal.add(each)
            before.append(number)
    together: dict[tuple[int, ...], list[str]] = {}
    for record, numbers in attempts.items():
        together.setdefault(tuple(numbers), []).append(record)
    for of_group, records in together.items():
        doubt = EQUAL_RECORDS if not equal.isdisjoint(records) else ""
        doubt = doubt or (MOVED if any((client, topic, each) in moved for each in records) else "")
        yield _Found(f"{sent[0].where}~", [sent[number] for number in of_group], doubt)


def _is_another_record(before: Sent, now: Sent) -> bool:
    """Return whether a record of equal content is certainly not a retry: the one before succeeded or is in flight."""
    is_same_connection = before.request.connection == now.request.connection
    if is_same_connection and before.request.answered_ns is not None and before.ended_ns > now.request.received_ns:
        return True
    return not before.has_failed and not before.may_be_unread


class _BySize:
    def __init__(self) -> None:
        self.made: list[list[Sent]] = []
        self._failed: dict[tuple[str, str], list[list[Sent]]] = {}

    def append(self, sent: Sent) -> None:
        failed = self._failed.setdefault((_client(sent), sent.where), [])
        tries = next((tries for tries in failed if _may_be_again(tries[-1], sent)), None)
        if tries is None:
            tries = []
            self.made.append(tries)
        else:
            failed.remove(tries)
        tries.append(sent)
        if sent.has_failed:
            failed.append(tries)


def _may_be_again(before: Sent, now: Sent) -> bool:
    if before.ended_ns > now.request.received_ns:
        return False
    if not (before.is_alone and now.is_alone):
        return True
    return before.request.request_bytes == now.request.request_bytes


def _attempt(sent: Sent, outcomes: Outcomes, *, is_last: bool) -> Attempt:
    attempt = outcomes.attempt(sent.request)
    if attempt.outcome is Outcome.ERROR and is_last and not sent.is_alone:
        return msgspec.structs.replace(attempt, outcome=Outcome.SUCCEEDED, error_codes=[])
    return attempt
