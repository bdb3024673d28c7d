"""Verdicts on one client that exclude each other: at least one is wrong, so both become inconclusive.

Only verdicts on one probe are compared, except on the first wait before a retry, which is the same for all errors.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from sluice.audit.judge.model.verdict import Fit, State, Verdict

from .fit import CONSTANT

_PASS, _DEVIATES = State.PASS, State.DEVIATES
_SECOND_MS = 1000.0
_FAR = 2.0
_JITTER, _RESIDUAL = 0.15, 0.1
_UNANSWERED = "produce-mute"  # requests of this probe wait for request.timeout.ms before the backoff


class _Pair(NamedTuple):
    """`contradiction` returns why both cannot hold, or ""."""

    first: str
    second: str
    contradiction: Callable[[Verdict, Verdict], str]


def consistent(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, with those that contradict each other as inconclusive."""
    by_statement = {verdict.statement: verdict for verdict in verdicts}
    refuted: dict[str, str] = {}
    for first, second, contradiction in _PAIRS:
        one, other = by_statement.get(first), by_statement.get(second)
        if one is None or other is None:
            continue
        why = contradiction(one, other)
        if why:
            refuted.setdefault(first, f"contradicts {second}: {why}")
            refuted.setdefault(second, f"contradicts {first}: {why}")
    return [
        verdict
        if verdict.statement not in refuted
        else msgspec.structs.replace(
            verdict, state=State.INCONCLUSIVE, sort=None, why=refuted[verdict.statement], runs_needed=1
        )
        for verdict in verdicts
    ]


def _states(one_state: State, other_state: State) -> Callable[[Verdict, Verdict], str]:
    def contradiction(one: Verdict, other: Verdict) -> str:
        is_same = one.probe == other.probe and (one.state, other.state) == (one_state, other_state)
        return f"{one.why}, but {other.why}" if is_same else ""

    return contradiction


def _sends(growth: Verdict, sends: Verdict) -> str:
    fit, sent = _constant(growth), sends.measured.get("sends")
    if fit is None or growth.probe != sends.probe or not isinstance(sent, int | float):
        return ""
    most = 1 + _SECOND_MS / (fit.base_ms * (1 - fit.jitter))
    return f"waits of {fit.base_ms:.0f} ms, but {sent:g} attempts in one second" if sent > _FAR * most else ""


def _grown(growth: Verdict, cap: Verdict) -> str:
    return _other_wait(growth, cap, "median_ms") if growth.probe == cap.probe else ""


def _first(growth: Verdict, reset: Verdict) -> str:
    return _other_wait(growth, reset, "first_wait_ms") if growth.probe != _UNANSWERED else ""


def _other_wait(growth: Verdict, other: Verdict, name: str) -> str:
    fit, waited_ms = _constant(growth), other.measured.get(name)
    decided = other.state in (_PASS, _DEVIATES)
    if fit is None or not decided or not isinstance(waited_ms, int | float):
        return ""
    is_far = not fit.base_ms / _FAR <= waited_ms <= _FAR * fit.base_ms
    return f"waits of {fit.base_ms:.0f} ms each time, but also of {waited_ms:.0f} ms" if is_far else ""


def _constant(growth: Verdict) -> Fit | None:
    fit = growth.fit
    return fit if growth.state is _DEVIATES and fit is not None and fit.model == CONSTANT else None


def _no_jitter(jitter: Verdict, growth: Verdict) -> str:
    fit = growth.fit
    is_same = jitter.probe == growth.probe and jitter.state is _DEVIATES and "without jitter" in jitter.why
    if not is_same or fit is None or fit.jitter < _JITTER or fit.residual < _RESIDUAL:
        return ""
    return f"no jitter, but waits that differ by ± {fit.jitter:.0%}"


_PAIRS = (
    _Pair("KIP-580/1", "KIP-580/17", _states(_PASS, _DEVIATES)),
    _Pair("KIP-580/1", "KIP-580/2", _states(_PASS, _DEVIATES)),
    _Pair("KIP-580/1", "KIP-580/18", _states(_PASS, _PASS)),
    _Pair("KIP-580/1", "KIP-580/17", _sends),
    _Pair("KIP-580/1", "KIP-580/2", _grown),
    _Pair("KIP-580/1", "KIP-580/6", _first),
    _Pair("KIP-580/16", "KIP-580/1", _no_jitter),
    _Pair("KIP-144/1", "KIP-144/4", _states(_PASS, _DEVIATES)),
    _Pair("KIP-144/3", "KIP-144/5", _states(_PASS, _DEVIATES)),
    _Pair("KIP-144/9", "KIP-144/1", _no_jitter),
    _Pair("KIP-91/1", "KIP-91/14", _states(_DEVIATES, _DEVIATES)),
)
