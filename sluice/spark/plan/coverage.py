"""What makes the figures of a plan lower bounds: the first lines of the report and of the command's output."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple, get_args

from sluice.spark.charges.charges import QUARANTINED, USED, Client
from sluice.spark.charges.from_journal import LOST

from .demand import KNOWN, WINDOWS, Confidence, Demand, Stated, log_seconds

_MOST_QUARANTINED = 0.01  # share of the input; above it, the rest does not show the traffic
_FROM_WORST: Sequence[Confidence] = get_args(Confidence)


class Coverage(NamedTuple):
    seconds: float
    least_s: float  # ten quota windows
    clients: int
    throttled: int  # clients with a throttle time in the log
    by_confidence: Mapping[Confidence, int]  # each client by its worst demand
    regular_s: float  # a log of this length is expected to show the mean of each irregular demand
    counts: Mapping[str, int]

    @property
    def is_short(self) -> bool:
        return self.seconds < self.least_s

    @property
    def allows_recommendations(self) -> bool:
        return bool(self.clients) and not (self.is_short or is_partial(self.counts))

    @property
    def advice(self) -> str:
        """Return what to record, so that all demands are known."""
        minutes = ceil(max(self.least_s, self.regular_s) / 60)
        return f"record at least {minutes:,} minutes" + (" without quotas" if self.by_confidence["throttled"] else "")


def is_partial(counts: Mapping[str, int]) -> bool:
    used, bad = counts.get(USED, 0), counts.get(QUARANTINED, 0)
    return bool(counts.get(LOST)) or bad > _MOST_QUARANTINED * (used + bad)


def coverage_of(
    demands: Sequence[Demand], stated: Mapping[Client, Stated], counts: Mapping[str, int], least_ms: float
) -> Coverage:
    worst: dict[tuple[str, str], Confidence] = {}
    regular_s = 0.0
    for demand in demands:
        found = stated[demand.client].confidence
        worst[demand.name] = min(worst.get(demand.name, found), found, key=_FROM_WORST.index)
        if found == "irregular":  # the uncertainty falls with the root of the length
            regular_s = max(regular_s, (demand.ended_ms - demand.began_ms) / 1000 * demand.uncertainty**2)
    return Coverage(
        log_seconds(demands),
        least_ms / 1000,
        len(worst),
        len({demand.name for demand in demands if demand.was_throttled}),
        {each: list(worst.values()).count(each) for each in _FROM_WORST},
        regular_s,
        counts,
    )


def warnings_of(coverage: Coverage) -> list[str]:
    found, clients, counts, by_confidence = [], coverage.clients, coverage.counts, coverage.by_confidence
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
    elif is_partial(counts):
        found.append(
            f"Incomplete log: {counts[QUARANTINED]:,} lines or rows were not understood, {counts.get(USED, 0):,} were. "
            "Demands are lower bounds, and nothing is recommended."
        )
    if throttled := by_confidence["throttled"]:
        consumers = throttled - coverage.throttled
        readers = f" {consumers:,} consumers may have received less, because producers were." if consumers else ""
        found.append(
            f"Written under a quota: the log has throttle times of {coverage.throttled:,} of {clients:,} clients."
            f"{readers} What they would send or fetch without quotas is not known: their demand is at least the given "
            "rate, they have no override, and a quota may affect them more than shown."
        )
    if not coverage.is_short:
        if brief := by_confidence["brief"]:
            found.append(
                f"Seen briefly: {brief:,} of {clients:,} clients sent requests for less than {coverage.least_s:.0f} s. "
                "Their demand is at least the given rate, and they have no override."
            )
        if irregular := by_confidence["irregular"]:
            found.append(
                f"Irregular: the rate of {irregular:,} of {clients:,} clients varies too much for the length of the "
                "log. Their demand is at least the given rate, and they have no override."
            )
    if clients > sum(by_confidence[each] for each in KNOWN):
        found.append(f"To know all demands: {coverage.advice}.")
    return found
