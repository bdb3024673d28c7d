"""KIP-13 and KIP-219: a client that is told a throttle time sends nothing on that connection until it is over.

Only versions count whose clients wait by themselves (Api.client_throttles), and requests that were on their
way are none that came too early.
"""

from collections.abc import Callable
from statistics import median

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.model.verdict import Verdict
from sluice.audit.judge.observer.throttles import ThrottledSpan, throttled_spans

# Clocks on both sides are cut to milliseconds.
_EARLY_MS = 2.0
_SLACK_MS = 10.0
_SURELY = 2
_LEAST = 2


def _obeys(case: Case) -> Verdict:
    shortest_ms = min((span.throttle_time_ms for span in _spans(case)), default=0)
    prompt = case.prompt(shortest_ms / 2)
    if isinstance(prompt, Verdict):
        return prompt
    spans = _spans(prompt)
    ignored = [span for span in spans if span.early_ms]
    followed = [span for span in spans if span.early_ms or span.next_ms is not None]
    early = sum(len(span.early_ms) for span in spans)
    details: VerdictDetails = {
        "measured": {"throttles": len(spans), "followed": len(followed), "ignored": len(ignored), "early": early},
        "expected": {"throttles": f"{_LEAST} at least", "ignored": "0", "early": "0"},
    }
    if early >= _SURELY:
        first = ignored[0]
        return prompt.deviates(
            f"sends {early} requests too early: one {first.early_ms[0]:.0f} ms after {first.api} told it to wait "
            f"{first.throttle_time_ms} ms",
            **details,
        )
    if not spans:
        return prompt.inconclusive(
            "no answer told a throttle time in a version whose clients wait by themselves", runs_needed=1, **details
        )
    if early or len(followed) < _LEAST:
        return prompt.inconclusive(
            f"{len(followed)} throttles were followed by a request, which are too few",
            runs_needed=prompt.runs,
            **details,
        )
    late_ms = median(span.next_ms - span.throttle_time_ms for span in followed if span.next_ms is not None)
    return prompt.passes(f"waits through {len(followed)} throttles, and {late_ms:.0f} ms more", **details)


def _spans(case: Case) -> list[ThrottledSpan]:
    return [
        span
        for each in case.observations
        for span in throttled_spans(each.events, slack_ms=_SLACK_MS + each.lag_ms, early_ms=_EARLY_MS)
    ]


RULES: dict[str, Callable[[Case], Verdict]] = {"KIP-13/20": _obeys}
