"""The check of `broker.assert_backoff`: the audit's judge compares a client's backoff with a KIP.

A broker does not know the client's configuration, so settings that the test omits have Kafka's defaults.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sluice.audit.judge import judge_sequence
from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.judge.observer import sequences
from sluice.errors import ArgumentError
from sluice.journal_events import AnyEvent, ClientEvent
from sluice.text.error_text import one_of

DEFAULTS: dict[int, dict[str, float]] = {
    580: {"retry.backoff.ms": 100, "retry.backoff.max.ms": 1000},
    144: {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000},
}
_ATTEMPTS_SHOWN = 12


class Backoffs(NamedTuple):
    expected: str
    judged: list[tuple[AttemptSequence, Verdict]]

    @property
    def passed(self) -> list[Verdict]:
        """The certain verdicts; empty if any sequence deviates."""
        verdicts = [verdict for _, verdict in self.judged]
        if any(verdict.state is State.DEVIATES for verdict in verdicts):
            return []
        return [verdict for verdict in verdicts if verdict.state is State.PASS]

    def describe(self) -> str:
        """Return expectation, observations and decisive attempts, in lines."""
        count = [each for each in self.judged if each[1].state is State.DEVIATES] or self.judged
        lines = [f"expected: {self.expected}"]
        if not count:
            return "\n".join([*lines, "observed: no retries"])
        for sequence, verdict in count:
            lines += [f"observed: {sequence.kind} {sequence.key} {verdict.state}: {verdict.why}", *_attempts(sequence)]
        return "\n".join(lines)


def backoffs(events: Sequence[AnyEvent], client_id: str, kip: int, settings: Mapping[str, float]) -> Backoffs:
    """Judge a client's backoff; raise ArgumentError for any KIP but 580 and 144."""
    if kip not in DEFAULTS:
        raise ArgumentError(f"kip: {one_of(map(str, DEFAULTS), str(kip))}")
    known = DEFAULTS[kip] | dict(settings)
    tried = [one for one in sequences(_of(client_id, events)) if len(one.attempts) > 1]
    found = [one for one in tried if _is_about(one, kip, client_id)]
    text = ", ".join(f"{name}={value:g}" for name, value in known.items())
    expected = f"client {client_id} backs off as KIP-{kip} specifies, with {text}"
    return Backoffs(expected, [(one, judge_sequence(one, known)) for one in found])


def _of(client_id: str, events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Return the client's events, and those of connections that ended before they sent a client id."""
    sent = [event for event in events if isinstance(event, ClientEvent)]
    others = {event.connection for event in sent if event.client_id not in ("", client_id)}
    return [event for event in sent if event.connection not in others]


def _is_about(sequence: AttemptSequence, kip: int, client_id: str) -> bool:
    if sequence.kind is not Kind.CONNECT:
        return kip == 580
    return kip == 144 and sequence.key.startswith(f"{client_id} to broker ")


def _attempts(sequence: AttemptSequence) -> list[str]:
    waits = [0.0, *sequence.gaps_ms()]
    lines = []
    for attempt, waited_ms in list(zip(sequence.attempts, waits, strict=True))[:_ATTEMPTS_SHOWN]:
        at = datetime.fromtimestamp(attempt.at_ns // 1000 / 1e6, UTC).strftime("%H:%M:%S.%f")
        codes = f" {', '.join(map(str, attempt.error_codes))}" if attempt.error_codes else ""
        where = f"broker {attempt.broker} #{attempt.connection}"
        lines.append(f"  {at} after {waited_ms:.1f} ms, {where}: {attempt.outcome}{codes}")
    left_off = len(sequence.attempts) - _ATTEMPTS_SHOWN
    return [*lines, f"  ... {left_off} later"] if left_off > 0 else lines
