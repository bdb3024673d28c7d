"""The analysis of one client on one broker: the effect of each candidate, and the smallest sufficient quota.

Pure, so that both engines return the same results.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import NamedTuple

from sluice.quotas.manager import QuotaConfig
from sluice.spark.charges.charges import By, Client, Requests, requests_of
from sluice.spark.splits import Split

from .demand import least_ms
from .replay import Candidate, Loop, Outcome, replay

_PRECISION = 1.01  # of a required quota: 1 %


class Limits(NamedTuple):
    """The most throttling of a client that a recommended quota may cause."""

    delay_p99_ms: int  # of all responses
    throttled_share: float  # of all responses

    def are_met(self, outcome: Outcome) -> bool:
        """Return whether the outcome is within the limits and no fetch starved."""
        return (
            outcome.delay_p99_ms <= self.delay_p99_ms
            and outcome.throttled_share <= self.throttled_share
            and not outcome.starved
        )


class Settings(NamedTuple):
    quotas: tuple[float, ...]  # candidates, in bytes/s
    profiles: tuple[str, ...]
    loops: tuple[Loop, ...]
    by: By
    limits: Limits | None  # None disables recommendations
    windows: QuotaConfig = QuotaConfig()

    @property
    def candidates(self) -> list[Candidate]:
        return [
            Candidate(quota, profile, loop) for profile in self.profiles for loop in self.loops for quota in self.quotas
        ]


# Arguments: the current step, and the numbers of its finished and of all parts.
OnProgress = Callable[[str, int, int], None]
# One of a plan's two engines: writes the tables of these splits to a folder; returns counts of the input by kind.
Engine = Callable[[Sequence[Split], Settings, Path, OnProgress], Mapping[str, int]]


class Finding(NamedTuple):
    """The effect of one candidate on one client and broker."""

    client: Client
    candidate: Candidate
    outcome: Outcome


class Effect:
    def __init__(self) -> None:
        self.clients: set[int] = set()  # numbers save memory: each of many candidates may have 100,000 clients
        self.throttled_clients: set[int] = set()
        self.beyond_limits: set[int] = set()
        self.answers = self.throttled = 0
        self.worst_delay_p99_ms = self.worst_added_p99_ms = 0
        self.lost_rate = 0.0  # offered minus achieved bytes/s

    def add(self, number: int, finding: Finding, limits: Limits | None) -> None:
        outcome = finding.outcome
        self.clients.add(number)
        if outcome.throttled:
            self.throttled_clients.add(number)
        if limits is not None and not limits.are_met(outcome):
            self.beyond_limits.add(number)
        self.answers += outcome.answers
        self.throttled += outcome.throttled
        self.worst_delay_p99_ms = max(self.worst_delay_p99_ms, outcome.delay_p99_ms)
        self.worst_added_p99_ms = max(self.worst_added_p99_ms, outcome.added_p99_ms)
        self.lost_rate += max(0.0, outcome.offered_rate - outcome.achieved_rate)


def try_candidates(client: Client, parts: Sequence[bytes], settings: Settings) -> Iterator[Finding]:
    """Yield the effect of each candidate; nothing for a client without served requests."""
    requests = requests_of(parts)
    if requests is not None:
        for candidate in settings.candidates:
            yield Finding(client, candidate, replay(client, requests, candidate, settings.windows))


def find_need(client: Client, parts: Sequence[bytes], settings: Settings) -> Finding | None:
    """Return the smallest quota within the limits, under the first profile and loop.

    None without limits or served requests.
    """
    if settings.limits is None:
        return None
    requests = requests_of(parts)
    if requests is None:
        return None
    return _Search(client, requests, settings, settings.limits).run()


class _Search:
    """A bisection between a sufficient and an insufficient quota, to `_PRECISION`.

    A smaller quota may also be sufficient, if requests then fall into another sample. In a log of ten quota windows or
    more, the result is at least the average rate: with less, the client is throttled more and more.
    """

    def __init__(self, client: Client, requests: Requests, settings: Settings, limits: Limits) -> None:
        self._client, self._requests = client, requests
        self._profile, self._loop, self._windows = settings.profiles[0], settings.loops[0], settings.windows
        self._limits = limits

    def run(self) -> Finding:
        requests = self._requests
        seconds = max(1.0, (requests.at_ns[-1] - requests.at_ns[0]) / 1e9)
        quota, too_small = readable(requests.totals[-1] / seconds), 0
        least = quota if seconds * 1000 >= least_ms(self._windows) else 1
        found = self._try(quota)
        while not self._limits.are_met(found.outcome):
            too_small, quota = quota, readable(quota * 2)
            found = self._try(quota)
        if quota == least:
            return found
        while not too_small and quota > 1:
            found, quota, too_small = self._narrow(readable(quota / 2), found, too_small)
        while (middle := readable(sqrt(too_small * quota))) < quota and quota > too_small * _PRECISION:
            found, quota, too_small = self._narrow(middle, found, too_small)
        return found

    def _narrow(self, quota: int, found: Finding, too_small: int) -> tuple[Finding, int, int]:
        between = self._try(quota)
        if self._limits.are_met(between.outcome):
            return between, quota, too_small
        return found, int(found.candidate.quota), quota

    def _try(self, quota: int) -> Finding:
        candidate = Candidate(float(quota), self._profile, self._loop)
        return Finding(self._client, candidate, replay(self._client, self._requests, candidate, self._windows))


def readable(quota: float) -> int:
    whole = max(1, ceil(quota))
    unit = int(10 ** max(0, len(str(whole)) - 3))
    return -(-whole // unit) * unit
