"""KIP-91's statements about attempts: how long and how often a batch is sent, and on which connections.

A client may fail a record while its request is still in flight. So statements about attempts are judged by requests,
and those about outcomes by the driver's events (delivery_outcomes.py).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.expected import Tolerance, number, required
from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Series, Verdict
from sluice.audit.judge.observer.outcomes import is_resent
from sluice.audit.judge.records import observed_until_ns
from sluice.audit.judge.waits import ended_ns as ended_ns_of
from sluice.audit.judge.waits import longest_tracks, track
from sluice.journal_events import ConnectionClosed, ConnectionOpened, Request

_NS_PER_MS = 1_000_000
_PASS_MS = 100.0
_AROUND_MS = 50.0  # the coarsest period in which clients check their timeouts
_EARLY_SHARE = 0.34  # share of requests that the client may have written late
# INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED, INVALID_REQUEST, INVALID_RECORD
_NON_RETRIABLE = frozenset((21, 29, 42, 87))
_MANY_TRIES = 10
_STAYS_MS = 1000.0
# Fewer closed connections may have another cause.
_MANY_CLOSED, _CLOSED_SHARE = 2, 4
_LONG_ANSWER_MS = 50.0
_LONGEST_WAIT_MS = 1000.0
_NOTHING = Tolerance(0, 0)


class _Batch(NamedTuple):
    sequence: AttemptSequence
    until_ns: int
    observation: Observation

    @property
    def first_ns(self) -> int:
        return self.sequence.attempts[0].at_ns

    @property
    def last_ms(self) -> float:
        return (self.sequence.attempts[-1].sent_from_ns - self.first_ns) / _NS_PER_MS

    @property
    def is_delivered(self) -> bool:
        return any(attempt.outcome is Outcome.SUCCEEDED for attempt in self.sequence.attempts)

    @property
    def where(self) -> str:
        tries = len(self.sequence.attempts)
        return f"run {self.observation.repetition + 1}, {tries} attempts of {self.sequence.key}"

    def was_observed_for(self, ms: float) -> bool:
        return (self.until_ns - self.first_ns) / _NS_PER_MS >= ms


def _last_ms(batch: _Batch) -> float:
    return batch.last_ms


def _batches(case: Case) -> Iterator[_Batch]:
    for observation, found in zip(case.observations, case.found, strict=True):
        for sequence in found:
            if sequence.kind is Kind.PRODUCE and sequence.attempts[0].outcome is not Outcome.SUCCEEDED:
                yield _Batch(sequence, observed_until_ns(observation), observation)


def _series(case: Case, batches: list[_Batch]) -> list[Series]:
    tracks = [track(batch.sequence, batch.observation.repetition) for batch in batches]
    return [each.series(None, _NOTHING) for each in longest_tracks(tracks)]


def _setting(case: Case, name: str) -> float:
    return required(number(case.subject.settings, name))


def _ends_in_time(case: Case) -> Verdict:
    timeout_ms = _setting(case, "delivery.timeout.ms")
    late_ms = case.tolerance(0).late_ms + _PASS_MS
    batches = [batch for batch in _batches(case) if not batch.is_delivered]
    seen = [batch for batch in batches if batch.was_observed_for(timeout_ms + late_ms)]
    latest_ms = max((batch.last_ms for batch in batches), default=0.0)
    details: VerdictDetails = {
        "measured": {"batches": len(seen), "last_attempt_ms": latest_ms},
        "expected": {"batches": "at least 1", "last_attempt_ms": f"at most {timeout_ms:g} ms"},
        "series": _series(case, batches),
    }
    if latest_ms > timeout_ms + late_ms:
        return case.deviates(
            f"sends a batch {latest_ms:.0f} ms after its first attempt; expected at most delivery.timeout.ms "
            f"({timeout_ms:g})",
            where=max(batches, key=_last_ms).where,
            **details,
        )
    if not seen:
        return case.inconclusive(
            "no batch failed and was observed for longer than delivery.timeout.ms", runs_needed=None, **details
        )
    return case.passes(
        f"last attempt of a batch after {latest_ms:.0f} ms; delivery.timeout.ms is {timeout_ms:g}", **details
    )


def _retries_unanswered(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    allowed = case.tolerance(0)
    batches = [batch for batch in _batches(case) if not batch.is_delivered and _is_unanswered(batch)]
    unanswered_ns = _first_unanswered_ns(batches)
    gaps = [
        ((after.at_ns - unanswered_ns[batch.observation.repetition, before.connection]) / _NS_PER_MS, batch.where)
        for batch in batches
        for before, after in pairwise(batch.sequence.attempts)
    ]
    gaps_ms = [gap_ms for gap_ms, _ in gaps]
    same = sum(
        before.connection == after.connection
        for batch in batches
        for before, after in pairwise(batch.sequence.attempts)
    )
    last_ms = max((batch.last_ms for batch in batches), default=0.0)
    details: VerdictDetails = {
        "measured": {
            "batches": len(batches),
            "shortest_gap_ms": min(gaps_ms, default=0.0),
            "on_the_same_connection": same,
            "last_attempt_ms": last_ms,
        },
        "expected": {
            "shortest_gap_ms": f"at least {request_ms:g} ms",
            "on_the_same_connection": "0",
            "last_attempt_ms": f"at most {delivery_ms:g} ms",
        },
        "series": _series(case, batches),
    }
    if not batches:
        return case.inconclusive("every batch received a response", runs_needed=1, **details)
    if gaps_ms and min(gaps_ms) < request_ms - _AROUND_MS - allowed.early_ms:
        return case.deviates(
            f"resends an unanswered batch after {min(gaps_ms):.0f} ms; expected at least request.timeout.ms "
            f"({request_ms:g})",
            where=min(gaps)[1],
            **details,
        )
    if same:
        return case.deviates(f"resends {same} unanswered batches on the same connection; expected another", **details)
    if last_ms > delivery_ms + allowed.late_ms + _PASS_MS:
        return case.deviates(
            f"sends a batch {last_ms:.0f} ms after its first attempt; expected at most delivery.timeout.ms "
            f"({delivery_ms:g})",
            where=max(batches, key=_last_ms).where,
            **details,
        )
    if not gaps_ms:
        return case.inconclusive("no batch was resent", runs_needed=1, **details)
    return case.passes(
        f"resends unanswered batches after {min(gaps_ms):.0f} ms or more, until {last_ms:.0f} ms; "
        f"request.timeout.ms is {request_ms:g}, delivery.timeout.ms {delivery_ms:g}",
        **details,
    )


def _first_unanswered_ns(batches: Iterable[_Batch]) -> dict[tuple[int, int], int]:
    """Find the first unanswered request of each connection, which times out first."""
    found: dict[tuple[int, int], int] = {}
    for batch in batches:
        for attempt in batch.sequence.attempts:
            where = batch.observation.repetition, attempt.connection
            found[where] = min(found.get(where, attempt.at_ns), attempt.at_ns)
    return found


def _is_unanswered(batch: _Batch) -> bool:
    return all(
        attempt.outcome in (Outcome.ABANDONED, Outcome.DISCONNECTED, Outcome.UNANSWERED)
        for attempt in batch.sequence.attempts
    )


def _keeps_connection(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    kept: list[float] = []
    batches: list[_Batch] = []
    unanswered = [batch for batch in _batches(case) if _is_unanswered(batch)]
    unanswered_ns = _first_unanswered_ns(unanswered)
    for batch in unanswered:
        last = batch.sequence.attempts[-1]
        # Only a batch that expired in flight, before its request timed out.
        over_ns = batch.first_ns + round(delivery_ms * _NS_PER_MS)
        since_ns = unanswered_ns[batch.observation.repetition, last.connection]
        timed_out_ns = since_ns + round(request_ms * _NS_PER_MS)
        left_ns = _left_ns(batch)
        if last.outcome is not Outcome.ABANDONED or not last.at_ns < over_ns < timed_out_ns:
            continue
        if left_ns is None or left_ns < over_ns - _PASS_MS * _NS_PER_MS or batch.until_ns < timed_out_ns:
            continue
        batches.append(batch)
        kept.append((left_ns - since_ns) / _NS_PER_MS)
    details: VerdictDetails = {
        "measured": {"batches": len(kept), "connection_left_ms": min(kept, default=0.0)},
        "expected": {"connection_left_ms": f"at least {request_ms:g} ms after the request"},
        "series": _series(case, batches),
    }
    if not kept:
        return case.inconclusive("no batch expired while its request was in flight", runs_needed=1, **details)
    early = sum(each < request_ms - _AROUND_MS - case.tolerance(0).early_ms for each in kept)
    if early and early <= _EARLY_SHARE * len(kept):
        return case.inconclusive(
            f"closes the connection early after {early} of {len(kept)} requests, {min(kept):.0f} ms after it, possibly "
            "because the machine was busy",
            runs_needed=case.runs,
            **details,
        )
    if early:
        return case.deviates(
            f"closes the connection {min(kept):.0f} ms after a request whose batch expired; expected at least "
            f"request.timeout.ms ({request_ms:g})",
            where=batches[kept.index(min(kept))].where,
            **details,
        )
    return case.passes(
        f"keeps the connection for {min(kept):.0f} ms after a request whose batch expired; request.timeout.ms is "
        f"{request_ms:g}",
        **details,
    )


def _left_ns(batch: _Batch) -> int | None:
    """Return when the client left the last connection; or opened the next, if the broker was not reading."""
    last = batch.sequence.attempts[-1]
    if last.ended_ns is not None:
        return last.ended_ns
    opened_ns = (
        event.at_ns
        for event in batch.observation.events
        if isinstance(event, ConnectionOpened) and event.broker == last.broker and event.at_ns > last.at_ns
    )
    return next(opened_ns, None)


def _ignores_late_answer(case: Case) -> Verdict:
    delivery_ms = _setting(case, "delivery.timeout.ms")
    request_ms = number(case.subject.settings, "request.timeout.ms")
    late, again, closed = 0, 0, 0
    for observation, found in zip(case.observations, case.found, strict=True):
        ends = {
            event.connection: event.at_ns
            for event in observation.events
            if isinstance(event, ConnectionClosed) and event.by_client
        }
        for sequence in found:
            answered = _late_answer(sequence, delivery_ms) if sequence.kind is Kind.PRODUCE else None
            if answered is None:
                continue
            ended_ns, end_ns = ended_ns_of(answered), ends.get(answered.connection)
            late += 1
            again += is_resent(
                sequence.attempts[sequence.attempts.index(answered) :], lag_ms=observation.lag_ms, timeout_ms=request_ms
            )
            closed += (
                end_ns is not None
                and end_ns < observed_until_ns(observation)
                and 0 <= (end_ns - ended_ns) / _NS_PER_MS < _STAYS_MS
            )
    details: VerdictDetails = {
        "measured": {"late_answers": late, "sent_again": again, "connections_closed": closed},
        "expected": {"late_answers": "at least 1", "sent_again": "0", "connections_closed": "0"},
    }
    if not late:
        return case.inconclusive("no response was sent after delivery.timeout.ms", runs_needed=1, **details)
    is_certain = case.is_virtual or closed >= _MANY_CLOSED
    if again or (is_certain and closed > late / _CLOSED_SHARE):
        what = f"resends {again} batches" if again else f"closes {closed} of {late} connections"
        return case.deviates(f"{what} after a response that came later than delivery.timeout.ms", **details)
    if closed:
        return case.inconclusive(
            f"closed {closed} of {late} connections after a late response, possibly because the machine was busy",
            runs_needed=case.runs,
            **details,
        )
    return case.passes(f"ignores {late} responses that came later than delivery.timeout.ms", **details)


def _late_answer(sequence: AttemptSequence, delivery_ms: float) -> Attempt | None:
    over_ns = sequence.attempts[0].at_ns + delivery_ms * _NS_PER_MS
    for attempt in sequence.attempts:
        if attempt.outcome is Outcome.SUCCEEDED:
            return attempt if ended_ns_of(attempt) > over_ns else None
    return None


def _one_in_flight(case: Case) -> Verdict:
    if _setting(case, "max.in.flight.requests.per.connection") != 1:
        return case.not_observable("max.in.flight.requests.per.connection is not 1 in this run")
    slow, overlapping = 0, 0
    for observation in case.observations:
        by_connection: dict[int, list[Request]] = {}
        for event in observation.events:
            if isinstance(event, Request) and event.api == "Produce":
                by_connection.setdefault(event.connection, []).append(event)
        for requests in by_connection.values():
            for before, after in pairwise(sorted(requests, key=lambda request: request.received_ns)):
                if before.written_ns is None or before.written_ns - before.received_ns < _LONG_ANSWER_MS * _NS_PER_MS:
                    continue
                slow += 1
                overlapping += after.received_ns < before.written_ns
    details: VerdictDetails = {
        "measured": {"slow_answers": slow, "sent_meanwhile": overlapping},
        "expected": {"slow_answers": "at least 1", "sent_meanwhile": "0"},
    }
    if overlapping:
        return case.deviates(
            f"sends {overlapping} requests before the previous response; "
            "expected 0 with max.in.flight.requests.per.connection=1",
            **details,
        )
    if not slow:
        return case.inconclusive("no request followed one with a slow response", runs_needed=1, **details)
    return case.passes(f"waits for {slow} slow responses before the next request", **details)


def _rejects_configuration(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    if delivery_ms >= _setting(case, "linger.ms") + request_ms:
        return case.not_observable("delivery.timeout.ms is not below linger.ms + request.timeout.ms in this run")
    connected = sum(isinstance(event, ConnectionOpened) for each in case.observations for event in each.events)
    refused = sum(callback.event == "rejected" for each in case.observations for callback in each.callbacks)
    details: VerdictDetails = {
        "measured": {"connections": connected, "refused": refused},
        "expected": {"connections": "0"},
    }
    if connected:
        what = (
            "rejects the configuration only after connecting" if refused else "accepts the configuration, and connects"
        )
        return case.deviates(what, **details)
    if not refused:
        return case.inconclusive("did not connect, but its driver reported no rejection", runs_needed=None, **details)
    return case.passes("rejects the configuration without connecting", **details)


def _counts_retries(case: Case) -> Verdict:
    retries, delivery_ms = _setting(case, "retries"), _setting(case, "delivery.timeout.ms")
    batches = [batch for batch in _batches(case) if not batch.is_delivered]
    # A batch counts as given up after twice the longest backoff without an attempt.
    rest_ms = 2 * (number(case.subject.settings, "retry.backoff.max.ms") or _LONGEST_WAIT_MS)
    tries = [
        len(batch.sequence.attempts)
        for batch in batches
        if batch.last_ms < delivery_ms / 2 and batch.was_observed_for(_gave_up_ms(batch) + rest_ms)
    ]
    details: VerdictDetails = {
        "measured": {"batches": len(tries), "most_attempts": max(tries, default=0), "attempts": min(tries, default=0)},
        "expected": {"most_attempts": f"{retries + 1:g}", "attempts": f"{retries + 1:g}"},
        "series": _series(case, batches),
    }
    longest = max((len(batch.sequence.attempts) for batch in batches), default=0)
    if longest > retries + 1:
        return case.deviates(
            f"sends a batch {longest} times; expected at most {retries + 1:g} (retries + 1)",
            where=max(batches, key=lambda batch: len(batch.sequence.attempts)).where,
            **details,
        )
    if not tries:
        return case.inconclusive("no batch failed until its retries were exhausted", runs_needed=1, **details)
    if min(tries) < retries + 1:
        return case.deviates(
            f"sends a batch only {min(tries)} times; expected {retries + 1:g} (retries + 1)",
            where=next(batch.where for batch in batches if len(batch.sequence.attempts) == min(tries)),
            **details,
        )
    return case.passes(f"sends a batch {longest} times; retries is {retries:g}", **details)


def _retries_until_timeout(case: Case) -> Verdict:
    delivery_ms = _setting(case, "delivery.timeout.ms")
    longest_wait_ms = number(case.subject.settings, "retry.backoff.max.ms") or _LONGEST_WAIT_MS
    late_ms = 1.2 * longest_wait_ms + case.tolerance(longest_wait_ms).late_ms + _PASS_MS
    batches = list(_batches(case))
    early = [batch for batch in batches if not batch.is_delivered and _gave_up_ms(batch) + late_ms < delivery_ms]
    early = [batch for batch in early if batch.was_observed_for(_gave_up_ms(batch) + 2 * late_ms)]
    tried = max((len(batch.sequence.attempts) for batch in batches), default=0)
    to_the_end = [batch for batch in batches if not batch.is_delivered and _gave_up_ms(batch) + late_ms >= delivery_ms]
    details: VerdictDetails = {
        "measured": {"batches": len(batches), "given_up_early": len(early), "most_attempts": tried},
        "expected": {"given_up_early": "0"},
        "series": _series(case, early or batches),
    }
    if early:
        return case.deviates(
            f"gives up a batch after {_gave_up_ms(early[0]):.0f} ms; expected delivery.timeout.ms ({delivery_ms:g})",
            where=early[0].where,
            **details,
        )
    if not to_the_end and tried < _MANY_TRIES:
        return case.inconclusive(
            f"no batch failed more than {tried} times; expected {_MANY_TRIES}", runs_needed=1, **details
        )
    return case.passes(f"sends a failing batch {tried} times; delivery.timeout.ms is {delivery_ms:g}", **details)


def _gave_up_ms(batch: _Batch) -> float:
    last = batch.sequence.attempts[-1]
    return ((last.at_ns if last.ended_ns is None else last.ended_ns) - batch.first_ns) / _NS_PER_MS


def _does_not_retry(case: Case) -> Verdict:
    batches = [batch for batch in _batches(case) if _NON_RETRIABLE.intersection(batch.sequence.attempts[0].error_codes)]
    again = [batch for batch in batches if len(batch.sequence.attempts) > 1]
    details: VerdictDetails = {
        "measured": {"batches": len(batches), "sent_again": len(again)},
        "expected": {"batches": "at least 1", "sent_again": "0"},
        "series": _series(case, again or batches),
    }
    if not batches:
        return case.inconclusive("no batch failed with a non-retriable error", runs_needed=1, **details)
    if again:
        return case.deviates(
            f"resends {len(again)} of {len(batches)} batches after a non-retriable error; expected 0",
            where=again[0].where,
            **details,
        )
    return case.passes(f"resends none of {len(batches)} batches after a non-retriable error", **details)


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-91/1": _ends_in_time,
    "KIP-91/4": _retries_unanswered,
    "KIP-91/5": _keeps_connection,
    "KIP-91/6": _ignores_late_answer,
    "KIP-91/7": _one_in_flight,
    "KIP-91/9": _rejects_configuration,
    "KIP-91/12": _counts_retries,
    "KIP-91/14": _retries_until_timeout,
    "KIP-91/15": _does_not_retry,
}
