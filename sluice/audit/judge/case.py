"""One statement and one client: the runs that are evidence for it, and verdicts made from them."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil
from random import Random  # noqa: TID251  (seeded: the same runs give the same verdict)
from typing import TypedDict, Unpack

import msgspec

from sluice.audit.judge.model.attempts import AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Observation, SubjectInfo
from sluice.audit.judge.model.statements import Statement
from sluice.audit.judge.model.verdict import Fit, Series, Sort, State, Verdict

from .completed_calls import application_pause_ms, split_calls
from .expected import Backoff, Tolerance, longest_lag_ms, number, tolerance
from .fit import fit
from .observer import sequences
from .waits import Track, Wait, longest_tracks, tracks


class Evidence(TypedDict, total=False):
    fit: Fit | None
    series: list[Series]


class VerdictDetails(Evidence, total=False):
    measured: dict[str, float | str]
    expected: dict[str, str]


_NS_PER_MS = 1_000_000
# A single failure without a retry may just be the last event of the run.
_GIVEN_UP = 2

# Rearranges the sequences of a run of a case.
Regroup = Callable[["Case", Sequence[AttemptSequence]], list[AttemptSequence]]

# The failure that each probe causes.
PATHS = {
    "reconnect-closed": "accepted, then closed",
    "reconnect-reset": "accepted, then reset",
    "reconnect-silent": "accepted, never answered",
    "reconnect-after-versions": "dropped after ApiVersions was answered",
    "reconnect-lost": "lost after it worked",
    "reconnect-refused": "refused: nothing listens",
    "reconnect-idle": "closed as idle",
}


class Case:
    """The runs of one probe with one client; runs with a problem are excluded."""

    def __init__(self, statement: Statement, observations: Sequence[Observation]) -> None:
        self.statement = statement
        self.observations = observations

    @property
    def subject(self) -> SubjectInfo:
        return self.observations[0].subject

    @property
    def probe(self) -> str:
        return self.observations[0].probe

    @property
    def runs(self) -> int:
        return len(self.observations)

    @property
    def is_virtual(self) -> bool:
        return all(each.virtual for each in self.observations)

    @cached_property
    def found(self) -> list[list[AttemptSequence]]:
        return [[one for one in of_run if not one.doubt] for of_run in self._sequences]

    @cached_property
    def _sequences(self) -> list[list[AttemptSequence]]:
        return [split_calls(sequences(each.events), each) for each in self.observations]

    def doubt(self, kind: Kind) -> str:
        """Return why most failed sequences of this kind are doubtful and left out; "" if most are not."""
        every = [one for of_run in self._sequences for one in of_run if one.kind is kind]
        failed = [one for one in every if one.attempts[0].outcome is not Outcome.SUCCEEDED]
        doubts = [one.doubt for one in failed or every]
        return max(dict.fromkeys(doubts), key=doubts.count, default="")

    @cached_property
    def lag_ms(self) -> float:
        return max(each.lag_ms for each in self.observations)

    def tolerance(self, base_ms: float) -> Tolerance:
        return tolerance(base_ms, self.lag_ms, virtual=self.is_virtual)

    def without_lagging_runs(self, base_ms: float) -> "Case | Verdict":
        """Drop runs in which the broker lagged too much for waits of `base_ms`."""
        most_ms = longest_lag_ms(base_ms)
        kept = [each for each in self.observations if each.virtual or each.lag_ms <= most_ms]
        if len(kept) == len(self.observations):
            return self
        if kept:
            return Case(self.statement, kept)
        least_ms = min(each.lag_ms for each in self.observations)
        return self.inconclusive(
            f"the broker's timers lagged {least_ms:.0f} ms or more in every run; expected at most {most_ms:.0f} ms. "
            "Run the audit on a less busy machine",
            runs_needed=self.runs,
            measured={"lag_ms": least_ms},
            expected={"lag_ms": f"at most {most_ms:.0f} ms"},
        )

    def doubt_of_pauses(self, waits: Sequence[Wait]) -> str:
        """Return why a command's waits may be those of its application; "" if they are not."""
        pause_ms = application_pause_ms([wait.waited_ms for wait in waits], self.observations)
        if pause_ms is None:
            return ""
        return f"waits about {pause_ms:.0f} ms, which is also the time between the application's successful requests"

    def tracks(self, kinds: Sequence[Kind], regroup: Regroup | None = None) -> list[Track]:
        return [
            each
            for observation, found in zip(self.observations, self.found, strict=True)
            for each in tracks(self._with_timeouts(self._regrouped(found, kinds, regroup)), observation.repetition)
            if each.waits
        ]

    def _regrouped(
        self, found: Sequence[AttemptSequence], kinds: Sequence[Kind], regroup: Regroup | None
    ) -> list[AttemptSequence]:
        wanted = [one for one in found if one.kind in kinds]
        return wanted if regroup is None else regroup(self, wanted)

    def _with_timeouts(self, found: Sequence[AttemptSequence]) -> list[AttemptSequence]:
        """Estimate the end of attempts that the client gave up: after request.timeout.ms, before its next attempt."""
        timeout_ms = number(self.subject.settings, "request.timeout.ms")
        return (
            list(found)
            if timeout_ms is None
            else [_with_end_times(one, round(timeout_ms * _NS_PER_MS)) for one in found]
        )

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def passes(self, why: str, **details: Unpack[VerdictDetails]) -> Verdict:
        return self._verdict(State.PASS, why, **details)

    def deviates(self, why: str, *, where: str = "", **details: Unpack[VerdictDetails]) -> Verdict:
        """Return a deviation; `where` names the run and the attempts that show it."""
        verdict = self._verdict(State.DEVIATES, why, sort=sort_of(self.subject, self.statement), **details)
        return msgspec.structs.replace(verdict, where=where)

    def not_observable(self, why: str) -> Verdict:
        return self._verdict(State.NOT_OBSERVABLE, why)

    def inconclusive(self, why: str, *, runs_needed: int | None, **details: Unpack[VerdictDetails]) -> Verdict:
        return self._verdict(State.INCONCLUSIVE, why, runs_needed=runs_needed, **details)

    def more_runs(self, least: int, found: int) -> int:
        """Return the number of further runs with which `least` waits are expected."""
        return max(1, ceil((least - found) * self.runs / max(1, found)))

    def _verdict(
        self,
        state: State,
        why: str,
        sort: Sort | None = None,
        runs_needed: int | None = None,
        **details: Unpack[VerdictDetails],
    ) -> Verdict:
        return Verdict(
            statement=self.statement.id,
            state=state,
            sort=sort,
            why=why,
            path=PATHS.get(self.probe, ""),
            probe=self.probe,
            runs=self.runs,
            runs_needed=runs_needed,
            **details,
        )

    def evidence(self, found: Sequence[Track], backoff: Backoff | None, allowed: Tolerance) -> Evidence:
        return {
            "series": [each.series(backoff, allowed) for each in longest_tracks(found)],
            "fit": fit(rows_of(found), Random(len(found))),  # noqa: S311  (resampling needs no secure randomness)
        }


def _with_end_times(sequence: AttemptSequence, timeout_ns: int) -> AttemptSequence:
    attempts = sequence.attempts
    if all(attempt.ended_ns is not None for attempt in attempts[:-1]):
        return sequence
    ended = [
        attempt
        if attempt.ended_ns is not None
        else msgspec.structs.replace(attempt, ended_ns=min(attempt.at_ns + timeout_ns, after.at_ns))
        for attempt, after in pairwise(attempts)
    ]
    return msgspec.structs.replace(sequence, attempts=[*ended, attempts[-1]])


WaitJudge = Callable[[Case, list[Track], Backoff], Verdict]


def judge_waits(
    case: Case, kinds: Sequence[Kind], backoff: Backoff, judge_tracks: WaitJudge, regroup: Regroup | None = None
) -> Verdict:
    prompt = case.without_lagging_runs(min(backoff.base_ms, backoff.max_ms))
    if isinstance(prompt, Verdict):
        return prompt
    found = prompt.tracks(kinds, regroup)
    if not found:
        return _not_tried_again(prompt, kinds)
    return judge_tracks(prompt, found, backoff)


def _not_tried_again(case: Case, kinds: Sequence[Kind]) -> Verdict:
    failed = sum(
        one.kind in kinds and one.attempts[-1].outcome is not Outcome.SUCCEEDED for found in case.found for one in found
    )
    doubt = next(filter(None, map(case.doubt, kinds)), "")
    if doubt:
        return case.inconclusive(doubt, runs_needed=None)
    if failed < _GIVEN_UP:
        return case.inconclusive("nothing was retried", runs_needed=1)
    return case.not_observable(f"it does not retry: {failed} of {failed} failed operations were given up")


def rows_of(found: Iterable[Track]) -> list[list[float]]:
    return [row for each in found for row in each.rows()]


def sort_of(subject: SubjectInfo, statement: Statement) -> Sort:
    """Return the sort of a deviation: a client that claims the KIP violates its own documentation."""
    if statement.kip in subject.kips and statement.id not in subject.otherwise:
        return Sort.VIOLATES_ITS_DOCUMENTATION
    return Sort.PREDATES_KIP if statement.kip in subject.before else Sort.DIFFERS_FROM_KIP
