"""Rules and quotas that a proxy limits to some clients or topics, and the names of topic ids."""

import re

import pytest

from sluice.broker.throttling.scope import Scope
from sluice.errors import FaultError
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import batch_of, fetch, produce
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy
from tests.support.wire import error_codes

NOT_LEADER = 6
CLIENTS, TOPICS = Scope(clients=("shop-*", "one")), Scope(topics=("orders", "t?"))
FAILS = {"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}}


def started(scope: Scope, *overrides: str, topics: tuple[str, ...] = ("orders", "other")) -> VirtualProxy:
    proxy = VirtualProxy(JOURNAL, *overrides, upstream=VirtualBroker(JOURNAL), scope=scope)
    for topic in topics:
        proxy.topic(topic)
    return proxy


def codes(client: Client, topic: str) -> list[int]:
    return error_codes(client.call(produce(9, topic=topic), 9))


@pytest.mark.parametrize(("client_id", "is_hit"), [("shop-1", True), ("one", True), ("two", False), ("shop", False)])
def test_rules_hit_only_these_clients(client_id: str, is_hit: bool) -> None:
    proxy = started(CLIENTS)
    fault = proxy.cluster_server.faults.add({**FAILS, "api": "Produce"})
    assert codes(proxy.client(client_id), "orders") == [NOT_LEADER] * is_hit
    assert fault.hits == is_hit


def test_a_rule_limits_the_clients_further() -> None:
    proxy = started(CLIENTS)
    proxy.cluster_server.faults.add({**FAILS, "api": "Produce", "client_id": "*-1"})
    assert [codes(proxy.client(name), "orders") for name in ("shop-1", "shop-2", "x-1")] == [[NOT_LEADER], [], []]


def test_rules_hit_only_these_topics() -> None:
    proxy = started(TOPICS, topics=("orders", "other", "t1"))
    proxy.cluster_server.faults.add({**FAILS, "api": "Produce"})
    proxy.cluster_server.faults.add({"action": "black-hole"})  # not requests without a topic
    client = proxy.client()
    assert [codes(client, topic) for topic in ("orders", "other", "t1")] == [[NOT_LEADER], [], [NOT_LEADER]]
    assert client.call(HeartbeatRequest(), 4)


def test_metadata_is_wrong_for_these_topics_only() -> None:
    proxy = started(TOPICS)
    proxy.cluster_server.faults.add({"action": "unknown-leader"})
    topics = proxy.client().call(MetadataRequest(topics=None), 12).topics
    assert {topic.name: topic.partitions[0].leader_id for topic in topics} == {"orders": -1, "other": 1}


AFFECTS = "action: {} affects all {}, but rules are limited to some (--only-{})"
REFUSED: list[tuple[Scope, dict[str, object], str]] = [
    (CLIENTS, {"action": "refuse-connections"}, AFFECTS.format("refuse-connections", "clients", "clients")),
    (CLIENTS, {"action": "broker-down"}, AFFECTS.format("broker-down", "clients", "clients")),
    (TOPICS, {"action": "isolate"}, AFFECTS.format("isolate", "topics", "topics")),
    (TOPICS, {"action": {"kind": "drop-idle", "idle": "1s"}}, AFFECTS.format("drop-idle", "topics", "topics")),
    (
        TOPICS,
        {"action": "close", "api": "Heartbeat"},
        "api: rules are limited to topics (orders, t?), and Heartbeat requests name none",
    ),
]


@pytest.mark.parametrize(("scope", "rule", "problem"), REFUSED)
def test_what_would_affect_others_is_refused(scope: Scope, rule: dict[str, object], problem: str) -> None:
    with pytest.raises(FaultError, match=f"^fault.{re.escape(problem)}$"):
        started(scope).cluster_server.faults.add(rule)


def test_bandwidth_is_limited_for_these_clients() -> None:
    proxy = started(CLIENTS)
    proxy.cluster_server.faults.add({"action": {"kind": "bandwidth", "out_bytes_per_s": 10}})
    limited, free = proxy.client("one"), proxy.client("two")
    for client in (limited, free):
        client.send_together((HeartbeatRequest(), 4), (HeartbeatRequest(), 4))
    assert (len(limited.take_responses()), len(free.take_responses())) == (0, 2)
    proxy.advance(10_000)
    assert len(limited.take_responses()) == 2


SCOPES = [
    (CLIENTS, "shop-1", "orders", True),
    (CLIENTS, "other", "orders", False),
    (TOPICS, "other", "orders", True),
    (TOPICS, "other", "other", False),
    (Scope(("shop-*",), ("orders",)), "shop-1", "other", False),
]


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
@pytest.mark.parametrize(("scope", "client_id", "topic", "is_charged"), SCOPES)
def test_quotas_apply_only_within_the_scope(
    scope: Scope, client_id: str, topic: str, is_charged: bool, mode: str
) -> None:
    limits = "quota.producer.default=100", "quota.consumer.default=100", f"sluice.quota.mode={mode}"
    proxy = started(scope, *limits)
    client = proxy.client(client_id)
    topic_id = proxy.partition(topic).topic.topic_id
    client.send(produce(9, batch_of(2_000), topic=topic), 9)
    proxy.advance(600_000)
    client.send(fetch(0, topic=topic), 11)
    proxy.advance(600_000)
    client.send(fetch(0, topic="", topic_id=topic_id), 13)
    proxy.advance(600_000)
    responses = client.take_responses()
    assert [response.throttle_time_ms > 0 for response in responses] == [is_charged and mode == "enforce"] * 3
    quotas = proxy.broker.quotas
    charged = [
        manager.measure("ANONYMOUS", client_id, proxy.broker.quota_time_ms()) is not None
        for manager in (quotas.produce, quotas.fetch)
    ]
    assert charged == [is_charged] * 2


def test_mutations_are_charged_only_within_the_scope() -> None:
    proxy = started(CLIENTS)
    proxy.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": 1.0})
    for client_id in ("one", "two"):
        names = [f"{client_id}-{number}" for number in (1, 2)]
        topics = [CreatableTopic(name=name, num_partitions=20, replication_factor=1) for name in names]
        response = proxy.client(client_id).call(CreateTopicsRequest(topics=topics), 7)
        found = {topic.name: topic.error_code for topic in response.topics}
        assert found == dict(zip(names, [0, 89] if client_id == "one" else [0, 0], strict=True))


# -- topic ids ---------------------------------------------------------------------------------------------------------


def test_a_rule_for_a_topic_hits_a_request_with_an_id_that_the_proxy_has_not_seen() -> None:
    proxy = started(Scope())
    fault = proxy.cluster_server.faults.add({**FAILS, "api": "Produce", "topic": "orders"})
    client = proxy.client()
    for topic, expected in (("orders", [NOT_LEADER]), ("other", []), ("orders", [NOT_LEADER])):
        request = produce(13, topic="", topic_id=proxy.partition(topic).topic.topic_id)
        assert error_codes(client.call(request, 13)) == expected
    assert fault.hits == 2


def test_an_id_that_does_not_exist_is_asked_for_once() -> None:
    proxy = started(Scope())
    proxy.cluster_server.faults.add({**FAILS, "api": "Produce", "topic": "orders"})
    client = proxy.client()
    request = produce(13, topic="", topic_id=b"x" * 16)
    assert [error_codes(client.call(request, 13)) for _ in range(2)] == [[100], [100]]  # UNKNOWN_TOPIC_ID
    assert proxy.server.exchange._without_name == {b"x" * 16}  # type: ignore[attr-defined]  # of a proxy


def test_requests_after_an_unknown_id_keep_their_order() -> None:
    proxy = started(Scope())
    proxy.cluster_server.faults.add({**FAILS, "api": "Produce", "topic": "other"})
    client = proxy.client()
    request = produce(13, topic="", topic_id=proxy.partition("orders").topic.topic_id)
    client.send_together((request, 13), (HeartbeatRequest(), 4), (request, 13))
    assert [response.api for response in client.take_responses()] == ["Produce", "Heartbeat", "Produce"]
    assert proxy.partition("orders").log.log_end_offset == 2
