"""The demand of one client on one broker, and how well its log shows it.

By batch means: the client's time is cut into ten parts, whose spread gives the 95 % confidence interval of the rate.
With 100 kB/s on average and a standard deviation of 30 kB/s between the parts, it is ± 2.26 * 30 / sqrt(10) = 21 kB/s:
an uncertainty of 21 %. A part must be at least a quota window long.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from sluice.pipeline.charges.charges import Client, recorded, requests_of
from sluice.quotas.manager import QuotaConfig

from .replay import Loop

WINDOWS = 10
_T = 2.262  # Student's t for 95 % with nine degrees of freedom
_KNOWN = 0.1  # the largest uncertainty of a known demand
_IRREGULAR = 1.0  # above this, a mean is no prediction
_LEAST_SPAN_MS = 1000.0
_NS_PER_MS = 1_000_000

# known, uncertain: a mean with its uncertainty. throttled, brief, irregular: a lower bound.
Confidence = Literal["known", "uncertain", "throttled", "brief", "irregular"]


class Demand(NamedTuple):
    client: Client
    requests: int
    bytes: int
    began_ms: int  # time of the first request, since the epoch
    ended_ms: int
    throttled: int
    rate: float
    uncertainty: float  # half of the confidence interval, as a share of the rate

    def confidence(self, least_ms: float) -> Confidence:
        if self.throttled:
            return "throttled"
        if self.ended_ms - self.began_ms < least_ms:
            return "brief"
        if self.uncertainty > _IRREGULAR:
            return "irregular"
        return "uncertain" if self.uncertainty > _KNOWN else "known"


def least_ms(windows: QuotaConfig) -> float:
    return float(WINDOWS * windows.num_samples * windows.window_ms)


def measure_demand(client: Client, parts: Sequence[bytes], loop: Loop) -> Demand | None:
    """Return the demand, in the closed loop without recorded throttle times; None without served requests."""
    requests = requests_of(parts, undelayed=loop == "closed")
    if requests is None:
        return None
    at_ns, value = np.asarray(requests.at_ns, np.int64), np.asarray(requests.value, np.float64)
    span_ns, seen = int(at_ns[-1] - at_ns[0]), recorded(parts)
    total = requests.totals[-1]
    uncertainty = 0.0
    if span_ns and total:
        part = np.minimum((at_ns - at_ns[0]) * WINDOWS // (span_ns + 1), WINDOWS - 1)
        sums = np.bincount(part, value, WINDOWS)
        uncertainty = float(_T * sums.std(ddof=1) / WINDOWS**0.5 / sums.mean())
    return Demand(
        client,
        len(requests),
        total,
        seen.began_ns // _NS_PER_MS,
        seen.ended_ns // _NS_PER_MS,
        seen.throttled,
        total / max(span_ns / _NS_PER_MS, _LEAST_SPAN_MS) * 1e3,
        uncertainty,
    )
