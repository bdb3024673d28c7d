"""KIP-13 and KIP-219: a client sends nothing on a connection until the throttle time of a response has passed.

Only API versions whose clients enforce throttles are judged (Api.client_throttles).
"""

from collections.abc import Callable
from statistics import median

from sluice.audit.judge.case import Case, VerdictDetails
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Verdict
from sluice.audit.judge.observer.throttles import ThrottledSpan, throttled_spans

# Both clocks are truncated to milliseconds.
_EARLY_MS = 2.0
_SLACK_MS = 25.0  # of a client on a busy machine
_SURELY = 2
_LEAST = 2


def _obeys(case: Case) -> Verdict:
    shortest_ms = min((span.throttle_time_ms for run in case.observations for span in _spans_of(run)), default=0)
    kept = case.without_lagging_runs(shortest_ms / 2)
    if isinstance(kept, Verdict):
        return kept
    by_run = [_spans_of(each) for each in kept.observations]
    spans = [span for of_run in by_run for span in of_run]
    ignored = [span for span in spans if span.early_ms]
    followed = [span for span in spans if span.early_ms or span.next_ms is not None]
    early = sum(len(span.early_ms) for span in spans)
    details: VerdictDetails = {
        "measured": {"throttles": len(spans), "followed": len(followed), "ignored": len(ignored), "early": early},
        "expected": {"throttles": f"at least {_LEAST}", "ignored": "0", "early": "0"},
    }
    if early >= _SURELY:
        first = ignored[0]
        run = next(number for number, of_run in enumerate(by_run) if first in of_run)
        return kept.deviates(
            f"sends {early} requests during a throttle, such as one {first.early_ms[0]:.0f} ms after a {first.api} "
            f"response with throttle_time_ms={first.throttle_time_ms}",
            where=f"run {kept.observations[run].repetition + 1}, connection {first.connection}",
            **details,
        )
    if not spans:
        return kept.inconclusive(
            "no response had a throttle_time_ms in a version whose clients enforce it", runs_needed=1, **details
        )
    if early or len(followed) < _LEAST:
        return kept.inconclusive(
            f"{len(followed)} throttles were followed by a request, {early} requests were early; expected at least "
            f"{_LEAST} throttles and no early request",
            runs_needed=kept.runs,
            **details,
        )
    late_ms = median(span.next_ms - span.throttle_time_ms for span in followed if span.next_ms is not None)
    return kept.passes(
        f"waits through {len(followed)} throttles; the next request follows {late_ms:.0f} ms later (median)", **details
    )


def _spans_of(run: Observation) -> list[ThrottledSpan]:
    return throttled_spans(
        run.events, slack_ms=_SLACK_MS + run.lag_ms, early_ms=_EARLY_MS, fault_until_ns=run.fault_until_ns
    )


RULES: dict[str, Callable[[Case], Verdict]] = {"KIP-13/20": _obeys}
