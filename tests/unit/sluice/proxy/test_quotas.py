"""Quotas of a proxy: as on a broker with the same quota, on top of the upstream's, or only recorded (shadow)."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from sluice.broker.admin.resources.quotas import explanation
from sluice.journal_events import Request, ShadowThrottle, Throttle
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.fetch import ForgottenTopic
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientUsage
from sluice.quotas.mutation_quota import MutationUsage
from tests.support.records import batch_of, fetch, fetched_bytes, produce, produce_of
from tests.support.virtual_broker import JOURNAL, ReceivedResponse, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy, proxy_with_topic

PROFILES = ["by-version", "kip-13", "kafka-1.1", "kafka-2.0", "kafka-2.8", "kafka-4.4"]
SHORT = ("quota.window.num=3", "quota.window.size.seconds=1")
SAMPLES = 11  # the default of controller.quota.window.num, in partitions if the rate is 1
SHADOW = "sluice.quota.mode=shadow"


def with_topic(made: Callable[..., VirtualBroker], *overrides: str) -> VirtualBroker:
    broker = made(JOURNAL, *SHORT, *overrides)
    broker.topic()
    return broker


def produced(broker: VirtualBroker, version: int) -> list[tuple[float, int]]:
    """Produce 4 KB every 100 ms; return time and throttle time of each response."""
    client = broker.client("shop")
    for _ in range(20):
        client.send(produce_of(4_000, version, "shop"), version)
        broker.advance(100)
    broker.advance(60_000)
    return [(response.at_ms, response.throttle_time_ms) for response in client.take_responses()]


def fetched(broker: VirtualBroker, version: int) -> list[tuple[float, int, int]]:
    """Fetch 4 KB every 100 ms; return time, throttle time and size of each response."""
    producer = broker.client("producer")
    for _ in range(3):
        producer.call(produce(9, batch_of(1_300)), 9)
    client = broker.client("shop")
    for _ in range(20):
        client.send(fetch(0, topic_id=broker.partition().topic.topic_id if version > 12 else bytes(16)), version)
        broker.advance(100)
    broker.advance(60_000)
    return [(response.at_ms, response.throttle_time_ms, response.size) for response in client.take_responses()]


@pytest.mark.parametrize("version", [3, 9], ids=["old client", "client with KIP-219"])
@pytest.mark.parametrize("profile", PROFILES)
def test_produce_is_throttled_as_by_a_broker(profile: str, version: int) -> None:
    overrides = f"quota.profile={profile}", "quota.producer.default=10000"
    responses = produced(with_topic(VirtualProxy, *overrides), version)
    assert responses == produced(with_topic(VirtualBroker, *overrides), version)
    assert any(throttle_ms for _, throttle_ms in responses)


FETCH_PROFILES = [*((profile, 11) for profile in PROFILES if profile != "kip-13"), ("by-version", 16), ("kafka-1.1", 5)]


@pytest.mark.parametrize(("profile", "version"), FETCH_PROFILES)
def test_fetch_is_throttled_as_by_a_broker(profile: str, version: int) -> None:
    overrides = f"quota.profile={profile}", "quota.consumer.default=10000"
    responses = fetched(with_topic(VirtualProxy, *overrides), version)
    assert responses == fetched(with_topic(VirtualBroker, *overrides), version)
    assert any(throttle_ms for _, throttle_ms, _ in responses)


def test_a_held_fetch_is_charged_when_the_upstream_has_read_it() -> None:
    """A broker of ours charges it before, from its index: some bytes less, so the throttle times differ."""
    overrides = "quota.profile=kip-13", "quota.consumer.default=10000"
    ours, theirs = (fetched(with_topic(made, *overrides), 5) for made in (VirtualProxy, VirtualBroker))
    assert len(ours) == len(theirs) == 20
    assert {size for *_, size in ours} == {size for *_, size in theirs}
    assert [at_ms for at_ms, *_ in ours] == pytest.approx([at_ms for at_ms, *_ in theirs], rel=0.02)
    assert any(throttle_ms for _, throttle_ms, _ in ours)


def test_the_longer_throttle_time_is_returned() -> None:
    upstream = VirtualBroker(JOURNAL, *SHORT, "quota.producer.default=5000")
    proxy = VirtualProxy(JOURNAL, *SHORT, "quota.producer.default=10000", upstream=upstream)
    proxy.topic()
    limited_upstream = produced(proxy, 9)
    assert limited_upstream == produced(with_topic(VirtualBroker, "quota.producer.default=5000"), 9)


def test_a_fetch_is_cut_to_what_the_quota_grants_at_once() -> None:
    proxy = proxy_with_topic(JOURNAL, *SHORT, "quota.consumer.default=1000")
    client = proxy.client()
    for _ in range(4):
        client.call(produce(9, batch_of(900)), 9)
    assert len(client.call(fetch(0), 11).responses[0].partitions[0].records) == 1_800  # two of four batches
    sent = bytes(proxy.connector.transports[0].sent)
    assert (2_000).to_bytes(4) in sent[-80:]


def test_a_fetch_that_is_too_large_to_read_is_forwarded_as_it_was() -> None:
    proxy = proxy_with_topic(JOURNAL, "quota.consumer.default=1000")
    client = proxy.client()
    client.call(produce(9), 9)
    request = fetch(0)
    request.rack_id = "r" * 32_000
    request.forgotten_topics_data = [ForgottenTopic(topic="x" * 30_000, partitions=[1]) for _ in range(40)]
    assert len(client.frame(request, 11)) > 1 << 20
    assert fetched_bytes(client.call(request, 11))


# -- controller mutations ----------------------------------------------------------------------------------------------


def created(*topics: tuple[str, int]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
    )


def added(*topics: tuple[str, int]) -> CreatePartitionsRequest:
    named = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics]
    return CreatePartitionsRequest(topics=named, timeout_ms=1000)


def deleted(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=1000)


MUTATIONS: list[tuple[Message, int, int]] = [  # request, version if strict, version if not
    (created(("a", 5)), 7, 5),
    (created(("b", 20), ("c", 1)), 7, 5),  # b passes, then the bucket is empty
    (created(("d", 1)), 7, 5),
    (added(("a", 6)), 3, 2),
    (HeartbeatRequest(), 4, 4),
]


class Mutated(NamedTuple):
    at_ms: float
    throttle_ms: int
    results: list[tuple[str, int]]  # name and error code


def mutated(broker: VirtualBroker, *, strict: bool) -> tuple[list[Mutated], list[ClientUsage]]:
    broker.cluster.client_quotas.alter({"client-id": "shop"}, {"controller_mutation_rate": 2.0})
    client = broker.client("shop")
    for request, strict_version, version in MUTATIONS:
        client.send(request, strict_version if strict else version)
        broker.advance(500)
    broker.advance(60_000)
    client.send(deleted("a", "missing"), 6)
    broker.advance(60_000)
    return [_mutated(response) for response in client.take_responses()], usage_of(broker)


def _mutated(response: ReceivedResponse) -> Mutated:
    lists = (getattr(response.message, name, None) for name in ("topics", "results", "responses"))
    results = sorted((each.name, each.error_code) for each in next(filter(None, lists), ()))
    return Mutated(response.at_ms, response.throttle_time_ms, results)


def usage_of(broker: VirtualBroker) -> list[ClientUsage]:
    mutation = broker.cluster.controller_quotas.mutation
    assert mutation is not None
    return mutation.snapshot(broker.broker.quota_time_ms())


@pytest.mark.parametrize("strict", [True, False], ids=["rejected", "throttled"])
def test_mutations_are_charged_as_by_a_controller(strict: bool) -> None:
    ours = mutated(VirtualProxy(JOURNAL, "controller.quota.window.num=2"), strict=strict)
    theirs = mutated(VirtualBroker(JOURNAL, "controller.quota.window.num=2"), strict=strict)
    assert ours == theirs


def test_what_the_cluster_rejects_is_not_charged() -> None:
    proxy = proxy_with_topic(JOURNAL)
    proxy.cluster.client_quotas.alter({"client-id": "shop"}, {"controller_mutation_rate": 1.0})
    client = proxy.client("shop")
    assert client.call(created(("t", 5)), 7).topics[0].error_code == 36  # TOPIC_ALREADY_EXISTS
    client.call(added(("t", 1)), 3)  # not more than before
    client.call(deleted("missing"), 6)
    (usage,) = usage_of(proxy)
    assert isinstance(usage, MutationUsage)
    assert usage.tokens == SAMPLES
    assert client.call(created(("default", -1)), 7).topics[0].num_partitions == 1


def test_a_topic_is_deleted_by_its_id() -> None:
    proxy = proxy_with_topic(JOURNAL, partitions=7)
    proxy.cluster.client_quotas.alter({"client-id": "shop"}, {"controller_mutation_rate": 1.0})
    topic = proxy.partition().topic
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic.topic_id)], timeout_ms=1000)
    assert proxy.client("shop").call(request, 6).responses[0].error_code == 0
    (usage,) = usage_of(proxy)
    assert isinstance(usage, MutationUsage)
    assert usage.tokens == SAMPLES - 7


# -- refused -----------------------------------------------------------------------------------------------------------


def test_request_time_is_refused_with_the_reason() -> None:
    problem = proxy_with_topic().cluster.client_quotas.refusal({"user": "alice"}, {"request_percentage": 5.0})
    assert problem == (
        "request_percentage is not possible in a proxy: it cannot measure the time of the upstream brokers' threads"
    )


# -- shadow ------------------------------------------------------------------------------------------------------------


def shadow_times(broker: VirtualBroker) -> list[tuple[str, str, int]]:
    return [
        (event.api, event.quota, event.throttle_time_ms)
        for event in broker.journal.events()
        if isinstance(event, ShadowThrottle)
    ]


@pytest.mark.parametrize("made", [VirtualBroker, VirtualProxy], ids=["broker", "proxy"])
def test_shadow_records_what_would_be_throttled_and_delays_nothing(made: Callable[..., VirtualBroker]) -> None:
    limits = "quota.producer.default=10000", "quota.consumer.default=10000"
    free, shadow = with_topic(made), with_topic(made, *limits, SHADOW)
    for version in (3, 9):
        assert produced(shadow, version) == produced(free, version)
    for version in (5, 11):
        assert fetched(shadow, version) == fetched(free, version)
    events = shadow.journal.events()
    assert [event for event in events if isinstance(event, Throttle)] == []
    assert {event.throttle_time_ms for event in events if isinstance(event, Request)} == {0}
    assert {(api, quota) for api, quota, _ in shadow_times(shadow)} == {("Produce", "Produce"), ("Fetch", "Fetch")}
    assert explanation(shadow.cluster_server, "shop", "ANONYMOUS").mode == "shadow"


@pytest.mark.parametrize("made", [VirtualBroker, VirtualProxy], ids=["broker", "proxy"])
def test_shadow_times_are_those_of_the_traffic_that_was_sent(made: Callable[..., VirtualBroker]) -> None:
    shadow = with_topic(made, "quota.producer.default=10000", SHADOW)
    produced(shadow, 9)
    manager = with_topic(VirtualBroker, "quota.producer.default=10000").broker.quotas.produce
    expected = [manager.record("ANONYMOUS", "shop", 4_000, at_ms) for at_ms in range(0, 2_000, 100)]
    assert [throttle_ms for _, _, throttle_ms in shadow_times(shadow)] == [each for each in expected if each]


@pytest.mark.parametrize("made", [VirtualBroker, VirtualProxy], ids=["broker", "proxy"])
def test_shadow_mutations_succeed(made: Callable[..., VirtualBroker]) -> None:
    shadow = made(JOURNAL, SHADOW, "controller.quota.window.num=2")
    seen, _ = mutated(shadow, strict=True)
    assert [each.at_ms for each in seen] == [0, 500, 1_000, 1_500, 2_000, 62_500]
    assert {code for each in seen for _, code in each.results} == {0, 3}  # UNKNOWN_TOPIC_OR_PARTITION of `missing`
    assert {each.throttle_ms for each in seen} == {0}
    assert ("CreateTopics", "ControllerMutation") in {each[:2] for each in shadow_times(shadow)}


def test_shadow_keeps_the_upstreams_throttle_time() -> None:
    upstream = VirtualBroker(JOURNAL, *SHORT, "quota.producer.default=5000")
    proxy = VirtualProxy(JOURNAL, *SHORT, "quota.producer.default=100", SHADOW, upstream=upstream)
    proxy.topic()
    assert produced(proxy, 9) == produced(with_topic(VirtualBroker, "quota.producer.default=5000"), 9)


def test_requests_stay_in_flight_together_in_shadow_mode() -> None:
    def forwarded(mode: str) -> int:
        proxy = proxy_with_topic(JOURNAL, "quota.producer.default=10000", f"sluice.quota.mode={mode}")
        client = proxy.client()
        client.call(MetadataRequest(), 9)
        before = len(proxy.connector.transports[0].sent)
        client.send_bytes(b"".join(client.frame(produce_of(1_000, 9, "client"), 9) for _ in range(3)))
        exchange = proxy.server.exchange
        route = next(route for route in exchange.routes if route.api_name == "Produce")
        assert exchange.is_alone(route) == (mode == "enforce")  # type: ignore[attr-defined]  # of a proxy
        return len(proxy.connector.transports[0].sent) - before

    assert forwarded("shadow") == forwarded("enforce") == 3 * 1_004
