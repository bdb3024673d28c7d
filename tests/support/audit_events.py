"""Observations made from handmade journals (tests.support.journals)."""

from collections.abc import Iterable, Mapping

from sluice.audit.judge.model.observation import Callback, Observation, Role, SubjectInfo
from sluice.journal_events import AnyEvent

from .journals import ns

SETTINGS: Mapping[str, float | str | bool] = {
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "delivery.timeout.ms": 5000,
    "request.timeout.ms": 2000,
    "linger.ms": 0,
    "heartbeat.interval.ms": 0,
}


def observed(
    probe: str,
    events: list[AnyEvent],
    *,
    role: Role = Role.PRODUCER,
    settings: Mapping[str, float | str | bool] | None = None,
    kips: Iterable[str] = (),
    otherwise: Iterable[str] = (),
    before: Iterable[str] = (),
    lacks: Iterable[str] = (),
    is_command: bool = False,
    callbacks: Iterable[Callback] = (),
    repetition: int = 0,
    fault_ms: tuple[float, float] | None = None,
    ended_ms: float | None = None,
    lag_ms: float = 0.0,
    virtual: bool = True,
    problem: str = "",
) -> Observation:
    subject = SubjectInfo(
        name="app",
        role=role,
        settings=dict(SETTINGS if settings is None else settings),
        kips=frozenset(kips),
        otherwise=frozenset(otherwise),
        before=frozenset(before),
        lacks=frozenset(lacks),
        is_command=is_command,
    )
    return Observation(
        probe=probe,
        subject=subject,
        repetition=repetition,
        events=events,
        callbacks=list(callbacks),
        fault_from_ns=None if fault_ms is None else ns(fault_ms[0]),
        fault_until_ns=None if fault_ms is None else ns(fault_ms[1]),
        began_ns=ns(0),
        ended_ns=max((event.at_ns for event in events), default=ns(0)) if ended_ms is None else ns(ended_ms),
        lag_ms=lag_ms,
        virtual=virtual,
        problem=problem,
    )


def callback(event: str, at_ms: float, record: int = -1, partition: int = 0) -> Callback:
    return Callback(at_ns=ns(at_ms), event=event, record=record, partition=partition)
