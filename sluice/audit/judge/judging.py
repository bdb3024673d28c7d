"""The verdict on one statement from runs of one client. Pure functions.

The runs of each probe are judged separately. The most informative verdict is returned: deviates before pass before
inconclusive.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.observation import Observation, Role, SubjectInfo
from sluice.audit.judge.model.statements import STATEMENTS, Statement
from sluice.audit.judge.model.verdict import State, Verdict

from .case import Case
from .expected import Settings, reconnect_backoff, retry_backoff, static_backoff, tolerance
from .growth import judge_growth
from .kips import connection_setup, delivery_attempts, delivery_outcomes, kip13, kip144, kip580
from .waits import track

RULES: Mapping[str, Callable[[Case], Verdict]] = {
    **kip13.RULES,
    **kip580.RULES,
    **kip144.RULES,
    **connection_setup.RULES,
    **delivery_attempts.RULES,
    **delivery_outcomes.RULES,
}

# This statement is about the rejection of settings.
_ABOUT_REFUSALS = "KIP-91/9"
_ABOUT_BATCHES = frozenset(
    [f"KIP-580/{number}" for number in (*range(1, 8), 16, 17, 18)]
    + [f"KIP-91/{number}" for number in (1, 4, 5, 6, 12, 14, 15)]
)
_WEIGHT = (State.DEVIATES, State.PASS, State.INCONCLUSIVE, State.NOT_OBSERVABLE)


def judge(statement_id: str, observations: Sequence[Observation]) -> Verdict:
    """Return the verdict on one statement from runs of one client; unusable and unrelated runs are ignored."""
    statement = STATEMENTS[statement_id]
    if statement.unobservable:
        return _undecided(statement, State.NOT_OBSERVABLE, statement.unobservable)
    by_probe: dict[str, list[Observation]] = {}
    for one in observations:
        if not one.problem and one.probe in statement.probes:
            by_probe.setdefault(one.probe, []).append(one)
    if not by_probe and statement_id != _ABOUT_REFUSALS and (refused := _refused(statement, observations)):
        return _undecided(statement, State.NOT_OBSERVABLE, f"the client rejects the settings of the probe: {refused}")
    if not by_probe:
        return _undecided(
            statement, State.INCONCLUSIVE, f"no usable run of {' or '.join(statement.probes)}", runs_needed=1
        )
    verdicts = [_of_probe(statement, runs) for runs in by_probe.values()]
    return min(verdicts, key=lambda verdict: (_WEIGHT.index(verdict.state), -verdict.runs))


def _of_probe(statement: Statement, observations: Sequence[Observation]) -> Verdict:
    case = Case(statement, observations)
    subject = case.subject
    if subject.role not in statement.roles:
        return case.not_observable(f"applies only to the role {' or '.join(statement.roles)}")
    missing = _missing(statement, subject)
    if lacks_settings(statement, subject):
        return case.not_observable(f"the client has no {' and no '.join(missing)}")
    if missing:
        verdict = case.inconclusive(f"the client's value of {' and '.join(missing)} is not known", runs_needed=None)
        return msgspec.structs.replace(verdict, missing=missing)
    verdict = RULES[statement.id](case)
    doubt = case.doubt(Kind.PRODUCE) if statement.id in _ABOUT_BATCHES else ""
    if doubt and verdict.state is State.INCONCLUSIVE:
        return case.inconclusive(doubt, runs_needed=None)
    return verdict


def lacks_settings(statement: Statement, subject: SubjectInfo) -> bool:
    missing = _missing(statement, subject)
    return bool(missing) and subject.lacks.issuperset(missing)


def _missing(statement: Statement, subject: SubjectInfo) -> list[str]:
    return [name for name in statement.settings if name not in subject.settings and not _follows(name, subject)]


def _follows(name: str, subject: SubjectInfo) -> bool:
    return name == "reconnect.backoff.max.ms" and "reconnect.backoff.ms" in subject.settings


def _refused(statement: Statement, observations: Sequence[Observation]) -> str:
    """Return why every run was rejected, else ""."""
    runs = [one for one in observations if one.probe in statement.probes]
    reasons = [[each.text or each.error for each in one.callbacks if each.event == "rejected"] for one in runs]
    return reasons[0][0] if runs and all(reasons) else ""


def _undecided(statement: Statement, state: State, why: str, runs_needed: int | None = None) -> Verdict:
    return Verdict(statement=statement.id, state=state, why=why, runs_needed=runs_needed)


# -- one sequence ------------------------------------------------------------------------------------------------------

# The statement for each kind of sequence, if only events are known.
OF_KIND = {
    Kind.CONNECT: "KIP-144/1",
    Kind.PRODUCE: "KIP-580/1",
    Kind.METADATA: "KIP-580/8",
    Kind.FIND_COORDINATOR: "KIP-580/10",
    Kind.OFFSET_COMMIT: "KIP-580/10",
    Kind.HEARTBEAT: "KIP-580/11",
    Kind.JOIN_GROUP: "KIP-580/12",
    Kind.SYNC_GROUP: "KIP-580/12",
    Kind.LIST_OFFSETS: "KIP-580/13",
    Kind.INIT_PRODUCER_ID: "KIP-580/14",
    Kind.ADMIN: "KIP-580/15",
}
# Kafka kept these constant; the KIP's text makes them double.
_STATIC_TOO = (Kind.JOIN_GROUP, Kind.SYNC_GROUP, Kind.LIST_OFFSETS, Kind.INIT_PRODUCER_ID)


def judge_sequence(sequence: AttemptSequence, settings: Settings) -> Verdict:
    """Judge one sequence without probes: every deviation counts as one from the KIP."""
    statement = STATEMENTS[OF_KIND[sequence.kind]] if sequence.kind in OF_KIND else None
    if statement is None:
        return Verdict(statement="", state=State.NOT_OBSERVABLE, why=f"no KIP specifies a backoff for {sequence.kind}")
    if sequence.doubt:
        return _undecided(statement, State.INCONCLUSIVE, sequence.doubt)
    backoff = reconnect_backoff(settings) if sequence.kind is Kind.CONNECT else retry_backoff(settings)
    if backoff is None:
        missing = " and ".join(name for name in statement.settings if name not in settings)
        return _undecided(statement, State.INCONCLUSIVE, f"the client's value of {missing} is not known")
    subject = SubjectInfo(name=sequence.key, role=Role.PRODUCER, settings=dict(settings))
    case = Case(statement, [Observation(probe="", subject=subject)])
    allowed = tolerance(backoff.base_ms, 0.0, virtual=False)
    verdict = judge_growth(case, [track(sequence)], backoff, allowed)
    static = static_backoff(settings) if sequence.kind in _STATIC_TOO else None
    if verdict.state is State.DEVIATES and static is not None:
        other = judge_growth(case, [track(sequence)], static, allowed)
        verdict = verdict if other.state is State.DEVIATES else other
    return msgspec.structs.replace(verdict, path=sequence.path)
