"""Batches in Produce requests: an attempt is one batch in one request (KIP-580, KIP-91).

An idempotent producer identifies its batches: a retry has the same producer id, epoch and base sequence. Other batches
have no identity, and the journal keeps no content. Such a batch counts as a retry of a failed one if the same client
sends it to the same partition in a request of the same size or, if the request has several batches, in the order in
which they failed. The keys of these end in `~` and a number.

The journal lists the error codes of a response without partitions, so a batch of a request for several partitions
counts as failed if it is sent again.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.journal_events import NOBODY, AnyEvent, Request, TopicPartition

from .outcomes import Outcomes


class Sent(NamedTuple):
    request: Request
    partition: TopicPartition
    is_alone: bool


def produce_sequences(events: Iterable[AnyEvent]) -> list[AttemptSequence]:
    """Return each batch with all its attempts, ordered by first attempt."""
    events = list(events)
    outcomes = Outcomes(events)
    made: dict[str, list[Sent]] = {}
    unnumbered = _Unnumbered()
    for sent in _sent(events):
        made.setdefault(_key(sent) or unnumbered.key(sent), []).append(sent)
    return [
        AttemptSequence(
            kind=Kind.PRODUCE,
            key=key,
            attempts=[_attempt(one, outcomes, is_last=number == len(tries)) for number, one in enumerate(tries, 1)],
        )
        for key, tries in made.items()
    ]


def _sent(events: Iterable[AnyEvent]) -> Iterator[Sent]:
    requests = (event for event in events if isinstance(event, Request) and event.api == "Produce")
    for request in sorted(requests, key=lambda each: (each.received_ns, each.seq)):
        is_alone = len(request.partitions) == 1 and not request.partitions_left_off
        for partition in request.partitions:
            yield Sent(request, partition, is_alone)


def _key(sent: Sent) -> str:
    one = sent.partition
    if one.producer_id == NOBODY:
        return ""
    return f"{one.topic}-{one.partition}@{one.producer_id}.{one.producer_epoch}.{one.base_sequence}"


class _Unnumbered:
    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], list[tuple[str, Sent]]] = {}  # by client and partition
        self._count = 0

    def key(self, sent: Sent) -> str:
        where = f"{sent.partition.topic}-{sent.partition.partition}"
        client = f"{sent.request.client_id}@{sent.request.peer.rpartition(':')[0]}"
        failed = self._failed.setdefault((client, where), [])
        again = next((one for one in failed if _is_again(one[1], sent)), None)
        if again is None:
            self._count += 1
            key = f"{where}~{self._count}"
        else:
            failed.remove(again)
            key = again[0]
        if sent.request.error_codes or sent.request.answered_ns is None:
            failed.append((key, sent))
        return key


def _is_again(before: Sent, now: Sent) -> bool:
    if _ended_ns(before.request) > now.request.received_ns:
        return False
    if not (before.is_alone and now.is_alone):
        return True
    return before.request.request_bytes == now.request.request_bytes


def _ended_ns(request: Request) -> int:
    """Return when the client could know the outcome: at the response, or at the end of the connection."""
    return request.at_ns if request.written_ns is None else request.written_ns


def _attempt(sent: Sent, outcomes: Outcomes, *, is_last: bool) -> Attempt:
    attempt = outcomes.attempt(sent.request)
    if attempt.outcome is Outcome.ERROR and is_last and not sent.is_alone:
        return msgspec.structs.replace(attempt, outcome=Outcome.SUCCEEDED, error_codes=[])
    return attempt
