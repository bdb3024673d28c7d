"""A statement, and runs of a client: the verdict. Pure functions; the same runs give the same verdict.

Runs of several probes are judged apart, as clients take failures differently, and the verdict that says most is taken:
one that deviates, before one that passes, before one that does not know.
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
from .kips import kip13, kip91, kip144, kip580
from .waits import track

RULES: Mapping[str, Callable[[Case], Verdict]] = {**kip13.RULES, **kip580.RULES, **kip144.RULES, **kip91.RULES}

# Whether a client refuses settings is what it is about.
_ABOUT_REFUSALS = "KIP-91/9"
_WEIGHT = (State.DEVIATES, State.PASS, State.INCONCLUSIVE, State.NOT_OBSERVABLE)


def judge(statement_id: str, observations: Sequence[Observation]) -> Verdict:
    """How a client stands to a statement. Raises KeyError for one that is not in STATEMENTS.

    All observations are of one client. Those with a problem, and those of probes that are not about the statement, say
    nothing.
    """
    statement = STATEMENTS[statement_id]
    if statement.unobservable:
        return _undecided(statement, State.NOT_OBSERVABLE, statement.unobservable)
    by_probe: dict[str, list[Observation]] = {}
    for one in observations:
        if not one.problem and one.probe in statement.probes:
            by_probe.setdefault(one.probe, []).append(one)
    if not by_probe and statement_id != _ABOUT_REFUSALS and (refused := _refused(statement, observations)):
        return _undecided(statement, State.NOT_OBSERVABLE, f"it does not take what is to be set: {refused}")
    if not by_probe:
        return _undecided(statement, State.INCONCLUSIVE, f"no run of {' or '.join(statement.probes)}", runs_needed=1)
    verdicts = [_of_probe(statement, runs) for runs in by_probe.values()]
    return min(verdicts, key=lambda verdict: (_WEIGHT.index(verdict.state), -verdict.runs))


def _of_probe(statement: Statement, observations: Sequence[Observation]) -> Verdict:
    case = Case(statement, observations)
    subject = case.subject
    if subject.role not in statement.roles:
        return case.not_observable(f"it is about a {' or '.join(statement.roles)}")
    missing = [name for name in statement.settings if name not in subject.settings and not _follows(name, subject)]
    if missing and subject.lacks.issuperset(missing):
        return case.not_observable(f"it has no {' and no '.join(missing)}")
    if missing:
        return case.inconclusive(f"{' and '.join(missing)} of this client is not known", runs_needed=None)
    return RULES[statement.id](case)


def _follows(name: str, subject: SubjectInfo) -> bool:
    """Whether a setting that is missing follows from others (KIP-144)."""
    return name == "reconnect.backoff.max.ms" and "reconnect.backoff.ms" in subject.settings


def _refused(statement: Statement, observations: Sequence[Observation]) -> str:
    """Return why a client rejected its settings in every run; "" if it accepted them in one."""
    runs = [one for one in observations if one.probe in statement.probes]
    reasons = [[each.text or each.error for each in one.callbacks if each.event == "rejected"] for one in runs]
    return reasons[0][0] if runs and all(reasons) else ""


def _undecided(statement: Statement, state: State, why: str, runs_needed: int | None = None) -> Verdict:
    return Verdict(statement=statement.id, state=state, why=why, runs_needed=runs_needed)


# -- a sequence alone ------------------------------------------------------------------------------------------------

# Which statement a sequence is about, where nothing but events is known.
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
_STATIC = (Kind.JOIN_GROUP, Kind.SYNC_GROUP)


def judge_sequence(sequence: AttemptSequence, settings: Settings) -> Verdict:
    """How the waits of one sequence stand to the settings of its client: for those who have events and no runs.

    What a client says of itself is not known here: every departure is one from the KIP.
    """
    statement = STATEMENTS[OF_KIND[sequence.kind]] if sequence.kind in OF_KIND else None
    if statement is None:
        return Verdict(statement="", state=State.NOT_OBSERVABLE, why=f"no KIP has a rule for {sequence.kind}")
    if sequence.kind is Kind.CONNECT:
        backoff = reconnect_backoff(settings)
    else:
        backoff = static_backoff(settings) if sequence.kind in _STATIC else retry_backoff(settings)
    if backoff is None:
        missing = " and ".join(name for name in statement.settings if name not in settings)
        return _undecided(statement, State.INCONCLUSIVE, f"{missing} of this client is not known")
    subject = SubjectInfo(name=sequence.key, role=Role.PRODUCER, settings=dict(settings))
    case = Case(statement, [Observation(probe="", subject=subject)])
    allowed = tolerance(backoff.base_ms, 0.0, virtual=False)
    verdict = judge_growth(case, [track(sequence)], backoff, allowed)
    return msgspec.structs.replace(verdict, path=sequence.path)
