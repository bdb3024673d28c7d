"""The rows of the `backoff` job: a verdict of the audit's judge on each sequence of attempts in a span."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sluice.audit.judge import judge_sequence
from sluice.audit.judge.model.attempts import AttemptSequence
from sluice.audit.judge.observer import sequences
from sluice.journal_events import Request

from .spans import Host, HostEvent, Limits, by_time

DEFAULTS: Mapping[str, float] = {
    "retry.backoff.ms": 100.0,
    "retry.backoff.max.ms": 1000.0,
    "reconnect.backoff.ms": 50.0,
    "reconnect.backoff.max.ms": 1000.0,
}
_NS_PER_US = 1_000


class VerdictRow(NamedTuple):
    """The verdict on one sequence of attempts.

    client_id, software: of the client, "" if it sent neither
    began_us, ended_us: the first and the last attempt, in microseconds since the epoch
    waits_ms: before each attempt except the first
    model, base_ms, multiplier, cap_ms, jitter, confidence: the backoff that fits best; null if none fits
    """

    host: str
    client_id: str
    software: str
    kind: str
    key: str
    path: str
    began_us: int
    ended_us: int
    attempts: int
    waits_ms: list[float]
    statement: str
    state: str
    why: str
    model: str | None
    base_ms: float | None
    multiplier: float | None
    cap_ms: float | None
    jitter: float | None
    confidence: float | None


def rows_of(host: str, span: Iterable[HostEvent], settings: Mapping[str, float]) -> Iterator[VerdictRow]:
    events = list(span)
    names = {event.connection: event for event in events if isinstance(event, Request)}
    for sequence in sequences(events):
        if len(sequence.attempts) > 1:
            yield _row(host, sequence, names, settings)


def rows_of_journal(
    host: str, events: Iterable[HostEvent], settings: Mapping[str, float], limits: Limits
) -> Iterator[VerdictRow]:
    state = Host()
    for event in sorted(events, key=by_time):
        yield from rows_of(host, state.take(event, limits), settings)
    yield from rows_of(host, state.end(), settings)


def host_of(peer: str) -> str:
    return peer.rpartition(":")[0]


def _row(
    host: str, sequence: AttemptSequence, names: Mapping[int, Request], settings: Mapping[str, float]
) -> VerdictRow:
    verdict = judge_sequence(sequence, settings)
    first, last = sequence.attempts[0], sequence.attempts[-1]
    # The first connections of a sequence may have been closed before their first request.
    named = next((names[each.connection] for each in reversed(sequence.attempts) if each.connection in names), None)
    fit = verdict.fit
    return VerdictRow(
        host=host,
        client_id="" if named is None else named.client_id,
        software="" if named is None else f"{named.software_name} {named.software_version}".strip(),
        kind=sequence.kind,
        key=sequence.key,
        path=verdict.path or sequence.path,
        began_us=first.at_ns // _NS_PER_US,
        ended_us=last.at_ns // _NS_PER_US,
        attempts=len(sequence.attempts),
        waits_ms=[round(wait, 3) for wait in sequence.gaps_ms()],
        statement=verdict.statement,
        state=verdict.state,
        why=verdict.why,
        model=None if fit is None else fit.model,
        base_ms=None if fit is None else fit.base_ms,
        multiplier=None if fit is None else fit.multiplier,
        cap_ms=None if fit is None else fit.cap_ms,
        jitter=None if fit is None else fit.jitter,
        confidence=None if fit is None else fit.confidence,
    )
