"""The demand of one client on one broker, and how well its log shows it.

By batch means: the client's time is cut into ten parts, whose spread gives the 95 % confidence interval of the rate.
With 100 kB/s on average and a standard deviation of 30 kB/s between the parts, it is ± 2.26 * 30 / sqrt(10) = 21 kB/s:
an uncertainty of 21 %. A part must be at least a quota window long. The largest pause between two requests is added,
as a share of the client's time: with ten bursts in nine intervals the rate is 11 % too high, and the spread may be 0.

A throttled client sends less than it would without a quota, but it is not known how much less: its own pause may pass
during the throttle time, and data may queue up in it, or be dropped. Its demand is at least what it sent.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from sluice.quotas.manager import QuotaConfig
from sluice.spark.charges.charges import Client, recorded, requests_of

WINDOWS = 10
_T = 2.262  # Student's t for 95 % with nine degrees of freedom
_KNOWN = 0.07  # the largest uncertainty of a known demand, which is then within 10 % with 99 % confidence (t is 3.25)
_IRREGULAR = 1.0  # above this, a mean is no prediction
_LEAST_SPAN_MS = 1000.0
_NS_PER_MS = 1_000_000

# known, uncertain: a mean with its uncertainty. The others: a lower bound.
Confidence = Literal["throttled", "incomplete", "irregular", "brief", "uncertain", "known"]
KNOWN: tuple[Confidence, ...] = ("known", "uncertain")


class Demand(NamedTuple):
    """The traffic of a client on one broker, as recorded."""

    client: Client
    requests: int
    bytes: int
    began_ms: int  # time of the first request, since the epoch
    ended_ms: int
    was_throttled: bool
    abandoned_bytes: int
    rate: float
    uncertainty: float  # of the rate, as a share of it

    @property
    def name(self) -> tuple[str, str]:
        return self.client.user, self.client.client_id

    def confidence(self, least_ms: float) -> Confidence:
        """Return how well these requests show the demand, if the log is complete and was not written under a quota."""
        if self.ended_ms - self.began_ms < least_ms:
            return "brief"
        if self.uncertainty > _IRREGULAR:
            return "irregular"
        return "uncertain" if self.uncertainty > _KNOWN else "known"


class Stated(NamedTuple):
    """What a log shows of a demand."""

    confidence: Confidence
    rate: float  # the mean, or a lower bound of it
    uncertainty: float

    @property
    def is_known(self) -> bool:
        return self.confidence in KNOWN


def least_ms(windows: QuotaConfig) -> float:
    return float(WINDOWS * windows.num_samples * windows.window_ms)


def measure_demand(client: Client, parts: Sequence[bytes]) -> Demand | None:
    """Return the demand; None without served requests."""
    requests = requests_of(parts)
    if requests is None:
        return None
    at_ns, value = np.asarray(requests.at_ns, np.int64), np.asarray(requests.value, np.float64)
    span_ns, seen = int(at_ns[-1] - at_ns[0]), recorded(parts)
    total = requests.totals[-1]
    uncertainty = 1.0
    if span_ns and total:
        part = np.minimum((at_ns - at_ns[0]) * WINDOWS // (span_ns + 1), WINDOWS - 1)
        sums = np.bincount(part, value, WINDOWS)
        uncertainty = float(_T * sums.std(ddof=1) / WINDOWS**0.5 / sums.mean() + np.diff(at_ns).max() / span_ns)
    return Demand(
        client,
        len(requests),
        total,
        seen.began_ns // _NS_PER_MS,
        seen.ended_ns // _NS_PER_MS,
        seen.was_throttled,
        seen.abandoned_bytes,
        total / max(span_ns / _NS_PER_MS, _LEAST_SPAN_MS) * 1e3,
        uncertainty,
    )


def state(demands: Sequence[Demand], least_ms: float, *, is_partial: bool) -> dict[Client, Stated]:
    """Return what a log shows of each demand; one seen for less than `least_ms` was seen too briefly.

    A client that one broker throttled may send less to all brokers. If a producer was throttled, consumers may have
    received less.
    """
    log_s = log_seconds(demands)
    throttled = {demand.name for demand in demands if demand.was_throttled}
    producers_were = any(demand.was_throttled and demand.client.kind == "Produce" for demand in demands)
    found = {}
    for demand in demands:
        client, rate = demand.client, demand.rate
        is_throttled = demand.name in throttled or (producers_were and client.kind == "Fetch")
        confidence = "throttled" if is_throttled else "incomplete" if is_partial else demand.confidence(least_ms)
        if confidence not in KNOWN:
            sent = demand.bytes - demand.abandoned_bytes
            rate = sent / max(log_s, _LEAST_SPAN_MS / 1000) * max(0.0, 1 - demand.uncertainty)
        found[client] = Stated(confidence, rate, demand.uncertainty)
    return found


def log_seconds(demands: Sequence[Demand]) -> float:
    if not demands:
        return 0.0
    return (max(each.ended_ms for each in demands) - min(each.began_ms for each in demands)) / 1000
