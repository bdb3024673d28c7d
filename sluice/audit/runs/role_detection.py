"""Detects the role of a command by its requests to a healthy broker."""

import asyncio
from collections.abc import Sequence

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import TOPIC, Produce
from sluice.audit.subjects import Job, Subject, SubjectError
from sluice.clock import Clock, sleep_ms
from sluice.embedded.broker import Broker
from sluice.journal_events import AnyEvent, ConnectionOpened, Request

from .hints import not_connected

_WITHIN_MS = 20_000.0
_LOOK_EVERY_MS = 50.0
_BY_API = {
    "Produce": Role.PRODUCER,
    "Fetch": Role.CONSUMER,
    "CreateTopics": Role.ADMIN,
    "DeleteTopics": Role.ADMIN,
    "DescribeConfigs": Role.ADMIN,
    "DescribeCluster": Role.ADMIN,
    "DescribeGroups": Role.ADMIN,
    "ListGroups": Role.ADMIN,
}


async def detect_role(subject: Subject, clock: Clock) -> Role:
    """Return the role; raise SubjectError for a command that does not start, ends, or sends no conclusive request."""
    async with Broker() as broker:
        await broker.cluster.create_topic(TOPIC)
        job = Job(bootstrap=broker.bootstrap, role=Role.PRODUCER, workload=Produce(), settings={}, seed=0)
        running = await subject.start(job, lambda callback: None)
        try:
            until_ms = clock.monotonic_ms() + _WITHIN_MS
            while clock.monotonic_ms() < until_ms:
                events = broker.journal.events()
                role = _role_in(events)
                if role is not None:
                    return role
                ended = running.ended()
                if ended is not None:
                    raise SubjectError(f"{subject.name}: {ended} before it sent a request")
                await sleep_ms(clock, _LOOK_EVERY_MS)
        finally:
            await asyncio.shield(running.end())
    within = f"within {_WITHIN_MS / 1000:.0f} s"
    if not any(isinstance(event, ConnectionOpened) for event in events):
        raise SubjectError(f"{subject.name}: {not_connected(running, within)}")
    raise SubjectError(f"{subject.name}: sent no {', '.join(_BY_API)} {within}. Specify its role")


def _role_in(events: Sequence[AnyEvent]) -> Role | None:
    apis = (event.api for event in events if isinstance(event, Request))
    return next((_BY_API[api] for api in apis if api in _BY_API), None)
