"""What a plan finds out about one client on one broker: what each candidate does to it, and the smallest quota that is
enough. Pure, so that one process and a cluster of them say the same.
"""

from collections.abc import Iterator, Sequence
from math import ceil, sqrt
from typing import NamedTuple

from sluice.pipeline.charges.charges import By, Client, Requests, requests_of
from sluice.quotas.manager import QuotaConfig

from .replay import Candidate, Loop, Outcome, replay

_PRECISION = 1.01  # a need is found to 1 %


class Limits(NamedTuple):
    """What a client is to be spared, by the quota that is recommended for it."""

    delay_p99_ms: int  # of all answers
    throttled_share: float  # of all answers

    def spare(self, outcome: Outcome) -> bool:
        """Whether they hold."""
        return (
            outcome.delay_p99_ms <= self.delay_p99_ms
            and outcome.throttled_share <= self.throttled_share
            and not outcome.starved
        )


class Settings(NamedTuple):
    """What is asked."""

    quotas: tuple[float, ...]  # bytes/s to try
    profiles: tuple[str, ...]
    loops: tuple[Loop, ...]
    by: By
    limits: Limits | None  # None: nothing is to be recommended
    windows: QuotaConfig = QuotaConfig()

    @property
    def candidates(self) -> list[Candidate]:
        return [
            Candidate(quota, profile, loop) for profile in self.profiles for loop in self.loops for quota in self.quotas
        ]


class Finding(NamedTuple):
    """What one candidate does to one client on one broker."""

    client: Client
    candidate: Candidate
    outcome: Outcome


class Effect:
    """What one candidate does to all clients of one kind."""

    def __init__(self) -> None:
        self.clients: set[int] = set()  # by number, as there may be 100,000 of them in each of many candidates
        self.throttled_clients: set[int] = set()
        self.beyond_limits: set[int] = set()
        self.answers = self.throttled = 0
        self.worst_delay_p99_ms = self.worst_added_p99_ms = 0
        self.lost_rate = 0.0  # bytes/s that clients move less than they did

    def add(self, number: int, finding: Finding, limits: Limits | None) -> None:
        outcome = finding.outcome
        self.clients.add(number)
        if outcome.throttled:
            self.throttled_clients.add(number)
        if limits is not None and not limits.spare(outcome):
            self.beyond_limits.add(number)
        self.answers += outcome.answers
        self.throttled += outcome.throttled
        self.worst_delay_p99_ms = max(self.worst_delay_p99_ms, outcome.delay_p99_ms)
        self.worst_added_p99_ms = max(self.worst_added_p99_ms, outcome.added_p99_ms)
        self.lost_rate += max(0.0, outcome.offered_rate - outcome.achieved_rate)


def tried(client: Client, parts: Sequence[bytes], settings: Settings) -> Iterator[Finding]:
    """What the candidates do; nothing, for a client that was served nothing."""
    for loop in settings.loops:
        requests = requests_of(parts, undelayed=loop == "closed")
        if requests is not None:
            for candidate in settings.candidates:
                if candidate.loop == loop:
                    yield Finding(client, candidate, replay(client, requests, candidate, settings.windows))


def needed(client: Client, parts: Sequence[bytes], settings: Settings) -> Finding | None:
    """The smallest quota that spares the client, under the first profile and loop; None where nothing was served."""
    if settings.limits is None:
        return None
    requests = requests_of(parts, undelayed=settings.loops[0] == "closed")
    if requests is None:
        return None
    return _Search(client, requests, settings, settings.limits).run()


class _Search:
    """Looks between a quota that spares and one that does not: the gap is narrowed to `_PRECISION`.

    A client is the better off the larger its quota, but for a few requests that fall into another sample: what is found
    was replayed and does spare, though here and there a smaller one may as well.
    """

    def __init__(self, client: Client, requests: Requests, settings: Settings, limits: Limits) -> None:
        self._client, self._requests = client, requests
        self._profile, self._loop, self._windows = settings.profiles[0], settings.loops[0], settings.windows
        self._limits = limits

    def run(self) -> Finding:
        requests = self._requests
        seconds = max(1.0, (requests.at_ns[-1] - requests.at_ns[0]) / 1e9)
        quota, too_small = readable(requests.totals[-1] / seconds), 0
        found = self._try(quota)
        while not self._limits.spare(found.outcome):
            too_small, quota = quota, readable(quota * 2)
            found = self._try(quota)
        while not too_small and quota > 1:
            found, quota, too_small = self._narrow(readable(quota / 2), found, too_small)
        while (middle := readable(sqrt(too_small * quota))) < quota and quota > too_small * _PRECISION:
            found, quota, too_small = self._narrow(middle, found, too_small)
        return found

    def _narrow(self, quota: int, found: Finding, too_small: int) -> tuple[Finding, int, int]:
        """What spares, how much that is and what does not, after a look at one in between."""
        tried = self._try(quota)
        if self._limits.spare(tried.outcome):
            return tried, quota, too_small
        return found, int(found.candidate.quota), quota

    def _try(self, quota: int) -> Finding:
        candidate = Candidate(float(quota), self._profile, self._loop)
        return Finding(self._client, candidate, replay(self._client, self._requests, candidate, self._windows))


def readable(quota: float) -> int:
    """The next number from there up of three digits and zeros: a quota that people can say."""
    whole = max(1, ceil(quota))
    unit = int(10 ** max(0, len(str(whole)) - 3))
    return -(-whole // unit) * unit
