"""A connection's states, and what each event does in each of them.

Kafka handles the requests of a connection one after the other: while one is in progress or throttled, the channel is
muted. Different on purpose: while a request waits in a purgatory, a few bytes are read ahead, to notice at once that
the client leaves.

| state | meaning |
|---|---|
| idle | no request is in progress |
| within a frame | a part of a request has been received |
| waiting | a long poll is in the purgatory |
| muted | the response is sent, its throttle time is not over (KIP-219) |
| held back | the response is sent when its throttle time is over (KIP-13) |
| never answered | a fault rule drops the response; only the end of the connection is awaited |
| unread | the client does not read its responses, which fill the buffers |
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.faults.rule import Rule
from sluice.broker.network import connection_states as states
from sluice.broker.network.connection import Connection
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support import faults
from tests.support.records import batch, fetch, produce, produce_of
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

LATER_MS = 5_000  # all waits and throttle times are shorter
# Each row: the state, an event, what the client has received and how the connection is then, and the same later.
TABLE = """
| idle           | a request       | ApiVersions; open  | open                       |
| idle           | a negative size | closed             | closed                     |
| idle           | half-close      | closed             | closed                     |
| idle           | reset           | closed             | closed                     |
| idle           | broker closes   | closed             | closed                     |
| idle           | time            | open               | open                       |
| idle           | client reads    | open               | open                       |
| within a frame | the rest of it  | ApiVersions; open  | open                       |
| within a frame | a negative size | open               | open                       |
| within a frame | half-close      | closed             | closed                     |
| within a frame | reset           | closed             | closed                     |
| within a frame | broker closes   | closed             | closed                     |
| within a frame | time            | open               | open                       |
| within a frame | client reads    | open               | open                       |
| waiting        | a request       | waits, not read    | Fetch; ApiVersions; open   |
| waiting        | a negative size | waits, not read    | Fetch; closed              |
| waiting        | half-close      | waits, not read    | Fetch; closed              |
| waiting        | reset           | closed             | closed                     |
| waiting        | broker closes   | closed             | closed                     |
| waiting        | time            | Fetch; open        | open                       |
| waiting        | client reads    | waits              | Fetch; open                |
| muted          | a request       | waits, not read    | ApiVersions; open          |
| muted          | a negative size | waits, not read    | closed                     |
| muted          | half-close      | waits, not read    | closed                     |
| muted          | reset           | waits, not read    | closed                     |
| muted          | broker closes   | closed             | closed                     |
| muted          | time            | open               | open                       |
| muted          | client reads    | waits, not read    | open                       |
| held back      | a request       | waits, not read    | Produce; ApiVersions; open |
| held back      | a negative size | waits, not read    | Produce; closed            |
| held back      | half-close      | waits, not read    | Produce; closed            |
| held back      | reset           | waits, not read    | Produce; closed            |
| held back      | broker closes   | closed             | closed                     |
| held back      | time            | Produce; open      | open                       |
| held back      | client reads    | waits, not read    | Produce; open              |
| never answered | a request       | waits              | waits                      |
| never answered | a negative size | waits              | waits                      |
| never answered | half-close      | closed             | closed                     |
| never answered | reset           | closed             | closed                     |
| never answered | broker closes   | closed             | closed                     |
| never answered | time            | waits              | waits                      |
| never answered | client reads    | waits              | waits                      |
| unread         | a request       | open, not read     | open, not read             |
| unread         | a negative size | open, not read     | open, not read             |
| unread         | half-close      | open, not read     | open, not read             |
| unread         | reset           | open, not read     | open, not read             |
| unread         | broker closes   | reset              | reset                      |
| unread         | time            | open, not read     | open, not read             |
| unread         | client reads    | Fetch; Fetch; open | open                       |
"""


class State(NamedTuple):
    """A state: how it is reached, with which configuration, and the states of requests and responses."""

    enter: Callable[[VirtualBroker, Client], object]
    overrides: tuple[str, ...] = ()
    requests: states.RequestsState = states.READY
    output: states.OutputState = states.FLOWING


def is_never_answered(broker: VirtualBroker, client: Client) -> None:
    faults.add(broker, Rule(BlackHole(), api="Metadata"))
    client.send(MetadataRequest(topics=None), 9)


def is_unread(broker: VirtualBroker, client: Client) -> None:
    broker.client("writer").send(produce(9, batch(bytes(200_000))), 9)
    client.stop_reading()
    client.send_together((fetch(0), 11), (fetch(0), 11))


def whole_frame(client: Client) -> bytes:
    return client.frame(ApiVersionsRequest(), 0)


QUOTA = "quota.producer.default=1000"
STATES = {
    "idle": State(lambda broker, client: client.call(ApiVersionsRequest(), 0)),
    "within a frame": State(lambda broker, client: client.send_bytes(whole_frame(client)[:9])),
    "waiting": State(lambda broker, client: client.send(fetch(0, max_wait_ms=1_000), 11), requests=states.WAITING),
    "muted": State(lambda broker, client: client.send(produce_of(12_000, 9, "client"), 9), (QUOTA,), states.WAITING),
    "held back": State(
        lambda broker, client: client.send(produce_of(12_000, 3, "client"), 3),
        (QUOTA, "quota.profile=kip-13"),
        states.WAITING,
    ),
    "never answered": State(is_never_answered, requests=states.UNANSWERED),
    "unread": State(is_unread, output=states.FULL),
}
EVENTS: dict[str, Callable[[VirtualBroker, Client], object]] = {
    "a request": lambda broker, client: client.send(ApiVersionsRequest(), 0),
    "the rest of it": lambda broker, client: client.send_bytes(whole_frame(client)[9:]),
    "a negative size": lambda broker, client: client.send_bytes(b"\xff" * 8),
    "half-close": lambda broker, client: client.end(),
    "reset": lambda broker, client: client.leave(),
    "broker closes": lambda broker, client: client.connection.close("a test"),
    "time": lambda broker, client: broker.advance(LATER_MS),
    "client reads": lambda broker, client: client.read_on(),
}


def seen_of(client: Client) -> str:
    """Return the responses since the last call, and the state of the connection."""
    if client.transport.aborted:
        state = "reset"
    elif client.transport.closing:
        state = "closed"
    else:
        state = "waits" if client.connection.waiting else "open"
        state += "" if client.transport.reading else ", not read"
    return "; ".join([*(response.api for response in client.take_responses()), state])


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize(("state", "event", "then", "later"), rows(), ids=[f"{row[0]}: {row[1]}" for row in rows()])
def test_event(state: str, event: str, then: str, later: str) -> None:
    broker = broker_with_topic(*STATES[state].overrides)
    client = broker.client("client")
    STATES[state].enter(broker, client)
    assert (client.connection._requests, client.connection._output) == (STATES[state].requests, STATES[state].output)
    client.take_responses()
    EVENTS[event](broker, client)
    assert seen_of(client) == then
    broker.advance(LATER_MS)
    assert seen_of(client) == later


def test_each_event_is_tried_in_each_state() -> None:
    """The rest of a frame can only follow its beginning, and replaces the whole request there."""
    tried = {(state, event) for state, event, _, _ in rows()}
    cells = {(state, event) for state in STATES for event in EVENTS}
    cells -= {(state, "the rest of it") for state in STATES if state != "within a frame"}
    cells -= {("within a frame", "a request")}
    assert tried == cells


def test_half_close_does_not_end_a_long_poll_whose_black_hole_was_removed() -> None:
    broker = broker_with_topic()
    fault = faults.add(broker, Rule(BlackHole(), api="Fetch"))
    client = broker.client("client")
    client.send(fetch(0, max_wait_ms=1_000), 11)
    fault.remove()
    client.end()
    assert seen_of(client) == "waits, not read"
    broker.advance(LATER_MS)
    assert seen_of(client) == "Fetch; closed"


# -- the tables of the code --------------------------------------------------------------------------------------------


def happen(connection: Connection, event: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "park": lambda: connection.park(lambda: None),
        "never_answer": connection.close_on_eof,
        "unpark": connection.unpark,
        "turn": connection._continue,
        "fill": connection.pause_writing,
        "half_close": connection.eof_received,
        "close": connection.abort,
        "lose": lambda: connection.connection_lost(None),
    }
    calls[event]()


@pytest.mark.parametrize("event", ["park", "never_answer", "unpark", "turn"])
@pytest.mark.parametrize("state", states.REQUESTS, ids=lambda state: state.name)
def test_next_state_of_requests(state: states.RequestsState, event: str) -> None:
    connection = VirtualBroker().client().connection
    connection._requests = state
    happen(connection, event)
    assert connection._requests is states.REQUESTS[state][states.REQUESTS_EVENTS.index(event)]


@pytest.mark.parametrize("state", states.OUTPUT, ids=lambda state: state.name)
def test_next_state_of_responses(state: states.OutputState) -> None:
    connection = VirtualBroker().client().connection
    connection._output = state
    happen(connection, "fill")
    assert connection._output is states.OUTPUT[state][states.OUTPUT_EVENTS.index("fill")]
    connection.resume_writing()  # nothing is left to send
    assert connection._output is states.FLOWING


@pytest.mark.parametrize("event", states.ENDS_EVENTS)
@pytest.mark.parametrize("state", states.ENDS, ids=lambda state: state.name)
def test_next_state_of_the_ends(state: states.EndsState, event: str) -> None:
    connection = VirtualBroker().client().connection
    connection._ends = state
    happen(connection, event)
    assert connection._ends is states.ENDS[state][states.ENDS_EVENTS.index(event)]
    assert (connection.closed, connection.ended_by_client) == (connection._ends.is_closed, connection._ends.by_client)


def test_requests_wait_only_for_one_reason() -> None:
    """A connection that waits is not deferred as well, and one that was deferred is ready after its turn."""
    assert {state.turn for state in states.REQUESTS} == {states.READY, states.WAITING, states.UNANSWERED}
    assert {state.unpark for state in states.REQUESTS} == {states.READY}
    assert states.OPEN.half_close.close.by_client
