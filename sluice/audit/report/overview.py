"""The overview of one client: its faults, a sentence, passes, and one line each about what was not decided.

The faults begin with what harms a cluster or loses records: findings, merged over probes, and ignored throttles. The
other deviations follow.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from sluice.audit.judge.model.verdict import Finding, FindingKind, MeasuredBackoff, State, SubjectResult, Verdict
from sluice.audit.subjects.clients.java import kafka_defaults

from .words import DEVIATIONS, VerdictStyle, finding_words, fit_words, in_order, place_words, style_of

# From the worst on; those of _FIRST, and deviations from _HARMFUL, precede all other faults.
_FIRST = (FindingKind.LOST, FindingKind.STORM)
_WORST_FIRST = (*_FIRST, FindingKind.DUPLICATE, FindingKind.STALL, FindingKind.FAILED, FindingKind.WRAPPED)
_HARMFUL = frozenset({"KIP-13/20"})
_NO_WAIT_MS = 1.0
_LAG = "lag_ms"  # measured by a verdict that the lag of the broker's timers prevents
_SCOPES = {"connect": "broker", "produce": "partition"}


class Fault(NamedTuple):
    """A finding or a deviation.

    name: of a finding, or the statement
    style: of the verdict; None: a finding
    others: other probes that show it, with the numbers of their findings
    anchor: number of the finding among the client's; -1: a deviation
    """

    name: str
    why: str
    place: str
    others: Sequence[tuple[str, int]] = ()
    style: VerdictStyle | None = None
    anchor: int = -1

    @property
    def place_words(self) -> str:
        return f"{self.place}, and in {_counted(len(self.others), 'other probe')}" if self.others else self.place


class Overview(NamedTuple):
    """The parts of an overview.

    faults: from the worst on
    undecided_line, unseen_line: the numbers of these verdicts with reasons; "" without any
    settings_line: the options that would decide verdicts, with Kafka's defaults as values; "" without any
    """

    sentence: str
    faults: list[Fault]
    passes: list[Verdict]
    undecided: list[Verdict]
    undecided_line: str
    settings_line: str
    unseen: list[Verdict]
    unseen_line: str


def overview(result: SubjectResult) -> Overview:
    by_state = {state: _ordered(each for each in result.verdicts if each.state is state) for state in State}
    deviations = sorted(
        by_state[State.DEVIATES], key=lambda verdict: (DEVIATIONS.index(style_of(verdict)), -size_of(verdict))
    )
    undecided, unseen = by_state[State.INCONCLUSIVE], by_state[State.NOT_OBSERVABLE]
    found = _findings(result.findings)
    throttles = [verdict for verdict in deviations if verdict.statement in _HARMFUL]
    others = [verdict for verdict in deviations if verdict not in throttles]
    first = [fault for kind, fault in found if kind in _FIRST]
    return Overview(
        _sentence(result, [fault for _, fault in found], deviations, by_state[State.PASS]),
        [
            *first,
            *map(_deviation, throttles),
            *(fault for _, fault in found if fault not in first),
            *map(_deviation, others),
        ],
        by_state[State.PASS],
        undecided,
        _undecided_line(undecided),
        _settings_line(undecided),
        unseen,
        _unseen_line(unseen),
    )


def _findings(findings: Sequence[Finding]) -> list[tuple[FindingKind, Fault]]:
    """Return one fault per name, from the worst kind on: the worst finding, and the number of other probes."""
    by_name: dict[str, list[int]] = {}
    for number in sorted(range(len(findings)), key=lambda number: -_weight(findings[number])):
        by_name.setdefault(finding_words(findings[number]), []).append(number)
    faults = []
    for name, numbers in by_name.items():
        worst = findings[numbers[0]]
        others = [(findings[number].probe, number) for number in numbers[1:]]
        faults.append((worst.kind, Fault(name, worst.why, worst.probe, others, anchor=numbers[0])))
    return sorted(faults, key=lambda pair: _WORST_FIRST.index(pair[0]))


def _weight(finding: Finding) -> float:
    return next((value for value in finding.measured.values() if not isinstance(value, str)), 0.0)


def _deviation(verdict: Verdict) -> Fault:
    return Fault(verdict.statement, verdict.why, place_words(verdict), style=style_of(verdict))


def _ordered(verdicts: Iterable[Verdict]) -> list[Verdict]:
    by_statement = {verdict.statement: verdict for verdict in verdicts}
    return [by_statement[statement] for statement in in_order(by_statement)]


def _sentence(
    result: SubjectResult, found: Sequence[Fault], deviations: Sequence[Verdict], passes: Sequence[Verdict]
) -> str:
    names = [fault.name if number == 0 else fault.name.lower() for number, fault in enumerate(found)]
    findings = f"{', '.join(names)}. " if names else ""
    decided = len(deviations) + len(passes)
    if not decided:
        return f"{findings}No statement was decided."
    rest = len(result.verdicts) - decided
    undecided = f"; {rest} {'is' if rest == 1 else 'are'} not decided" if rest else ""
    if not deviations:
        return f"{findings}Passes {_counted(decided, 'decided statement')}{undecided}."
    return f"{findings}Deviates from {len(deviations)} of {_counted(decided, 'decided statement')}{undecided}."


def _undecided_line(undecided: Sequence[Verdict]) -> str:
    if not undecided:
        return ""
    unset = sum(bool(verdict.missing) for verdict in undecided)
    others = [verdict for verdict in undecided if not verdict.missing]
    lagged = sum(_LAG in verdict.measured for verdict in others)
    more = sum(bool(verdict.runs_needed) and _LAG not in verdict.measured for verdict in others)
    rest = len(others) - lagged - more
    parts = [f"{_need(unset)} settings of the client"] if unset else []
    parts += [f"{_need(lagged)} a less busy machine"] if lagged else []
    parts += [f"{_need(more)} more runs"] if more else []
    parts += [f"{rest} for other reasons"] if rest else []
    return f"{len(undecided)} inconclusive: {'; '.join(parts)}"


def _need(count: int) -> str:
    return f"{count} needs" if count == 1 else f"{count} need"


def _settings_line(undecided: Sequence[Verdict]) -> str:
    defaults = kafka_defaults()
    names = sorted({name for verdict in undecided for name in verdict.missing})
    return " ".join(f"--setting {name}={defaults.get(name, '?')}" for name in names)


def _unseen_line(unseen: Sequence[Verdict]) -> str:
    if not unseen:
        return ""
    reasons = Counter(verdict.why for verdict in unseen)
    why, count = reasons.most_common(1)[0]
    return f"{len(unseen)} not observable, such as: {why}" + (f" ({count} times)" if count > 1 else "")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def backoff_words(backoff: MeasuredBackoff) -> str:
    fit = backoff.fit
    is_none = max(fit.base_ms, fit.cap_ms or 0.0) < _NO_WAIT_MS
    parts = ["no wait" if is_none else fit_words(fit)]
    if backoff.reset is not None:
        parts.append("restarts after a success" if backoff.reset else "does not restart after a success")
    if backoff.is_shared is not None:
        scope = _SCOPES.get(backoff.kind, "operation")
        parts.append(f"one counter for every {scope}" if backoff.is_shared else f"counted per {scope}")
    return ", ".join(parts)


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LEAST = 1e-3  # of a value that should not be zero


def size_of(verdict: Verdict) -> float:
    """Return the largest factor by which a value is too small or too large; at least 1."""
    factors = [
        _factor(float(value), verdict.expected[name])
        for name, value in verdict.measured.items()
        if name in verdict.expected and not isinstance(value, str)
    ]
    return max(factors, default=1.0)


def _factor(value: float, expected: str) -> float:
    """Return the factor to the nearest value of a range, such as `80 to 120 ms`, `at most 4` or `0`; 1 within it."""
    low, high = _range(expected)
    if value < low:
        return low / max(value, _LEAST * low)
    return value / high if value > high > 0 else 1.0


def _range(expected: str) -> tuple[float, float]:
    numbers = [float(each) for each in _NUMBER.findall(expected)]
    if not numbers:
        return 0.0, inf
    if expected.startswith(("at most", "below")):
        return 0.0, numbers[0]
    return numbers[0], inf if expected.startswith("at least") else numbers[-1]
