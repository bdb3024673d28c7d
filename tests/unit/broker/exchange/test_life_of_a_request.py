"""The hard cases of a request's life: what the client sees, what is charged and what the journal has, in order.

docs/explanation/architecture.md explains these sequences. A line is a time in ms since the request, and what the client
receives, or an event of the journal. A request's event has the time of its response.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.frames import Truncate
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.broker.faults.actions.records import Duplicate
from sluice.broker.faults.rule import Rule
from sluice.journal_events import ClientEvent, ConnectionClosed, ConnectionOpened, Fault, Request, Throttle
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from tests.support import faults
from tests.support.records import batch_of, fetch, produce, produce_of
from tests.support.slow_handlers import slow_handlers
from tests.support.virtual_broker import JOURNAL, WALL_START_MS, broker_with_topic

# A request of 10,000 + x bytes is throttled for x ms.
PRODUCE_QUOTA, FETCH_QUOTA = "quota.producer.default=1000", "quota.consumer.default=1000"
KIP_13 = "quota.profile=kip-13"
KAFKA_1_1 = "quota.profile=kafka-1.1"
NO_BYTES: dict[str, int] = {}


class Life:
    """A broker with a topic, a client, and everything that is observed of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, overrides: Sequence[str]) -> None:
        self.broker = broker_with_topic(JOURNAL, *overrides)
        self.client = self.broker.client()
        self._monkeypatch = monkeypatch
        self._raw: list[tuple[float, int]] = []

    def receive_bytes(self) -> None:
        """Do not decode what the client receives, because it may be no response."""
        self.client.on_bytes = lambda data: self._raw.append((self.broker.now_ms, len(data)))

    def exceed_request_quota(self) -> None:
        """Throttle requests for 300 ms by their request time: each takes 1,030 ms, of which the quota allows 1,000."""
        self.broker.broker.cluster.client_quotas.alter({"client-id": None}, {"request_percentage": 10.0})
        slow_handlers(self._monkeypatch, self.broker, 1_030)

    def fault(self, action: object, **conditions: object) -> None:
        faults.add(self.broker, Rule(action, **conditions))  # type: ignore[arg-type]  # a table of them

    def received(self) -> list[str]:
        """Return what the client received since the last call."""
        found = []
        for response in self.client.take_responses():
            throttle_ms = getattr(response.message, "throttle_time_ms", 0)
            throttled = f", throttled for {throttle_ms}" if throttle_ms else ""
            found.append(f"{response.at_ms:g} {response.api}{throttled}")
        found += [f"{at_ms:g} {size} bytes" for at_ms, size in self._raw]
        if self.client.closed_at_ms is not None:
            found.append(f"{self.client.closed_at_ms:g} end of the connection")
        return found

    def journal(self) -> list[str]:
        """Return the journal's events of the client, in order."""
        return [
            f"{event.at_ns / 1e6 - WALL_START_MS:g} {_words(event)}"
            for event in self.broker.journal.events(client_id="client")
            if isinstance(event, ClientEvent) and not isinstance(event, ConnectionOpened)
        ]

    def charged(self) -> dict[str, int]:
        """Return the bytes in the client's windows, by the kind of quota."""
        now_ms = self.broker.clock.wall_ms()
        usages = {manager.kind: manager.measure("ANONYMOUS", "client", now_ms) for manager in self.broker.broker.quotas}
        return {
            kind: round(usage.rate * usage.window_size_ms / 1000) for kind, usage in usages.items() if usage is not None
        }


def _words(event: ClientEvent) -> str:
    if isinstance(event, Request):
        throttled = f", throttled for {event.throttle_time_ms}" if event.throttle_time_ms else ""
        return event.api + ("" if event.answered_ns else " without a response") + throttled
    if isinstance(event, Throttle):
        return f"{event.api} throttled for {event.throttle_time_ms}"
    if isinstance(event, Fault):
        return f"{event.rule_id} hits {event.api}"
    if isinstance(event, ConnectionClosed):
        return "end of the connection" + (" by the client" if event.by_client else "")
    return type(event).__name__


def produce_above(life: Life, version: int, throttle_ms: int = 2_000, acks: int = 1) -> None:
    """Send a Produce that is throttled for `throttle_ms`, and a request after it."""
    life.client.send(produce_of(10_000 + throttle_ms, version, "client", acks=acks), version)
    life.client.send(ApiVersionsRequest(), 0)


def produce_above_two(life: Life) -> None:
    life.exceed_request_quota()
    produce_above(life, 3)


def fetch_above(life: Life, version: int) -> None:
    """Fetch 12,000 bytes, of which the charge includes the response's other fields, and send a request after it."""
    life.broker.client("writer").send(produce(9, batch_of(12_000)), 9)
    life.client.send(fetch(max_bytes=20_000), version)
    life.client.send(ApiVersionsRequest(), 0)


def leave_after(send: Callable[[Life], None]) -> Callable[[Life], None]:
    def script(life: Life) -> None:
        send(life)
        life.broker.advance(100)
        life.client.leave()

    return script


def long_poll(life: Life) -> None:
    life.client.send(fetch(max_wait_ms=500), 12)


def long_poll_and_write(life: Life) -> None:
    long_poll(life)
    life.broker.advance(100)
    life.broker.client("writer").send(produce(9), 9)


def hit_by(action: object, **conditions: object) -> Callable[[Life], None]:
    """Send a Produce that a rule hits once, and a request after it."""

    def script(life: Life) -> None:
        life.receive_bytes()
        life.fault(action, api="Produce", times=1, **conditions)
        life.client.send(produce(9), 9)
        if life.client.is_open:
            life.client.send(HeartbeatRequest(), 0)

    return script


class Case(NamedTuple):
    """A case: what is sent, what is observed within 10 s, and the properties of the broker."""

    script: Callable[[Life], None]
    received: list[str]
    journal: list[str]
    charged: dict[str, int] = NO_BYTES  # right after the requests
    records: int = 1  # in the log, at the end
    overrides: Sequence[str] = ()


CASES = {
    "Produce above a quota, KIP-219": Case(
        lambda life: produce_above(life, 9),
        ["0 Produce, throttled for 2000", "2000 ApiVersions"],
        ["0 Produce throttled for 2000", "0 Produce, throttled for 2000", "2000 ApiVersions"],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "Produce above a quota, KIP-13": Case(
        lambda life: produce_above(life, 3),
        ["2000 Produce, throttled for 2000", "2000 ApiVersions"],
        ["0 Produce throttled for 2000", "2000 Produce, throttled for 2000", "2000 ApiVersions"],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "Produce with acks=0 above a quota, KIP-219": Case(
        lambda life: produce_above(life, 9, acks=0),
        ["2000 ApiVersions"],
        ["0 Produce throttled for 2000", "0 Produce", "2000 ApiVersions"],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "Produce with acks=0 above a quota, KIP-13": Case(
        lambda life: produce_above(life, 3, acks=0),
        ["2000 ApiVersions"],
        ["0 Produce throttled for 2000", "2000 Produce", "2000 ApiVersions"],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "Produce above two quotas, Kafka 1.1": Case(
        produce_above_two,
        ["3330 Produce, throttled for 2300", "5360 ApiVersions"],
        [
            "1030 Produce throttled for 2000",
            "3030 Produce throttled for 300",
            "3330 Produce, throttled for 2300",
            "4360 ApiVersions throttled for 1000",
            "5360 ApiVersions",
        ],
        overrides=[PRODUCE_QUOTA, KAFKA_1_1],
        charged={"Produce": 12000},
    ),
    "Produce above two quotas, KIP-13": Case(
        produce_above_two,
        ["3030 Produce, throttled for 2000", "5060 ApiVersions"],
        [
            "1030 Produce throttled for 2000",
            "3030 Produce, throttled for 2000",
            "4060 ApiVersions throttled for 1000",
            "5060 ApiVersions",
        ],
        overrides=[PRODUCE_QUOTA, KIP_13],
        charged={"Produce": 12000, "Request": 103},
    ),
    "Produce above two quotas, KIP-219": Case(
        produce_above_two,
        ["1030 Produce, throttled for 2000", "4060 ApiVersions"],
        [
            "1030 Produce throttled for 2000",
            "1030 Produce, throttled for 2000",
            "4060 ApiVersions throttled for 1000",
            "4060 ApiVersions",
        ],
        overrides=[PRODUCE_QUOTA, "quota.profile=kafka-2.0"],
        charged={"Produce": 12000, "Request": 103},
    ),
    "client leaves during its throttle time, KIP-219": Case(
        leave_after(lambda life: produce_above(life, 9)),
        ["0 Produce, throttled for 2000", "2000 end of the connection"],
        ["0 Produce throttled for 2000", "0 Produce, throttled for 2000", "2000 end of the connection by the client"],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "client leaves during its throttle time, KIP-13": Case(
        leave_after(lambda life: produce_above(life, 3)),
        ["2000 Produce, throttled for 2000", "2000 end of the connection"],
        [
            "0 Produce throttled for 2000",
            "2000 Produce, throttled for 2000",
            "2000 end of the connection by the client",
        ],
        overrides=[PRODUCE_QUOTA],
        charged={"Produce": 12000},
    ),
    "Fetch above a quota, KIP-219": Case(
        lambda life: fetch_above(life, 12),
        ["0 Fetch, throttled for 2058", "2058 ApiVersions"],
        ["0 Fetch throttled for 2058", "0 Fetch, throttled for 2058", "2058 ApiVersions"],
        overrides=[FETCH_QUOTA, "quota.profile=kafka-2.0"],
        charged={"Fetch": 0},
    ),
    "Fetch above a quota, KIP-13": Case(
        lambda life: fetch_above(life, 7),
        ["2000 Fetch, throttled for 2000", "2000 ApiVersions"],
        ["0 Fetch throttled for 2000", "2000 Fetch, throttled for 2000", "2000 ApiVersions"],
        overrides=[FETCH_QUOTA, KIP_13],
        charged={"Fetch": 12000},
    ),
    "Fetch above a quota, Kafka 1.1": Case(
        lambda life: fetch_above(life, 7),
        ["2063 Fetch, throttled for 2063", "2063 ApiVersions"],
        ["0 Fetch throttled for 2063", "2063 Fetch, throttled for 2063", "2063 ApiVersions"],
        overrides=[FETCH_QUOTA, KAFKA_1_1],
        charged={"Fetch": 12063},
    ),
    "client leaves before its held Fetch reads": Case(
        leave_after(lambda life: fetch_above(life, 7)),
        ["2000 Fetch, throttled for 2000", "2000 end of the connection"],
        ["0 Fetch throttled for 2000", "2000 Fetch, throttled for 2000", "2000 end of the connection by the client"],
        overrides=[FETCH_QUOTA, KIP_13],
        charged={"Fetch": 12000},
    ),
    "long poll that a Produce completes": Case(long_poll_and_write, ["100 Fetch"], ["100 Fetch"]),
    "long poll that expires": Case(long_poll, ["500 Fetch"], ["500 Fetch"], records=0),
    "long poll of a client that leaves": Case(
        leave_after(long_poll),
        ["100 end of the connection"],
        ["100 Fetch without a response", "100 end of the connection by the client"],
        records=0,
    ),
    "error of a fault rule": Case(
        hit_by(Error("NOT_LEADER_OR_FOLLOWER")),
        ["0 52 bytes", "0 10 bytes"],
        ["0 fault-1 hits Produce", "0 Produce", "0 Heartbeat"],
        records=0,
    ),
    "delay of a fault rule": Case(
        hit_by(Delay("100ms")),
        ["100 52 bytes", "100 10 bytes"],
        ["0 fault-1 hits Produce", "100 Produce", "100 Heartbeat"],
    ),
    "fault rule that closes after the append": Case(
        hit_by(Close("after")),
        ["0 end of the connection"],
        ["0 fault-1 hits Produce", "0 Produce without a response", "0 end of the connection"],
    ),
    "fault rule that closes in the middle of the response": Case(
        hit_by(Close("mid-response")),
        ["0 26 bytes", "0 end of the connection"],
        ["0 fault-1 hits Produce", "0 Produce", "0 end of the connection"],
    ),
    "fault rule without a response": Case(hit_by(BlackHole("after")), [], ["0 fault-1 hits Produce"]),
    "fault rule that cuts the frame": Case(
        hit_by(Truncate()), ["0 28 bytes", "0 10 bytes"], ["0 fault-1 hits Produce", "0 Produce", "0 Heartbeat"]
    ),
    "fault rule that sends the response twice": Case(
        hit_by(Duplicate("response")),
        ["0 104 bytes", "0 10 bytes"],
        ["0 fault-1 hits Produce", "0 Produce", "0 Heartbeat"],
    ),
    "fault rule that appends twice": Case(
        hit_by(Duplicate("request")),
        ["0 52 bytes", "0 10 bytes"],
        ["0 fault-1 hits Produce", "0 Produce", "0 Heartbeat"],
        records=2,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_life(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, case.overrides)
    case.script(life)
    charged = life.charged()
    life.broker.advance(10_000)
    seen = life.received(), life.journal(), charged, life.broker.partition().log.log_end_offset
    assert seen == case[1:5]
