"""What makes the figures of a plan lower bounds: the first lines of the report and of the command's output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sluice.pipeline.charges.charges import QUARANTINED, USED
from sluice.pipeline.charges.from_journal import LOST

from .demand import WINDOWS, Confidence, Demand

_MOST_QUARANTINED = 0.01  # share of the input; above it, the rest does not show the traffic


class Coverage(NamedTuple):
    seconds: float
    least_s: float  # ten quota windows
    clients: int
    by_confidence: Mapping[Confidence, int]
    counts: Mapping[str, int]

    @property
    def is_short(self) -> bool:
        return self.seconds < self.least_s

    @property
    def is_partial(self) -> bool:
        used, bad = self.counts.get(USED, 0), self.counts.get(QUARANTINED, 0)
        return bool(self.counts.get(LOST)) or bad > _MOST_QUARANTINED * (used + bad)

    @property
    def allows_recommendations(self) -> bool:
        return bool(self.clients) and not (self.is_short or self.is_partial)


def coverage_of(demands: Iterable[Demand], counts: Mapping[str, int], least_ms: float) -> Coverage:
    worst: dict[tuple[str, str], Confidence] = {}
    began_ms, ended_ms = [], []
    for demand in demands:
        began_ms.append(demand.began_ms)
        ended_ms.append(demand.ended_ms)
        key, found = (demand.client.user, demand.client.client_id), demand.confidence(least_ms)
        worst[key] = min(worst.get(key, found), found, key=_FROM_WORST.index)
    seconds = (max(ended_ms) - min(began_ms)) / 1000 if worst else 0.0
    by_confidence = {each: list(worst.values()).count(each) for each in _FROM_WORST}
    return Coverage(seconds, least_ms / 1000, len(worst), by_confidence, counts)


_FROM_WORST: Sequence[Confidence] = ("throttled", "irregular", "brief", "uncertain", "known")


def warnings_of(coverage: Coverage) -> list[str]:
    found, clients, counts = [], coverage.clients, coverage.counts
    if not clients:
        return ["No traffic: the input has no Produce or Fetch requests with a response. Nothing is recommended."]
    if coverage.is_short:
        found.append(
            f"Short log: {coverage.seconds:.0f} s of traffic; {WINDOWS} quota windows ({coverage.least_s:.0f} s) are "
            "required. Demands are lower bounds, and nothing is recommended."
        )
    if counts.get(LOST):
        found.append(
            f"Incomplete log: the journal lost {counts[LOST]:,} events. Demands are lower bounds, and nothing is "
            "recommended."
        )
    elif coverage.is_partial:
        found.append(
            f"Incomplete log: {counts[QUARANTINED]:,} lines or rows were not understood, {counts.get(USED, 0):,} were. "
            "Demands are lower bounds, and nothing is recommended."
        )
    if throttled := coverage.by_confidence["throttled"]:
        found.append(
            f"Written under a quota: the log has throttle times of {throttled:,} of {clients:,} clients. Their demand "
            "is at least the given rate, and they have no override."
        )
    if not coverage.is_short:
        if brief := coverage.by_confidence["brief"]:
            found.append(
                f"Seen briefly: {brief:,} of {clients:,} clients sent requests for less than {coverage.least_s:.0f} s. "
                "Their demand is at least the given rate, and they have no override."
            )
        if irregular := coverage.by_confidence["irregular"]:
            found.append(
                f"Irregular: the rate of {irregular:,} of {clients:,} clients varies too much for the length of the "
                "log. Their demand is at least what the log shows, and they have no override."
            )
    return found
