"""Work in turns, and long requests that are handled in turns."""

from collections.abc import Generator

import pytest

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.turn_queue import TURN_MS, TurnQueue, respond_in_turns
from sluice.clock import ManualClock
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.message import Message
from tests.support.virtual_broker import Client, VirtualBroker


class Work:
    """Work of `ms` in each of `turns` turns; `log` records when each begins."""

    def __init__(self, queue: TurnQueue, clock: ManualClock, log: list[tuple[str, float]], name: str) -> None:
        self.queue = queue
        self.clock = clock
        self.log = log
        self.name = name

    def start(self, ms: float, turns: int = 1) -> None:
        def turn(left: int) -> None:
            self.log.append((self.name, self.clock.monotonic_ms()))
            self.clock._now_ms += ms
            if left > 1:
                self.queue.add(lambda: turn(left - 1))

        self.queue.add(lambda: turn(turns))


def test_turns_alternate_and_timers_run_between_them() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    log: list[tuple[str, float]] = []
    Work(queue, clock, log, "first").start(TURN_MS, turns=2)
    Work(queue, clock, log, "second").start(TURN_MS, turns=2)
    clock.call_at(1.0, lambda: log.append(("timer", clock.monotonic_ms())))
    clock.advance(100)
    assert log == [("first", 0), ("timer", 2), ("second", 2), ("first", 4), ("second", 6)]


def test_short_work_shares_a_turn() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    log: list[tuple[str, float]] = []
    for number in range(5):
        Work(queue, clock, log, str(number)).start(TURN_MS / 4)
    clock.call_at(0.1, lambda: log.append(("timer", clock.monotonic_ms())))
    clock.advance(100)
    assert [name for name, _ in log] == ["0", "1", "2", "3", "timer", "4"]


def fail() -> None:
    raise ZeroDivisionError


def test_work_after_failed_work_runs() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    done: list[int] = []
    queue.add(fail)
    queue.add(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        clock.advance(0)
    clock.advance(0)
    assert done == [1]


# -- long requests -----------------------------------------------------------------------------------------------------


def long_api_versions(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, steps_ms: list[float]) -> None:
    """Make ApiVersions v0 take the time of all `steps_ms`, in steps."""
    route = broker.broker.dispatcher.route(18 << 16)
    assert route is not None

    def steps() -> Generator[None, None, Message]:
        for ms in steps_ms:
            broker.clock._now_ms += ms
            yield
        return ApiVersionsResponse()

    def handle(ctx: RequestContext, request: Message, services: object) -> Message | Outcome:
        return respond_in_turns(ctx, broker.cluster.turns, steps())

    monkeypatch.setattr(route, "handle", handle)


def api_versions(client: Client) -> None:
    client.send(ApiVersionsRequest(), 0)


def test_other_requests_are_answered_during_a_long_request(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    long_api_versions(broker, monkeypatch, [0.5] * 100)
    long, other = broker.client(), broker.client()
    broker.loop.call_soon(other.send_bytes, other.frame(ApiVersionsRequest(), 1))
    api_versions(long)
    broker.advance(50)
    assert other.answer().at_ms == TURN_MS
    assert long.answer().at_ms == 50


def test_request_shorter_than_a_turn_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    long_api_versions(broker, monkeypatch, [0.5, 0.5])
    client = broker.client()
    client.send_together((ApiVersionsRequest(), 0), (ApiVersionsRequest(), 1))
    assert [(answer.version, answer.at_ms) for answer in client.take_answers()] == [(0, 1), (1, 1)]
    assert len(client.transport.writes) == 1


def test_long_request_of_a_disconnected_client_ends(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    long_api_versions(broker, monkeypatch, [TURN_MS] * 100)
    client = broker.client()
    client._gone = True
    client.broker.loop.call_soon(client.deliver)
    api_versions(client)
    broker.advance(10 * TURN_MS)
    assert client.closed_at_ms is not None
    assert broker.now_ms == 10 * TURN_MS, "the remaining steps take no time"


def test_error_in_a_later_turn_closes_the_connection(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    long_api_versions(broker, monkeypatch, [TURN_MS, "x"])  # type: ignore[list-item]  # adding it raises TypeError
    client = broker.client()
    api_versions(client)
    broker.advance(TURN_MS)
    assert not client.is_open
    assert [record.getMessage() for record in caplog.records] == ["request failed"]
