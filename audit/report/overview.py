"""The overview of one client: a sentence, deviations, passes, and one line each about what was not decided."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sluice.audit.judge.model.verdict import MeasuredBackoff, State, SubjectResult, Verdict

from .size import size_of
from .words import DEVIATIONS, fit_words, in_order, style_of

_MOST_SETTINGS = 6
_NO_WAIT_MS = 1.0
_SCOPES = {"connect": "broker", "produce": "partition"}


class Overview(NamedTuple):
    """The parts of an overview.

    deviations: from the worst kind on, and within a kind from the largest
    undecided_line, unseen_line: the numbers of these verdicts with reasons; "" without any
    """

    sentence: str
    deviations: list[Verdict]
    passes: list[Verdict]
    undecided: list[Verdict]
    undecided_line: str
    unseen: list[Verdict]
    unseen_line: str


def overview(result: SubjectResult) -> Overview:
    by_state = {state: _ordered(each for each in result.verdicts if each.state is state) for state in State}
    deviations = sorted(
        by_state[State.DEVIATES], key=lambda verdict: (DEVIATIONS.index(style_of(verdict)), -size_of(verdict))
    )
    undecided, unseen = by_state[State.INCONCLUSIVE], by_state[State.NOT_OBSERVABLE]
    return Overview(
        _sentence(result, deviations, by_state[State.PASS]),
        deviations,
        by_state[State.PASS],
        undecided,
        _undecided_line(undecided),
        unseen,
        _unseen_line(unseen),
    )


def _ordered(verdicts: Iterable[Verdict]) -> list[Verdict]:
    by_statement = {verdict.statement: verdict for verdict in verdicts}
    return [by_statement[statement] for statement in in_order(by_statement)]


def _sentence(result: SubjectResult, deviations: Sequence[Verdict], passes: Sequence[Verdict]) -> str:
    decided = len(deviations) + len(passes)
    if not decided:
        return "No statement was decided."
    findings = f", with {_counted(len(result.findings), 'other finding')}" if result.findings else ""
    rest = len(result.verdicts) - decided
    undecided = f"; {rest} {'is' if rest == 1 else 'are'} not decided" if rest else ""
    if not deviations:
        return f"Passes {_counted(decided, 'decided statement')}{findings}{undecided}."
    return f"Deviates from {len(deviations)} of {_counted(decided, 'decided statement')}{findings}{undecided}."


def _undecided_line(undecided: Sequence[Verdict]) -> str:
    if not undecided:
        return ""
    unset = [verdict for verdict in undecided if verdict.missing]
    parts = [f"{_need(len(unset))} {_settings(unset)}"] if unset else []
    more = sum(bool(verdict.runs_needed) for verdict in undecided if not verdict.missing)
    parts += [f"{_need(more)} more runs"] if more else []
    rest = len(undecided) - len(unset) - more
    parts += [f"{rest} for other reasons"] if rest else []
    return f"{len(undecided)} inconclusive: {'; '.join(parts)}"


def _need(count: int) -> str:
    return f"{count} needs" if count == 1 else f"{count} need"


def _settings(verdicts: Sequence[Verdict]) -> str:
    names = Counter(name for verdict in verdicts for name in verdict.missing)
    shown = [name for name, _ in names.most_common(_MOST_SETTINGS)]
    return "--setting " + ", ".join(shown) + (", ..." if len(names) > len(shown) else "")


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
