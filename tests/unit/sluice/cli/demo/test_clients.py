"""Recording of the demo clients' exchanges: their own API only, with the times and figures of the responses."""

import asyncio
import warnings
from types import SimpleNamespace

import pytest

from sluice.cli.demo.trace import PRODUCE, Client, Exchange, Trace
from sluice.clock import ManualClock

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # kafka-python reads files the old way
    from sluice.cli.demo.clients import RUN, _fetched_bytes, _note_exchanges


class Library:
    """An aiokafka client whose every response takes 7 ms and has a throttle time of 120 ms."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def send(self, node_id: int, request: object, *, group: str = "default") -> SimpleNamespace:
        self._clock.advance(7)
        return SimpleNamespace(throttle_time_ms=120, node_id=node_id, group=group)


EXCHANGES = {
    "a request of its API is recorded": (0, [Exchange(5.0, 12.0, 1000, 120)]),
    "other requests are not recorded": (3, []),
}


@pytest.mark.parametrize(("api_key", "noted"), EXCHANGES.values(), ids=EXCHANGES)
def test_recorded_exchange(api_key: int, noted: list[Exchange]) -> None:
    clock = ManualClock(monotonic_ms=5.0)
    client, library = Client("c", "", PRODUCE, 1e6, Trace()), Library(clock)
    _note_exchanges(client, clock, library, 0, lambda _: 1000)
    response = asyncio.run(library.send(9, SimpleNamespace(API_KEY=api_key), group="other"))
    assert client.trace.exchanges == noted
    assert (response.node_id, response.group) == (9, "other"), "the request is still sent and answered"


FETCHED = {
    "no topic, as in a throttled Fetch response": ([], 0),
    "null records": ([("t", [(0, 0, 5, None)])], 0),
    "all partitions": ([("t", [(0, 0, 5, b"12"), (1, 0, 5, b"")]), ("u", [(0, 0, 5, b"345")])], 5),
}


@pytest.mark.parametrize(("topics", "expected"), FETCHED.values(), ids=FETCHED)
def test_fetched_bytes_are_those_of_the_records(
    topics: list[tuple[str, list[tuple[object, ...]]]], expected: int
) -> None:
    assert _fetched_bytes(SimpleNamespace(throttle_time_ms=0, topics=topics)) == expected


def test_each_client_runs_the_function_of_its_name() -> None:
    assert sorted(RUN) == ["bronze", "gold", "reader", "steady"]
