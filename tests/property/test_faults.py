"""The same seed and the same traffic give the same faults, for any rules and any traffic."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import fetch, produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

SOME_MS = st.integers(0, 40)
ACTIONS = st.one_of(
    st.builds(
        lambda when: {"kind": "error", "code": "UNKNOWN_SERVER_ERROR", "when": when},
        st.sampled_from(["before", "after"]),
    ),
    st.builds(lambda low, more: {"kind": "delay", "min": low, "max": low + more}, SOME_MS, SOME_MS),
    st.just({"kind": "delay", "mean": 10, "when": "after"}),
    st.just({"kind": "throttle", "throttle_time_ms": 15}),
    st.just("close"),
)
HOW_OFTEN = st.one_of(
    st.just({}),
    st.builds(lambda times: {"times": times}, st.integers(1, 5)),
    st.builds(lambda ms: {"during": ms}, st.integers(1, 60)),
    st.builds(lambda calls: {"on": calls}, st.lists(st.integers(1, 8), min_size=1, max_size=3)),
    st.sampled_from([{"schedule": "1 fail, 2 pass, repeat"}, {"schedule": "1 pass, 3 fail"}]),
)
MATCHES = st.fixed_dictionaries(
    {"probability": st.sampled_from([0.2, 0.5, 1.0])},
    optional={
        "client_id": st.sampled_from(["a", "b", "?"]),
        "connection_older_than": SOME_MS,
        "request": st.integers(1, 4),
        "after": SOME_MS,
        "topic": st.sampled_from(["t", "u", "*"]),
    },
)
RULES = st.lists(
    st.builds(lambda action, match, often: {"action": action} | match | often, ACTIONS, MATCHES, HOW_OFTEN),
    min_size=1,
    max_size=4,
)
# Client, request, and the delay before it.
TRAFFIC = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["produce", "fetch", "metadata", "heartbeat"]), SOME_MS),
    max_size=25,
)
REQUESTS = {
    "produce": (produce(9), 9),
    "fetch": (fetch(topic="u"), 11),
    "metadata": (MetadataRequest(), 9),
    "heartbeat": (HeartbeatRequest(), 3),
}


def seen(rules: list[dict[str, Any]], traffic: list[tuple[str, str, int]]) -> list[object]:
    """Return the responses and their times, the closed connections, and the hit counts."""
    broker = VirtualBroker()
    broker.topic("t")
    broker.topic("u")
    faults = [broker.cluster_server.faults.add(rule) for rule in rules]
    clients = {name: broker.client(name) for name in "ab"}
    got: list[object] = []
    for name, what, wait_ms in traffic:
        if not clients[name].is_open:
            clients[name] = broker.client(name)
        client = clients[name]
        client.send(*REQUESTS[what])
        broker.advance(wait_ms)
        got.append(
            (
                name,
                [
                    (response.api, response.at_ms, error_codes(response.message), response.size)
                    for response in client.take_responses()
                ],
                client.is_open,
            )
        )
    got += [(fault.id, fault.matched, fault.hits, fault.problem) for fault in faults]
    return got


@settings(max_examples=3 * settings().max_examples // 5, deadline=None)
@given(RULES, TRAFFIC)
def test_same_seed_and_traffic_give_the_same_faults(
    rules: list[dict[str, Any]], traffic: list[tuple[str, str, int]]
) -> None:
    once = seen(rules, traffic)
    assert once == seen(rules, traffic)
    assert not [each for each in once[len(traffic) :] if each[3]], "a rule raised an error"  # type: ignore[index]  # they are tuples
