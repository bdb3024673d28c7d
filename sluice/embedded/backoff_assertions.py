"""How a client of a test backs off, held against a KIP: what `broker.assert_backoff` asks the audit's judge.

KIP-580 is about requests that are sent again, KIP-144 about connections. The client's configuration is not known to a
broker: what a test does not say is taken to be Kafka's default.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sluice.audit.judge import judge_sequence
from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.judge.observer import sequences
from sluice.journal_events import AnyEvent, ClientEvent

DEFAULTS: dict[int, dict[str, float]] = {
    580: {"retry.backoff.ms": 100, "retry.backoff.max.ms": 1000},
    144: {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000},
}
_ATTEMPTS_SHOWN = 12


class Backoffs(NamedTuple):
    """Rows of attempts of a client, and what the judge says of each."""

    expected: str
    judged: list[tuple[AttemptSequence, Verdict]]

    @property
    def passed(self) -> list[Verdict]:
        """The verdicts, if none of them deviates and one at least is certain; else empty."""
        verdicts = [verdict for _, verdict in self.judged]
        if any(verdict.state is State.DEVIATES for verdict in verdicts):
            return []
        return [verdict for verdict in verdicts if verdict.state is State.PASS]

    def describe(self) -> str:
        """What was expected, what was seen, and the attempts that count, in lines."""
        count = [each for each in self.judged if each[1].state is State.DEVIATES] or self.judged
        lines = [f"wanted: {self.expected}"]
        if not count:
            return "\n".join([*lines, "seen: nothing was tried again"])
        for sequence, verdict in count:
            lines += [f"seen: {sequence.kind} {sequence.key} {verdict.state}: {verdict.why}", *_attempts(sequence)]
        return "\n".join(lines)


def backoffs(events: Sequence[AnyEvent], client_id: str, kip: int, settings: Mapping[str, float]) -> Backoffs:
    """How a client has backed off, as far as these events tell. Raises ValueError for a KIP that is about neither."""
    if kip not in DEFAULTS:
        raise ValueError(f"kip={kip}: must be one of {', '.join(map(str, DEFAULTS))}")
    known = DEFAULTS[kip] | dict(settings)
    tried = [one for one in sequences(_of(client_id, events)) if len(one.attempts) > 1]
    found = [one for one in tried if _is_about(one, kip, client_id)]
    text = ", ".join(f"{name}={value:g}" for name, value in known.items())
    expected = f"client {client_id} backs off as KIP-{kip} says, with {text}"
    return Backoffs(expected, [(one, judge_sequence(one, known)) for one in found])


def _of(client_id: str, events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """The events of its connections, and of those that were gone before they had said whose they were."""
    told = [event for event in events if isinstance(event, ClientEvent)]
    others = {event.connection for event in told if event.client_id not in ("", client_id)}
    return [event for event in told if event.connection not in others]


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
