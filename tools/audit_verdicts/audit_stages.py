"""Stages of synthetic clients in virtual time: brokers that fail in one way, and a producer with records to send."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from sluice import Broker, testing
from sluice.audit.judge.model.observation import Callback, Observation, Role, SubjectInfo
from sluice.broker.faults.actions import AnyAction
from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.broker.faults.actions.throttle import Throttle
from sluice.client.config import Given
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.errors import ConfigError, SluiceError
from tools.audit_verdicts.synthetic_clients import Policy, Settings

TOPIC = "t"
DEFAULTS: Settings = {
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "delivery.timeout.ms": 120_000,
    "request.timeout.ms": 30_000,
    "linger.ms": 0,
    "metadata.recovery.strategy": "none",
}


@dataclass
class Play:
    """A running stage: a broker, a producer, and the outcomes of its records."""

    broker: Broker
    producer: Producer
    callbacks: list[Callback] = field(default_factory=list)
    fault_from_ns: int | None = None
    fault_until_ns: int | None = None
    _records: int = 0
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def note(self, event: str, record: int = -1, partition: int = -1) -> None:
        self.callbacks.append(Callback(at_ns=time.time_ns(), event=event, record=record, partition=partition))

    def begins(self) -> None:
        self.fault_from_ns = time.time_ns()

    def ends(self) -> None:
        self.fault_until_ns = time.time_ns()

    async def send(self, partition: int = 0) -> None:
        """Send one record and wait for its outcome."""
        number, self._records = self._records, self._records + 1
        try:
            future = await self.producer.send(TOPIC, b"%08d" % number, partition=partition)
            self.note("sent", number, partition)
            await future
        except (KafkaException, SluiceError):
            self.note("failed", number, partition)
        else:
            self.note("delivered", number, partition)

    def sends(self, partition: int = 0, *, every_s: float = 0.2, at_once: bool = False) -> None:
        """Send records from now on, each after the outcome of the previous one, or without waiting if `at_once`."""

        async def send() -> None:
            while True:
                sending = self._start(self.send(partition))
                if not at_once:
                    await asyncio.wait([sending])
                await asyncio.sleep(every_s)

        self._start(send())

    def _start(self, work: Awaitable[None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.append(task)
        return task

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


Script = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True)
class Stage:
    """A simplified probe."""

    probe: str
    script: Script
    settings: Settings = field(default_factory=dict)
    brokers: int = 1
    partitions: int = 1
    connects_first: bool = True


async def _closed(play: Play) -> None:
    play.begins()
    with play.broker.faults.add(RefuseConnections(how="fin")):
        _drop(play)
        play.sends()
        await asyncio.sleep(24)
    play.ends()
    await asyncio.sleep(11)


def _drop(play: Play) -> None:
    """Close all connections from the broker's side."""
    for server in play.broker._running.servers.values():
        for connection in [*server.connections]:
            connection.close("dropped")


def _during(
    action: AnyAction,
    seconds: float,
    *,
    then_s: float = 0,
    drops: bool = False,
    every_s: float = 0.2,
    at_once: bool = False,
    **rule: Any,
) -> Script:
    """Send records while a fault rule is in force, and for a time afterwards; drop connections first."""

    async def script(play: Play) -> None:
        with play.broker.faults.add(action, **rule):
            if drops:
                _drop(play)
            play.sends(every_s=every_s, at_once=at_once)
            await asyncio.sleep(seconds)
        await asyncio.sleep(then_s)

    return script


async def _two_brokers(play: Play) -> None:
    await asyncio.sleep(1)
    play.sends(0)
    play.sends(1)
    with play.broker.faults.add(RefuseConnections(how="fin"), broker=1):
        server = play.broker._running.servers[1]
        for connection in [*server.connections]:
            connection.close("dropped")
        await asyncio.sleep(6)
        with play.broker.faults.add(Close(when="before"), api="Produce", broker=2, schedule="1 fail, 99 pass, repeat"):
            await asyncio.sleep(10)
    await asyncio.sleep(2)


def _errors(seconds: float, schedule: str, then_s: float = 0) -> Script:
    error = Error("NOT_ENOUGH_REPLICAS")
    return _during(error, seconds, then_s=then_s, every_s=0.02, api="Produce", schedule=schedule)


async def _two_partitions(play: Play) -> None:
    with play.broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce"):
        play.sends(0)
        await asyncio.sleep(3)
        play.sends(1)
        await asyncio.sleep(6)
    await asyncio.sleep(1)


async def _new_leader(play: Play) -> None:
    for leader in (2, 1, 2, 1):
        await play.broker.cluster.move_leader(TOPIC, 0, leader)
        await play.send()
        await asyncio.sleep(3)


async def _mute(play: Play) -> None:
    play.begins()
    with play.broker.faults.add(BlackHole(), api="Produce"):
        play.sends()
        play.sends()
        await asyncio.sleep(21)
    play.ends()
    await asyncio.sleep(2)


async def _config(play: Play) -> None:
    await play.send()


async def _outage(play: Play) -> None:
    play.sends()
    await asyncio.sleep(1)
    play.begins()
    with play.broker.faults.add(RefuseConnections(how="fin")):
        _drop(play)
        play._start(play.send())
        await asyncio.sleep(6)
    play.ends()
    await asyncio.sleep(10)


async def _long_throttle(play: Play) -> None:
    with play.broker.faults.add(Throttle("9s", mute=True), api="Produce", times=1):
        await play.send()
        for _ in range(3):
            play._start(play.send())
            await asyncio.sleep(0.3)
        await asyncio.sleep(12)


async def _late_answer(play: Play) -> None:
    with play.broker.faults.add(Error("REQUEST_TIMED_OUT"), api="Produce", times=1):
        sending = play._start(play.send())
        await asyncio.sleep(0.2)
    with play.broker.faults.add(Delay("2300ms", when="after"), api="Produce", times=1):
        await sending
        await asyncio.sleep(3)
    await play.send()
    await asyncio.sleep(2)


# A client connects when it has something to send, so retries must not delay that.
_AT_ONCE: Settings = {"retry.backoff.ms": 10, "retry.backoff.max.ms": 10}
_DELIVERY: Settings = {"delivery.timeout.ms": 5000, "request.timeout.ms": 2000}
_OUTAGE = _during(RefuseConnections(how="fin"), 6, then_s=1, drops=True)
_ALTERNATING = _errors(30, "11 fail, 1 pass, 6 fail, 1 pass, repeat", 2)
STAGES = {
    "closed": Stage("reconnect-closed", _closed, _AT_ONCE),
    "after-versions": Stage(
        "reconnect-after-versions",
        _during(Close(when="before"), 4, then_s=1, drops=True, api=["Metadata", "Produce", "InitProducerId"]),
        _AT_ONCE,
    ),
    "lost": Stage(
        "reconnect-lost",
        _during(Close(when="before"), 8, every_s=0.1, api="Produce", schedule="1 fail, 7 pass, repeat"),
        _AT_ONCE,
    ),
    "silent": Stage(
        "reconnect-silent",
        _during(SilentConnections(), 30, then_s=1, drops=True),
        {**_AT_ONCE, "request.timeout.ms": 1000},
    ),
    "two-brokers": Stage("reconnect-two-brokers", _two_brokers, _AT_ONCE, brokers=2, partitions=2),
    "base-alone": Stage("reconnect-constant", _OUTAGE, {**_AT_ONCE, "reconnect.backoff.ms": 200}),
    "base-above-max": Stage(
        "reconnect-base-above-max", _OUTAGE, {**_AT_ONCE, "reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 200}
    ),
    "errors": Stage("produce-not-enough-replicas", _ALTERNATING),
    # So long that rounding each draw to milliseconds does not matter.
    "many-errors": Stage(
        "produce-not-enough-replicas",
        # Four failures keep all waits below the maximum.
        _errors(600, ", ".join(("6 fail, 1 pass", *["4 fail, 1 pass"] * 9, "repeat"))),
        {"retry.backoff.ms": 1000, "retry.backoff.max.ms": 10_000},
    ),
    "then-success": Stage(
        "produce-then-success", _errors(8, "4 fail, 1 pass, 1 fail, 1 pass, 2 fail, 1 pass, repeat", 1)
    ),
    "two-partitions": Stage("produce-two-partitions", _two_partitions, partitions=2),
    "new-leader": Stage("produce-new-leader", _new_leader, {"retry.backoff.ms": 400}, brokers=2),
    "equal": Stage("produce-constant-backoff", _ALTERNATING, {"retry.backoff.ms": 200, "retry.backoff.max.ms": 200}),
    "above": Stage("produce-base-above-max", _ALTERNATING, {"retry.backoff.ms": 500, "retry.backoff.max.ms": 200}),
    "unknown-topic": Stage(
        "metadata-unknown-topic",
        _during(Error("UNKNOWN_TOPIC_OR_PARTITION"), 8, then_s=1, api="Metadata"),
        connects_first=False,
    ),
    "throttled": Stage(
        "throttle-produce",
        _during(Throttle("700ms", mute=False), 6, then_s=2, every_s=0.05, at_once=True, api="Produce"),
    ),
    "mute": Stage("delivery-mute", _mute, _DELIVERY),
    "retries": Stage(
        "delivery-retries-exhausted", _during(Error("REQUEST_TIMED_OUT"), 8, api="Produce"), {"retries": 3}
    ),
    "not-retriable": Stage(
        "produce-no-retry",
        _during(Error("TOPIC_AUTHORIZATION_FAILED"), 6, every_s=0.5, api="Produce", schedule="1 fail, 1 pass, repeat"),
    ),
    "in-flight": Stage(
        "in-flight-one",
        _during(Delay("200ms"), 3, then_s=1, every_s=0.03, at_once=True, api="Produce"),
        {"max.in.flight.requests.per.connection": 1},
    ),
    "config": Stage("delivery-config", _config, {"delivery.timeout.ms": 1000, "request.timeout.ms": 2000}),
    "outage": Stage("delivery-long-outage", _outage, {"delivery.timeout.ms": 15_000, "request.timeout.ms": 2000}),
    "long-throttle": Stage("delivery-throttled", _long_throttle, _DELIVERY),
    "late-answer": Stage(
        "delivery-late-answer",
        _late_answer,
        {"delivery.timeout.ms": 2500, "request.timeout.ms": 2400, "retry.backoff.ms": 500},
    ),
}


def observe(policy: Policy, seed: int) -> Observation:
    """Run a client and return the observation."""
    return testing.run(_played(policy, seed, {}), seed=seed)


def observe_as_command(policy: Policy, seed: int) -> Observation:
    """Run a client that is not idempotent, and return only what its requests show."""
    run = testing.run(_played(policy, seed, {"enable.idempotence": False}), seed=seed)
    return msgspec.structs.replace(run, subject=msgspec.structs.replace(run.subject, is_command=True), callbacks=[])


async def _played(policy: Policy, seed: int, config_of_all: Settings) -> Observation:
    stage = STAGES[policy.stage]
    settings = {**DEFAULTS, **stage.settings, **policy.settings}
    if "reconnect.backoff.ms" in stage.settings and "reconnect.backoff.max.ms" not in stage.settings:
        del settings["reconnect.backoff.max.ms"]
    config: dict[str, str | float] = {
        "num.partitions": stage.partitions,
        "default.replication.factor": stage.brokers,
        "sluice.journal.events": 65536,
    }
    async with Broker(brokers=stage.brokers, config=config, seed=seed) as broker:
        given: dict[str, float | str | bool] = {"bootstrap.servers": broker.bootstrap, "client.id": "app"}
        given |= settings | dict(policy.config) | dict(config_of_all)
        play = await _with_producer(stage, policy, broker, given, Random(seed))
        events = broker.journal.events()
    subject = SubjectInfo(name="sluice", role=Role.PRODUCER, settings=dict(settings), before=policy.before)
    return Observation(
        probe=stage.probe,
        subject=subject,
        repetition=seed,
        seed=seed,
        events=events,
        callbacks=play.callbacks,
        fault_from_ns=play.fault_from_ns,
        fault_until_ns=play.fault_until_ns,
        began_ns=play.callbacks[0].at_ns,
        ended_ns=play.callbacks[-1].at_ns,
        virtual=True,
    )


async def _with_producer(stage: Stage, policy: Policy, broker: Broker, given: Given, random: Random) -> Play:
    try:
        producer = Producer(given, random=random)
    except ConfigError:
        at_ns = time.time_ns()
        return Play(broker, None, [Callback(at_ns=at_ns, event="rejected")])  # type: ignore[arg-type]
    play = Play(broker, producer)
    play.note("started")
    async with producer:
        policy.patch(producer, random)
        if stage.connects_first:
            await producer.partitions_for(TOPIC)
            await play.send()
            await asyncio.sleep(0.5)
        await stage.script(play)
        play.note("closed")
        await play.stop()
        await producer.close(timeout_ms=0)
    return play
