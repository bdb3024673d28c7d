"""What KIP-91 says of attempts: how long a batch is sent again, how often, and on which connections."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.expected import Tolerance, number
from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Series, Verdict
from sluice.audit.judge.records import observed_until_ns
from sluice.audit.judge.waits import ended_ns as ended_ns_of
from sluice.audit.judge.waits import longest_tracks, track
from sluice.journal_events import ConnectionClosed, ConnectionOpened, Request

_NS_PER_MS = 1_000_000
# A sender looks at its batches now and then.
_PASS_MS = 100.0
_AROUND_MS = 50.0  # a timeout of a client is looked at that often at least
_FOR_GOOD = frozenset((21, 29, 42, 87))
_MANY_TRIES = 10
_STAYS_MS = 1000.0
_LONG_ANSWER_MS = 50.0
_LONGEST_WAIT_MS = 1000.0  # KIP-580's default
_NOTHING = Tolerance(0, 0)


class _Batch(NamedTuple):
    """A batch that failed at least once, and until when anybody looked at it."""

    sequence: AttemptSequence
    until_ns: int
    observation: Observation

    @property
    def first_ns(self) -> int:
        return self.sequence.attempts[0].at_ns

    @property
    def last_ms(self) -> float:
        """When it was sent for the last time, from the first."""
        return (self.sequence.attempts[-1].at_ns - self.first_ns) / _NS_PER_MS

    @property
    def is_delivered(self) -> bool:
        return any(attempt.outcome is Outcome.SUCCEEDED for attempt in self.sequence.attempts)

    def was_observed_for(self, ms: float) -> bool:
        """Whether anybody looked for so long from the first attempt on."""
        return (self.until_ns - self.first_ns) / _NS_PER_MS >= ms


def _batches(case: Case) -> Iterator[_Batch]:
    for observation, found in zip(case.observations, case.found, strict=True):
        for sequence in found:
            if sequence.kind is Kind.PRODUCE and sequence.attempts[0].outcome is not Outcome.SUCCEEDED:
                yield _Batch(sequence, observed_until_ns(observation), observation)


def _series(case: Case, batches: list[_Batch]) -> list[Series]:
    tracks = [track(batch.sequence, batch.observation.repetition) for batch in batches]
    return [each.series(None, _NOTHING) for each in longest_tracks(tracks)]


def _setting(case: Case, name: str) -> float:
    found = number(case.subject.settings, name)
    assert found is not None, "the statement says that it needs it"
    return found


def _ends_in_time(case: Case) -> Verdict:
    timeout_ms = _setting(case, "delivery.timeout.ms")
    late_ms = case.tolerance(0).late_ms + _PASS_MS
    batches = [batch for batch in _batches(case) if not batch.is_delivered]
    seen = [batch for batch in batches if batch.was_observed_for(timeout_ms + late_ms)]
    latest_ms = max((batch.last_ms for batch in batches), default=0.0)
    details: VerdictDetails = {
        "measured": {"batches": len(seen), "last_attempt_ms": latest_ms},
        "expected": {"batches": "1 at least", "last_attempt_ms": f"{timeout_ms:g} ms at most"},
        "series": _series(case, batches),
    }
    if latest_ms > timeout_ms + late_ms:
        return case.deviates(
            f"sends a batch {latest_ms / 1e3:.1f} s after the first time, where delivery.timeout.ms is {timeout_ms:g}",
            **details,
        )
    if not seen:
        return case.inconclusive(
            "no batch failed for longer than delivery.timeout.ms while anybody looked", runs_needed=None, **details
        )
    return case.passes(f"sends no batch later than {latest_ms / 1e3:.1f} s after the first time", **details)


def _mute(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    allowed = case.tolerance(0)
    batches = [batch for batch in _batches(case) if not batch.is_delivered and _is_unanswered(batch)]
    held_ns = _held_since_ns(batches)
    gaps_ms = [
        (after.at_ns - held_ns[batch.observation.repetition, before.connection]) / _NS_PER_MS
        for batch in batches
        for before, after in pairwise(batch.sequence.attempts)
    ]
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
            "shortest_gap_ms": f"{request_ms:g} ms at least",
            "on_the_same_connection": "0",
            "last_attempt_ms": f"{delivery_ms:g} ms at most",
        },
        "series": _series(case, batches),
    }
    if not batches:
        return case.inconclusive("no batch was left without an answer", runs_needed=1, **details)
    if gaps_ms and min(gaps_ms) < request_ms - _AROUND_MS - allowed.early_ms:
        return case.deviates(
            f"sends a batch again after {min(gaps_ms):.0f} ms, where request.timeout.ms is {request_ms:g}", **details
        )
    if same:
        return case.deviates("sends a batch again on a connection on which it has not been answered", **details)
    if last_ms > delivery_ms + allowed.late_ms + _PASS_MS:
        return case.deviates(
            f"sends a batch {last_ms:.0f} ms after the first time, where delivery.timeout.ms is {delivery_ms:g}",
            **details,
        )
    if not gaps_ms:
        return case.inconclusive("no batch was sent again", runs_needed=1, **details)
    return case.passes(
        f"sends it again after {min(gaps_ms):.0f} ms, and at the latest after {last_ms:.0f} ms", **details
    )


def _held_since_ns(batches: Iterable[_Batch]) -> dict[tuple[int, int], int]:
    """By run and connection, when the first request came there that was not answered: the one that times out first."""
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


def _leaves_connection(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    kept: list[float] = []
    batches: list[_Batch] = []
    unanswered = [batch for batch in _batches(case) if _is_unanswered(batch)]
    held_ns = _held_since_ns(unanswered)
    for batch in unanswered:
        last = batch.sequence.attempts[-1]
        # Only one that was on its way when its time was over, with time left for the request.
        over_ns = batch.first_ns + round(delivery_ms * _NS_PER_MS)
        since_ns = held_ns[batch.observation.repetition, last.connection]
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
        "expected": {"connection_left_ms": f"{request_ms:g} ms at least, after the request"},
        "series": _series(case, batches),
    }
    if not kept:
        return case.inconclusive("no batch ran out of time while its request was on its way", runs_needed=1, **details)
    if min(kept) < request_ms - _AROUND_MS - case.tolerance(0).early_ms:
        return case.deviates(
            f"leaves the connection {min(kept):.0f} ms after the request whose batch ran out of time, "
            f"where request.timeout.ms is {request_ms:g}",
            **details,
        )
    return case.passes(f"keeps the connection for {min(kept):.0f} ms after the request", **details)


def _left_ns(batch: _Batch) -> int | None:
    """When the client left the connection of the last attempt. Where the broker held that, and did not see it: when the
    client made another one.
    """
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
            again += sequence.attempts[-1] is not answered
            closed += (
                end_ns is not None
                and end_ns < observed_until_ns(observation)
                and 0 <= (end_ns - ended_ns) / _NS_PER_MS < _STAYS_MS
            )
    details: VerdictDetails = {
        "measured": {"late_answers": late, "sent_again": again, "connections_closed": closed},
        "expected": {"late_answers": "1 at least", "sent_again": "0", "connections_closed": "0"},
    }
    if not late:
        return case.inconclusive("no answer came after delivery.timeout.ms", runs_needed=1, **details)
    if again or closed:
        what = "sends a batch again" if again else "closes the connection"
        return case.deviates(f"{what} after an answer that came too late", **details)
    return case.passes(f"takes {late} answers that came too late without a word", **details)


def _late_answer(sequence: AttemptSequence, delivery_ms: float) -> Attempt | None:
    """The attempt that succeeded when the time of its batch was over."""
    over_ns = sequence.attempts[0].at_ns + delivery_ms * _NS_PER_MS
    for attempt in sequence.attempts:
        if attempt.outcome is Outcome.SUCCEEDED:
            return attempt if ended_ns_of(attempt) > over_ns else None
    return None


def _one_in_flight(case: Case) -> Verdict:
    if _setting(case, "max.in.flight.requests.per.connection") != 1:
        return case.not_observable("max.in.flight.requests.per.connection is not 1 here")
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
        "expected": {"slow_answers": "1 at least", "sent_meanwhile": "0"},
    }
    if overlapping:
        return case.deviates(f"sends {overlapping} requests before the one before is answered", **details)
    if not slow:
        return case.inconclusive("no request came after one whose answer took long", runs_needed=1, **details)
    return case.passes(f"waits for {slow} answers that took long", **details)


def _refuses_configuration(case: Case) -> Verdict:
    delivery_ms, request_ms = _setting(case, "delivery.timeout.ms"), _setting(case, "request.timeout.ms")
    if delivery_ms >= _setting(case, "linger.ms") + request_ms:
        return case.not_observable("delivery.timeout.ms is not below linger.ms + request.timeout.ms here")
    connected = sum(isinstance(event, ConnectionOpened) for each in case.observations for event in each.events)
    refused = sum(callback.event == "rejected" for each in case.observations for callback in each.callbacks)
    details: VerdictDetails = {
        "measured": {"connections": connected, "refused": refused},
        "expected": {"connections": "0"},
    }
    if connected:
        what = "refuses the configuration, but connects before" if refused else "takes the configuration, and connects"
        return case.deviates(what, **details)
    if not refused:
        return case.inconclusive("it does not connect, but nobody says why", runs_needed=None, **details)
    return case.passes("refuses the configuration, and connects to nobody", **details)


def _counts_retries(case: Case) -> Verdict:
    retries, delivery_ms = _setting(case, "retries"), _setting(case, "delivery.timeout.ms")
    batches = [batch for batch in _batches(case) if not batch.is_delivered]
    # Nothing came for a time in which the longest wait would have been over.
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
        return case.deviates(f"sends a batch {longest} times, where retries is {retries:g}", **details)
    if not tries:
        return case.inconclusive("no batch failed for good", runs_needed=1, **details)
    if min(tries) < retries + 1:
        return case.deviates(f"sends a batch {min(tries)} times only, where retries is {retries:g}", **details)
    return case.passes(f"sends a batch {longest} times", **details)


def _goes_on(case: Case) -> Verdict:
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
            f"gives up a batch after {_gave_up_ms(early[0]) / 1e3:.1f} s, where delivery.timeout.ms is {delivery_ms:g}",
            **details,
        )
    if not to_the_end and tried < _MANY_TRIES:
        return case.inconclusive(f"no batch failed more than {tried} times", runs_needed=1, **details)
    return case.passes(f"sends a batch {tried} times", **details)


def _gave_up_ms(batch: _Batch) -> float:
    """When its last attempt ended, from the first one on."""
    last = batch.sequence.attempts[-1]
    return ((last.at_ns if last.ended_ns is None else last.ended_ns) - batch.first_ns) / _NS_PER_MS


def _fails_for_good(case: Case) -> Verdict:
    batches = [batch for batch in _batches(case) if _FOR_GOOD.intersection(batch.sequence.attempts[0].error_codes)]
    again = [batch for batch in batches if len(batch.sequence.attempts) > 1]
    details: VerdictDetails = {
        "measured": {"batches": len(batches), "sent_again": len(again)},
        "expected": {"batches": "1 at least", "sent_again": "0"},
        "series": _series(case, again or batches),
    }
    if not batches:
        return case.inconclusive("no batch failed for good", runs_needed=1, **details)
    if again:
        return case.deviates(f"sends {len(again)} of {len(batches)} batches again that failed for good", **details)
    return case.passes(f"sends none of {len(batches)} batches again that failed for good", **details)


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-91/1": _ends_in_time,
    "KIP-91/4": _mute,
    "KIP-91/5": _leaves_connection,
    "KIP-91/6": _ignores_late_answer,
    "KIP-91/7": _one_in_flight,
    "KIP-91/9": _refuses_configuration,
    "KIP-91/12": _counts_retries,
    "KIP-91/14": _goes_on,
    "KIP-91/15": _fails_for_good,
}
