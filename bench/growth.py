"""The campaign `growth`: the CPU time of a request, and the memory, of a broker that holds more and more.

Each curve fills a broker step by step, and measures requests after each step: of the things themselves (a partition, a
group), spread over all of them, and the same Produce as with an empty broker. The figure is the least of several laps,
which other processes on the machine change least. The broker runs with this Python.
"""

import argparse
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.wire_client import CLIENT_ID, Client, create, frame, hello, high_quotas, join, metadata, produce_record
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.messages import request

# A Produce to a broker with much in it may take this much longer than to an empty one.
_MOST = 1.15
_LAPS, _REQUESTS, _IN_FLIGHT = 25, 640, 16
_TOPIC = "produced"  # of the Produce that each curve measures
_PARTITIONS_OF_TOPIC = 1_000
_AT_ONCE = 1_000  # topics, quotas and ACLs in one request
_RULES_AT_ONCE = 100
_AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
)


class Broker:
    """The measured process, a client, and what a curve has made so far."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.pid = process.process.pid
        self.client = Client(self.pid, process.bootstrap)
        self.random = Random(0)
        self.frames: list[bytes] = []  # requests of the things that a curve has made
        self.kept: list[Client] = []

    def cpu_us(self, frames: list[bytes]) -> float:
        """Return the least CPU time of one of these requests, which are sent in turn."""
        laps = []
        for _ in range(_LAPS):
            chosen = self.random.choices(frames, k=_REQUESTS)
            began = self._cpu_ns()
            self.client.exchange(chosen, _IN_FLIGHT)
            laps.append(self._cpu_ns() - began)
        return min(laps[1:]) / _REQUESTS / 1e3

    def _cpu_ns(self) -> int:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0])  # of the event loop's thread

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * resource.getpagesize()


# -- what a broker holds: each function adds the things from number `first` to `end` -----------------------------------


def _produce(topic: str, partition: int = 0, client_id: str = CLIENT_ID) -> bytes:
    return frame(produce_record(topic, partition), 12, client_id)


def _partitions(broker: Broker, first: int, end: int) -> None:
    for number in range(first, end, _PARTITIONS_OF_TOPIC):
        broker.client.call(create({f"wide-{number}": _PARTITIONS_OF_TOPIC}), 5)
        broker.frames += [_produce(f"wide-{number}", index) for index in range(0, _PARTITIONS_OF_TOPIC, 100)]


def _topics(broker: Broker, first: int, end: int) -> None:
    for start in range(first, end, _AT_ONCE):
        names = [f"topic-{number}" for number in range(start, min(start + _AT_ONCE, end))]
        broker.client.call(create(dict.fromkeys(names, 1)), 5)
        broker.frames += [frame(metadata(name), 12) for name in names]


def _groups(broker: Broker, first: int, end: int) -> None:
    """Create groups with a member and a committed offset each."""
    for _ in range(first, end):
        member = join(broker.client)
        commit = member.commit(_TOPIC, 1)
        broker.client.call(commit, 8)
        broker.frames += [frame(member.heartbeat(), 4), frame(commit, 8)]


def _connections(broker: Broker, first: int, end: int) -> None:
    for _ in range(first, end):
        broker.kept.append(connection := broker.client.connect())
        connection.call(hello(), 0)


def _quotas(broker: Broker, first: int, end: int) -> None:
    """Set quotas of client ids, first that of this client; each of the others sends a request."""
    ids = [f"client-{number}" if number else CLIENT_ID for number in range(first, end)]
    for start in range(0, len(ids), _AT_ONCE):
        broker.client.call(high_quotas(ids[start : start + _AT_ONCE], "producer_byte_rate"), 1)
    broker.frames += [_produce(_TOPIC, client_id=each) for each in ids]
    broker.client.exchange(broker.frames[first:end], _IN_FLIGHT)


def _rules(broker: Broker, first: int, end: int) -> None:
    """Add fault rules for Produce to other topics."""
    action = {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}
    for start in range(first, end, _RULES_AT_ONCE):
        numbers = range(start, min(start + _RULES_AT_ONCE, end))
        faults = [{"api": "Produce", "topic": f"other-{number}", "action": action} for number in numbers]
        broker.process.post("/api/v1/faults", {"faults": faults})


def _acls(broker: Broker, first: int, end: int) -> None:
    """Allow users of topics, half of them by prefix; the measured topic has none, so that all are considered."""
    for start in range(first, end, _AT_ONCE):
        creations = [
            {
                "resource_type": 2,
                "resource_name": f"topic-{number}",
                "resource_pattern_type": 3 + number % 2,
                "principal": f"User:{number}",
                "host": "*",
                "operation": 4,
                "permission_type": 3,
            }
            for number in range(start, min(start + _AT_ONCE, end))
        ]
        broker.client.call(request("CreateAcls", creations=creations), 2)


def _events(broker: Broker, first: int, end: int) -> None:
    broker.client.exchange([_produce(_TOPIC)] * (end - first), _IN_FLIGHT)


# -- measuring ---------------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """What a broker holds, up to which number, how more of it is made, and what its own requests are called."""

    things: str
    most: int
    add: Callable[[Broker, int, int], None]
    requests: str = ""
    overrides: tuple[str, ...] = ()
    bound: float = _MOST  # of the last Produce, in those with an empty broker


CURVES = (
    Curve("partitions", 100_000, _partitions, "Produce to some"),
    Curve("topics", 10_000, _topics, "Metadata of each"),
    Curve("groups", 10_000, _groups, "Heartbeat, OffsetCommit"),
    Curve("connections", 19_000, _connections),
    Curve("quotas", 10_000, _quotas, "Produce of each client"),
    Curve("rules", 1_000, _rules, bound=1.3),  # any rule takes 0.7 us
    Curve("ACLs", 10_000, _acls, overrides=_AUTHORIZER, bound=1.3),
    Curve("events of the journal", 1_000_000, _events, overrides=("sluice.journal.events=1000000",), bound=1.5),
)
_STEPS = 3  # each of ten times as many


def _measure(curve: Curve) -> bool:
    """Print a line for each step; return whether the last Produce takes too long."""
    arguments = overrides("group.initial.rebalance.delay.ms=0", *curve.overrides)
    with running_broker(Path(os.devnull), *arguments) as process:
        broker = Broker(process)
        broker.client.call(create({_TOPIC: 1}), 5)
        broker.cpu_us([_produce(_TOPIC)])  # so that all is imported
        made, ratio, empty_us = 0, 1.0, 0.0
        for number in (0, *(curve.most // 10**step for step in reversed(range(_STEPS)))):
            before = broker.resident_bytes
            curve.add(broker, made, number)
            each = f"{(broker.resident_bytes - before) / (number - made):9,.0f} bytes each" if number else ""
            made = number
            produce_us = broker.cpu_us([_produce(_TOPIC)])
            empty_us = empty_us or produce_us
            ratio = produce_us / empty_us
            own = f"{curve.requests} {broker.cpu_us(broker.frames):.1f} us" if number and curve.requests else ""
            print(
                f"{curve.things:<22} {number:>9,} Produce {produce_us:5.1f} us x{ratio:4.2f} {each:<22} {own}",
                flush=True,
            )
        for kept in broker.kept:
            kept.socket.close()
    return ratio > curve.bound


def main() -> None:
    """Measure each curve; exit with 1 if a Produce takes too long at the end of one."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--only", default="", help="text that the names of the curves contain")
    only = parser.parse_args().only
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    above = [_measure(curve) for curve in CURVES if only in curve.things]
    sys.exit(int(any(above)))


if __name__ == "__main__":
    main()
