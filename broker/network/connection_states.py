"""The states of a connection as tables: the next state after each event.

A connection has three states: one of its requests, one of its responses, one of its two ends. A state has one attribute
for each event, which is the next state, so that an event costs as little as the assignment of a flag.

As in Kafka's SocketServer, the next request is handled after the response to the previous one and its throttle time:
meanwhile Kafka's channel is muted. Different on purpose: while a request waits in a purgatory, a few bytes are read
ahead, to notice at once that the client leaves.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar


class RequestsState:
    """Whether the next request is handled.

    The events: a request, a quota or a fault rule `park`s the connection; a fault rule drops the response of the parked
    request (`never_answer`); the wait is over (`unpark`); the requests of one read took too long (`defer`), and the
    event loop has served other connections since (`turn`).
    """

    __slots__ = ("defer", "name", "never_answer", "park", "turn", "unpark", "waits")
    park: "RequestsState"
    never_answer: "RequestsState"
    unpark: "RequestsState"
    defer: "RequestsState"
    turn: "RequestsState"

    def __init__(self, name: str, *, waits: bool = False) -> None:
        self.name = name
        self.waits = waits  # whether requests stay in the buffer until the wait is over


class OutputState:
    """Whether the client reads its responses. Kafka, too, handles no request while a response is not sent.

    The events: the transport's buffer is full (`fill`) or has room again (`drain`); after a piece was written, further
    ones are `left`, or all are `sent`.
    """

    __slots__ = ("drain", "fill", "left", "name", "sent")
    fill: "OutputState"
    drain: "OutputState"
    left: "OutputState"
    sent: "OutputState"

    def __init__(self, name: str) -> None:
        self.name = name


class EndsState:
    """Which end has closed the connection.

    The events: the client closes its side (`half_close`), the broker closes the connection (`close`), and the
    transport reports its end (`lose`).
    """

    __slots__ = ("by_client", "close", "half_close", "is_closed", "lose", "name")
    half_close: "EndsState"
    close: "EndsState"
    lose: "EndsState"

    def __init__(self, name: str, *, is_closed: bool = False, by_client: bool = False) -> None:
        self.name = name
        self.is_closed = is_closed
        self.by_client = by_client


READY = RequestsState("ready")
DEFERRED = RequestsState("deferred")
WAITING = RequestsState("waiting", waits=True)
UNANSWERED = RequestsState("unanswered", waits=True)

FLOWING = OutputState("flowing")
UNSENT = OutputState("unsent")
FULL = OutputState("full")

OPEN = EndsState("open")
HALF_CLOSED = EndsState("half-closed")
CLOSED = EndsState("closed", is_closed=True)
LEFT = EndsState("left", is_closed=True, by_client=True)

REQUESTS_EVENTS = ("park", "never_answer", "unpark", "defer", "turn")
REQUESTS: dict[RequestsState, Sequence[RequestsState]] = {
    # Kafka: the channel is read.
    READY: (WAITING, READY, READY, DEFERRED, READY),
    # Kafka's processors take turns by one request of each channel.
    DEFERRED: (WAITING, DEFERRED, READY, DEFERRED, READY),
    # Kafka: the channel is muted until the response is sent and the throttle time is over.
    WAITING: (WAITING, UNANSWERED, READY, WAITING, WAITING),
    # Without a counterpart in Kafka. The client's half-close ends the connection, as no response would follow it.
    UNANSWERED: (WAITING, UNANSWERED, READY, UNANSWERED, UNANSWERED),
}

OUTPUT_EVENTS = ("fill", "drain", "left", "sent")
OUTPUT: dict[OutputState, Sequence[OutputState]] = {
    # Kafka: the channel has no `send`, and may be read.
    FLOWING: (FULL, FLOWING, UNSENT, FLOWING),
    # Kafka: `write` returned before the end of the `send`.
    UNSENT: (FULL, UNSENT, UNSENT, FLOWING),
    # Kafka: the socket is not writable.
    FULL: (FULL, UNSENT, FULL, FULL),
}

ENDS_EVENTS = ("half_close", "close", "lose")
ENDS: dict[EndsState, Sequence[EndsState]] = {
    OPEN: (HALF_CLOSED, CLOSED, LEFT),
    # As in Kafka, the requests before the client's end are served; then the connection is closed.
    HALF_CLOSED: (HALF_CLOSED, LEFT, LEFT),
    CLOSED: (CLOSED, CLOSED, CLOSED),
    LEFT: (LEFT, LEFT, LEFT),
}

S = TypeVar("S", RequestsState, OutputState, EndsState)


def _connect(table: Mapping[S, Sequence[S]], events: Sequence[str]) -> None:
    for state, next_states in table.items():
        for event, next_state in zip(events, next_states, strict=True):
            setattr(state, event, next_state)


_connect(REQUESTS, REQUESTS_EVENTS)
_connect(OUTPUT, OUTPUT_EVENTS)
_connect(ENDS, ENDS_EVENTS)
