"""The cache of encoded responses: the same bytes and counters as without it, and when it is used."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.broker.controller.reassignment import plan
from sluice.broker.exchange import response_cache
from sluice.broker.exchange.response_cache import ResponseCache
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.leaders import SlowElection
from sluice.broker.faults.actions.stale_metadata import MetadataLag
from sluice.broker.faults.actions.wrong_metadata import WrongLeader
from sluice.broker.faults.fault import Fault
from sluice.broker.faults.rule import Rule
from sluice.broker.handlers.topics import metadata
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.config.broker_config import Endpoint
from sluice.errors import ClusterError, FaultError
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.codec.compile import decode_in_slices
from tests.support.faults import add
from tests.support.virtual_broker import JOURNAL, VirtualBroker, broker_with_topic

ANONYMOUS = {"user": "ANONYMOUS"}
NODES = (1, 2, 3)
NAMES = ("a", "b")


def request(*names: str) -> MetadataRequest:
    """Return a request for these topics, which creates none."""
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


REQUESTS = (
    (request("a"), 13),
    (request("a"), 1),
    (request("a", "b"), 12),
    (MetadataRequest(topics=None), 12),
    (ApiVersionsRequest(), 0),
    (ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4),
)


# -- the same as without the cache -------------------------------------------------------------------------------------


class Cluster:
    """Three brokers with two listeners and a journal, which are asked for metadata after each change."""

    def __init__(self, *, cached: bool) -> None:
        self.cached = cached
        listeners = "listeners=PLAINTEXT://127.0.0.1:0,INNER://127.0.0.1:0"
        names = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT"
        self.virtual = VirtualBroker(JOURNAL, listeners, names, "sluice.brokers=3", "sluice.election.delay.ms=0")
        self.rules: list[Fault] = []

    def apply(self, change: str, name: str, node_id: int) -> None:
        """Change the cluster, if its state allows it."""
        server, cluster = self.virtual.cluster_server, self.virtual.cluster
        topic = cluster.topics.get(name)
        try:
            if change == "start":
                self.virtual.run(server.start_broker(node_id))
            elif change == "crash":
                server.stop_broker(node_id, controlled=False)
            elif change in {"stop", "isolate", "rejoin"}:
                getattr(server, f"{change}_broker")(node_id)
            elif change == "feature":
                cluster.update_features({"group.version": 1 - cluster.features.level("group.version")})
            elif change == "quota":
                cluster.client_quotas.alter(ANONYMOUS, {"request_percentage": 50.0})
            elif change == "no quota":
                cluster.client_quotas.alter(ANONYMOUS, {"request_percentage": None})
            elif change == "no rule" and self.rules:
                self.rules.pop().remove()
            elif change in RULES:
                self.rules.append(add(self.virtual, RULES[change](name, node_id)))
            elif change == "create" and topic is None:
                self.virtual.topic(name, partitions=2, replicas=2)
            elif topic is None:
                return
            elif change == "delete":
                self.virtual.broker.delete_topic(topic)
            elif change == "grow":
                cluster.add_partitions(topic, len(topic.partitions) + 1)
            elif change == "move leader":
                server.move_leader(name, 0, node_id)
            elif change == "reassign":
                partition = topic.partitions[0]
                cluster.controller.reassign(partition, plan(partition, (node_id,)))
        except (ClusterError, FaultError):
            pass
        self.virtual.settle()

    def responses(self) -> list[bytes]:
        """Send each request twice to each listener of the running brokers."""
        received: list[bytes] = []
        always = nullcontext() if self.cached else patch.object(ResponseCache, "_add")
        with always:
            for node_id, listener in ((node_id, listener) for node_id in NODES for listener in (0, 1)):
                controller = type(self.virtual.cluster).controller.if_made(self.virtual.cluster)
                if controller is not None and controller.has_stopped(node_id):
                    continue
                client = self.virtual.client(node_id=node_id, listener=listener)
                client.on_bytes = received.append
                for message, version in (*REQUESTS, *REQUESTS):
                    client.send(message, version)
                    self.virtual.advance(1)
                client.leave()
                self.virtual.settle()
        return received

    def counters(self) -> list[object]:
        """Return the counted requests and errors, and the journal."""
        routes = [
            (node_id, route.label, route.requests, route.errors)
            for node_id, server in self.virtual.cluster_server.servers.items()
            for route in server.exchange.routes
        ]
        return [*routes, *self.virtual.journal.events()]


RULES: dict[str, Callable[[str, int], Rule]] = {
    "unknown leader": lambda name, _: Rule("unknown-leader", topic=name),
    "controller outage": lambda *_: Rule("controller-lost"),
    "slow elections": lambda *_: Rule(SlowElection(takes="5ms")),
    "unclean election": lambda name, _: Rule("unclean-election", topic=name),
    "stale metadata": lambda _, node_id: Rule("stale-metadata", broker=node_id),
    "metadata lag": lambda _, node_id: Rule(MetadataLag(lag="5ms"), broker=node_id),
}
CHANGES = (
    "create", "create", "delete", "grow", "move leader", "reassign", "stop", "crash", "start", "isolate", "rejoin",
    "feature", "quota", "no quota", *RULES, "no rule",
)  # fmt: skip


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.sampled_from(NAMES), st.sampled_from(NODES)), min_size=1, max_size=8
    )
)
@example(changes=[("create", "a", 1), ("grow", "a", 1), ("delete", "a", 1), ("create", "a", 1)])
@example(changes=[("create", "a", 1), ("quota", "a", 1), ("no quota", "a", 1), ("unknown leader", "a", 1)])
@example(
    changes=[("create", "a", 1), ("metadata lag", "a", 2), ("crash", "a", 1), ("start", "a", 1), ("feature", "", 1)]
)
@example(changes=[("create", "a", 1), ("slow elections", "a", 1), ("move leader", "a", 2), ("reassign", "a", 3)])
@example(
    changes=[("create", "a", 1), ("move leader", "a", 2), ("isolate", "a", 2), ("create", "b", 1), ("rejoin", "a", 2)]
)
@example(changes=[("create", "a", 1), ("stop", "a", 1), ("start", "a", 1), ("controller outage", "a", 1)])
def test_cached_responses_equal_new_ones(changes: list[tuple[str, str, int]]) -> None:
    with_cache, without = Cluster(cached=True), Cluster(cached=False)
    for change in changes:
        with_cache.apply(*change)
        without.apply(*change)
        assert with_cache.responses() == without.responses(), f"after {change}"
    assert with_cache.counters() == without.counters()


# -- when it is used ---------------------------------------------------------------------------------------------------


class Handled:
    """Counts the requests that the handler of Metadata gets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        handle = metadata.handle

        def counted(*args: Any) -> Any:
            self.count += 1
            return handle(*args)

        monkeypatch.setattr(metadata, "handle", counted)


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Handled:
    return Handled(monkeypatch)


def test_equal_requests_of_all_clients_are_handled_once(handled: Handled, broker: VirtualBroker, topic: Topic) -> None:
    responses = [broker.client(name).call(request("t"), 12) for name in ("one", "two")]
    assert responses[0] == responses[1]
    assert [one.partition_index for one in responses[0].topics[0].partitions] == [0]
    assert handled.count == 1
    broker.client().call(request("t"), 11)
    assert handled.count == 2, "versions have different encodings"


def recreate(broker: VirtualBroker) -> None:
    broker.broker.delete_topic(broker.cluster.topics["t"])
    broker.topic("t", replicas=2)


def move_leader(broker: VirtualBroker) -> None:
    partition = broker.partition()
    broker.cluster_server.move_leader("t", 0, next(one for one in partition.isr if one != partition.leader))


def restart(broker: VirtualBroker) -> None:
    broker.cluster_server.stop_broker(2)
    broker.run(broker.cluster_server.start_broker(2))
    broker.settle()


def rejoin(broker: VirtualBroker) -> None:
    broker.cluster_server.isolate_broker(1)
    broker.cluster_server.rejoin_broker(1)


ENDING_CHANGES = {
    "nothing changes": (lambda _: None, 1),
    "a topic is created": (lambda broker: broker.topic("other"), 2),
    "the topic grows": (lambda broker: broker.cluster.add_partitions(broker.cluster.topics["t"], 2), 2),
    "the topic is deleted and created again": (recreate, 2),
    "a leader moves": (move_leader, 2),
    "a broker stops": (lambda broker: broker.cluster_server.stop_broker(2), 2),
    "a broker stops and starts": (restart, 2),
    "the broker is isolated": (lambda broker: broker.cluster_server.isolate_broker(1), 3),
    "the broker was isolated, and nothing changed": (rejoin, 2),
    "the controller is lost": (lambda broker: add(broker, Rule("controller-lost")), 2),
    "its metadata is stale": (lambda broker: add(broker, Rule("stale-metadata", broker=1)), 3),
    "it was stale": (lambda broker: add(broker, Rule("stale-metadata", broker=1)).remove(), 2),
    "a fault rule has applied": (lambda broker: add(broker, Rule(Delay(ms="1ms"))).remove(), 1),
    "a fault rule applies": (lambda broker: add(broker, Rule(Delay(ms="1ms"))), 3),
    "requests have a quota of time": (
        lambda broker: broker.cluster.client_quotas.alter(ANONYMOUS, {"request_percentage": 50.0}),
        3,
    ),
}


@pytest.mark.parametrize(("change", "times"), ENDING_CHANGES.values(), ids=ENDING_CHANGES)
def test_change_ends_the_use_of_cached_responses(
    handled: Handled, change: Callable[[VirtualBroker], object], times: int
) -> None:
    broker = VirtualBroker("sluice.brokers=3")
    broker.topic("t", replicas=2)

    def call() -> None:
        broker.client().send(request("t"), 12)
        broker.advance(10)

    call()
    change(broker)
    call()
    call()
    assert handled.count == times


NOT_CACHED = {
    "with an error": (["missing"], []),
    "to a large request": (["t"] * 1_000, []),
    "with an authorizer": (
        ["t"],
        [
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found=true",
        ],
    ),
}


@pytest.mark.parametrize(("names", "overrides"), NOT_CACHED.values(), ids=NOT_CACHED)
def test_response_is_not_cached(handled: Handled, names: list[str], overrides: list[str]) -> None:
    broker = broker_with_topic(*overrides)
    for _ in range(2):
        broker.client().call(request(*names), 12)
    assert handled.count == 2


@pytest.mark.parametrize(("owner", "function"), [(metadata, "handle"), (RequestContext, "encode")])
def test_response_is_not_cached_if_a_topic_is_created_meanwhile(
    handled: Handled, broker: VirtualBroker, topic: Topic, owner: object, function: str
) -> None:
    def creating(*args: Any) -> Any:  # as between the slices of a long request
        result = before(*args)
        if "other" not in broker.cluster.topics:
            broker.topic("other")
        return result

    before = getattr(owner, function)
    with patch.object(owner, function, creating):
        broker.client().call(request("t"), 12)
    broker.client().call(request("t"), 12)
    assert handled.count == 2


def test_response_is_not_cached_if_a_rule_that_changes_it_is_added_meanwhile() -> None:
    broker = VirtualBroker("sluice.brokers=3")
    for name in NAMES:
        broker.topic(name)
    rules: list[Fault] = []

    def decode(*args: Any) -> Any:  # as between the slices of a long request
        rules.append(add(broker, Rule(WrongLeader(epoch="new"))))
        return decode_in_slices(*args)

    def epochs() -> list[int]:
        topics = broker.client().call(request(*NAMES), 12).topics
        return [partition.leader_epoch for topic in topics for partition in topic.partitions]

    with patch("sluice.broker.exchange.large_requests.decode_in_slices", decode):
        assert epochs() == [1, 1]
    rules[0].remove()
    assert epochs() == [0, 0]


def test_clients_of_different_addresses_get_their_own(broker: VirtualBroker, topic: Topic) -> None:
    hosts = []
    for host in ("10.0.0.1", "10.0.0.2", "10.0.0.1"):  # as with a listener on all interfaces
        client = broker.client()
        client.connection.advertised = Endpoint("PLAINTEXT", host, 9092)
        hosts += [one.host for one in client.call(request("t"), 12).brokers]
    assert hosts == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]


def test_cache_is_emptied_when_it_is_full(
    handled: Handled, broker: VirtualBroker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "_MOST_BYTES", 300)
    for version in (12, 11, 12):  # each takes about 150 bytes
        broker.client().call(request("t"), version)
    assert handled.count == 2
    broker.client().call(request("t"), 10)
    broker.client().call(request("t"), 12)
    assert handled.count == 4
