"""Active rules in virtual time: client-visible effects and hit counts."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.requests.fault_execution import FaultExecution, RuleHit
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.journal_events import Fault as FaultEvent
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.errors import ErrorCode
from tests.support.faults import add
from tests.support.records import batch, fetch, fetched, fetched_bytes, produce
from tests.support.sasl import SASL, logged_in, plain
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker, broker_with_topic

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def started(*overrides: str, partitions: int = 3) -> VirtualBroker:
    broker = VirtualBroker(JOURNAL, *overrides)
    broker.topic("t", partitions)
    return broker


@pytest.fixture
def broker() -> VirtualBroker:
    return started()


def to_all(acks: int = 1, partitions: int = 3) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch(b"v")) for index in range(partitions)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def codes(response: object) -> list[int]:
    """Return the error codes of the partitions of a produce response, in order."""
    return [item.error_code for topic in response.responses for item in topic.partition_responses]  # type: ignore[attr-defined]  # a response


def log_end_offsets(broker: VirtualBroker) -> list[int]:
    return [partition.log.log_end_offset for partition in broker.cluster.topics["t"].partitions]


def code_of(client: Client, version: int = 9, **fields: Any) -> int:
    (code,) = codes(client.call(produce(version, **fields), version))
    return code


def metadata_codes(client: Client, name: str = "t") -> list[int]:
    response = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
    return [topic.error_code for topic in response.topics]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_only_the_named_partition_fails_and_gets_no_records(broker: VirtualBroker) -> None:
    add(broker, Rule(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", topic="t", partition=1))
    response = broker.client().call(to_all(), 9)
    assert codes(response) == [0, NOT_LEADER, 0]
    assert [item.base_offset for item in response.responses[0].partition_responses] == [0, -1, 0]
    assert log_end_offsets(broker) == [1, 0, 1]


def test_all_partitions_fail_if_none_is_named(broker: VirtualBroker) -> None:
    add(broker, Rule(Error(6), api="Produce"))
    assert codes(broker.client().call(to_all(), 9)) == [NOT_LEADER] * 3
    assert log_end_offsets(broker) == [0, 0, 0]


def test_error_after_the_append_keeps_the_records(client: Client, broker: VirtualBroker) -> None:
    add(broker, Rule(Error(7, when="after"), topic="t", partition=[0, 2], api="Produce", times=1))
    assert codes(client.call(to_all(), 9)) == [7, 0, 7]
    assert codes(client.call(to_all(), 9)) == [0, 0, 0]
    assert log_end_offsets(broker) == [2, 2, 2]


def test_topic_patterns_match_names_of_topic_ids(client: Client, broker: VirtualBroker) -> None:
    t, u = broker.cluster.topics["t"], broker.topic("u")
    add(broker, Rule(Error(6), api="Produce", topic="t*"))
    found = [code_of(client, 13, topic="", topic_id=topic.topic_id) for topic in (t, u)]
    assert found == [NOT_LEADER, 0]


@pytest.mark.parametrize("partition", [None, 1], ids=["as a whole", "in one partition"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_acks_0_produce_with_an_error_closes_the_connection(
    broker: VirtualBroker, when: str, partition: int | None
) -> None:
    action = Error("NOT_LEADER_OR_FOLLOWER", when=when)  # type: ignore[arg-type]  # a valid literal
    add(broker, Rule(action, api="Produce", partition=partition))
    client = broker.client()
    client.send(to_all(acks=0), 9)
    assert not client.is_open
    assert client.take_responses() == []


def test_acks_all_produce_returns_an_error_for_the_named_partition_only() -> None:
    broker = started("sluice.brokers=2", "sluice.replication.delay.ms=10")
    add(broker, Rule(Error(6), api="Produce", partition=0))
    led = [p.index for p in broker.cluster.topics["t"].partitions if p.index and broker.broker.replicas.leads(p)]
    client = broker.client()
    client.send(to_all(acks=-1), 9)
    broker.advance(100)
    response = codes(client.response().message)
    assert [response[index] for index in led] == [0] * len(led)
    assert response[0] == NOT_LEADER


def test_rule_removed_during_a_request_leaves_its_response_complete() -> None:
    broker = started("sluice.brokers=2", "sluice.replication.delay.ms=10")
    fault = add(broker, Rule(Error(6), api="Produce", partition=0))
    client = broker.client()
    client.send(to_all(acks=-1), 9)
    fault.remove()
    broker.advance(100)
    assert len(codes(client.response().message)) == 3


def test_metadata_keeps_its_brokers_when_topics_fail(client: Client, broker: VirtualBroker) -> None:
    broker.topic("u")
    add(broker, Rule(Error("LEADER_NOT_AVAILABLE"), api="Metadata", topic="t"))
    t, u = (MetadataRequestTopic(name=name) for name in "tu")
    for topics, expected in ((None, {"t": 5, "u": 0}), ([t, u], {"t": 5, "u": 0}), ([t], {"t": 5})):
        response = client.call(MetadataRequest(topics=topics), 9)
        assert [each.node_id for each in response.brokers] == [1]
        assert {topic.name: topic.error_code for topic in response.topics} == expected


def test_failed_topic_is_not_auto_created() -> None:
    broker = started("auto.create.topics.enable=true")
    add(broker, Rule(Error(3), api="Metadata", topic="new"))
    assert metadata_codes(broker.client(), "new") == [3]
    assert "new" not in broker.cluster.topics


def test_failed_coordinator_is_returned_with_its_key(broker: VirtualBroker) -> None:
    add(broker, Rule(Error("COORDINATOR_NOT_AVAILABLE"), group="g1"))
    response = broker.client().call(FindCoordinatorRequest(coordinator_keys=["g0", "g1"]), 4)
    assert {(one.key, one.error_code) for one in response.coordinators} == {("g0", 15), ("g1", 15)}
    assert broker.client().call(FindCoordinatorRequest(key="g0"), 3).error_code == 0


def test_api_versions_error_falls_back_to_version_0(client: Client, broker: VirtualBroker) -> None:
    add(broker, Rule(Error("UNSUPPORTED_VERSION"), api="ApiVersions", version="1-"))
    client.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3, answered_in=0)
    response = client.response().message
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [each.api_key for each in response.api_keys] == [18]
    assert client.call(ApiVersionsRequest(), 0).error_code == 0


LOGIN_ERRORS = [("SaslHandshake", "UNSUPPORTED_SASL_MECHANISM"), ("SaslAuthenticate", "SASL_AUTHENTICATION_FAILED")]


@pytest.mark.parametrize(("api", "code"), LOGIN_ERRORS)
def test_failed_authentication_closes_the_connection(api: str, code: str) -> None:
    broker = VirtualBroker(*SASL, "connection.failed.authentication.delay.ms=100")
    add(broker, Rule(Error(code), api=api))
    client = broker.client()
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    if api == "SaslAuthenticate":
        assert client.response().message.error_code == 0
        client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    broker.advance(100)
    assert client.response().message.error_code == ErrorCode[code]
    assert not client.is_open


def test_rule_matches_the_authenticated_principal() -> None:
    broker = broker_with_topic(*SASL)
    add(broker, Rule(Error(6), api="Produce", principal="User:ali*"))
    assert code_of(logged_in(broker)) == NOT_LEADER
    broker.cluster_server.faults.clear()
    add(broker, Rule(Error(6), api="Produce", principal="User:bob"))
    assert code_of(logged_in(broker)) == 0


# -- fetches -----------------------------------------------------------------------------------------------------------


def test_fetch_reads_the_healthy_partitions(client: Client, broker: VirtualBroker) -> None:
    client.call(to_all(), 9)
    add(broker, Rule(Error("OFFSET_OUT_OF_RANGE"), api="Fetch", partition=1))
    requested = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(3)]
    response = client.call(FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=requested)]), 11)
    found = [(item.error_code, bool(item.records)) for item in response.responses[0].partitions]
    assert found == [(0, True), (1, False), (0, True)]


def test_failed_partition_ends_a_long_poll(client: Client, broker: VirtualBroker) -> None:
    add(broker, Rule(Error(6), api="Fetch", partition=0, times=1))
    assert fetched(client.call(fetch(max_wait_ms=500), 11)).error_code == NOT_LEADER
    client.send(fetch(max_wait_ms=500), 11)
    broker.advance(499)
    assert client.take_responses() == []


def test_fetch_session_returns_a_failure_and_then_its_end(client: Client, broker: VirtualBroker) -> None:
    session = FetchRequest(session_epoch=0, max_bytes=1 << 20, topics=fetch(0).topics)
    session_id = client.call(session, 11).session_id
    assert session_id
    fault = add(broker, Rule(Error(6), api="Fetch", topic="t"))
    follow = FetchRequest(session_id=session_id, session_epoch=1, max_bytes=1 << 20)
    assert fetched(client.call(follow, 11)).error_code == NOT_LEADER
    fault.remove()
    follow.session_epoch = 2
    assert fetched(client.call(follow, 11)).error_code == 0
    follow.session_epoch = 3
    assert client.call(follow, 11).responses == [], "an unchanged partition is not returned"


def test_fetch_session_can_be_lost(client: Client, broker: VirtualBroker) -> None:
    add(broker, Rule(Error("FETCH_SESSION_ID_NOT_FOUND"), api="Fetch", times=1))
    response = client.call(FetchRequest(session_id=7, session_epoch=3), 11)
    assert (response.error_code, response.session_id, response.responses) == (70, 0, [])


# -- delays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "appended"), [("before", 0), ("after", 1)])
def test_delay_applies_before_or_after_handling(broker: VirtualBroker, when: str, appended: int) -> None:
    add(broker, Rule(Delay("20ms", when=when), api="Produce"))  # type: ignore[arg-type]  # a valid literal
    client = broker.client()
    client.send(produce(9), 9)
    broker.advance(19)
    assert (client.take_responses(), log_end_offsets(broker)[0]) == ([], appended)
    broker.advance(1)
    assert codes(client.response().message) == [0]
    assert log_end_offsets(broker)[0] == 1


def test_delayed_request_keeps_its_records(broker: VirtualBroker) -> None:
    add(broker, Rule(Delay("20ms"), api="Produce", client_id="slow"))
    slow, fast = broker.client("slow"), broker.client("fast")
    slow.send(produce(9, batch(b"from the slow one")), 9)
    fast.call(produce(9, batch(b"x" * 500), partition=1), 9)
    broker.advance(20)
    assert codes(slow.response().message) == [0]
    assert b"from the slow one" in fetched_bytes(fast.call(fetch(), 11))


def test_delays_of_several_rules_add_up_and_requests_stay_in_order(client: Client, broker: VirtualBroker) -> None:
    faults = broker.cluster_server.faults
    faults.add(Rule(Delay("20ms"), api="Produce"))
    faults.add(Rule(Delay("10ms", when="after"), api="Produce"))
    client.send_together((produce(9), 9), (HeartbeatRequest(), 3), (produce(9), 9))
    broker.advance(29)
    assert client.take_responses() == []
    broker.advance(1)
    assert [response.api for response in client.take_responses()] == ["Produce", "Heartbeat"]
    broker.advance(30)
    assert client.response().api == "Produce"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("delayed", [False, True], ids=["first request", "read during another"])
def test_black_holed_connection_is_closed_when_its_client_ends_it(when: str, delayed: bool) -> None:
    broker = broker_with_topic()
    faults = broker.cluster_server.faults
    if delayed:
        faults.add(Rule(Delay("20ms"), api="Produce", times=1))
    faults.add({"action": {"kind": "black-hole", "when": when}, "api": "Produce", "on": [1 + delayed]})
    client = broker.client()
    for _ in range(4):
        client.send(produce(9), 9)
    broker.advance(20)
    if delayed:
        assert client.response().api == "Produce"
    client.end()
    assert not broker.server.connections
    waits = broker.broker.fault_waits
    assert waits is not None
    assert not waits.delayed


@pytest.mark.parametrize("action", ["black-hole", {"kind": "delay", "ms": "60m"}], ids=["black hole", "delay"])
def test_waiting_request_continues_when_its_rule_is_removed(broker: VirtualBroker, action: object) -> None:
    fault = broker.cluster_server.faults.add({"action": action, "api": "Produce"})
    client = broker.client()
    client.send(produce(9), 9)
    broker.advance(60_000)
    assert (client.take_responses(), log_end_offsets(broker)[0]) == ([], 0)
    fault.remove()
    assert codes(client.response().message) == [0]
    assert broker.broker.fault_waits is not None
    assert len(broker.broker.fault_waits) == 0


def test_disconnected_client_leaves_no_state_in_a_black_hole(client: Client, broker: VirtualBroker) -> None:
    broker.cluster_server.faults.add({"action": "black-hole"})
    client.send(produce(9), 9)
    client.leave()
    assert broker.broker.fault_waits is not None
    assert len(broker.broker.fault_waits) == 0
    assert broker.broker.fault_waits.watched == 0  # a watched operation references its connection


@pytest.mark.parametrize(
    ("delay", "low", "high"),
    [(Delay(min="10ms", max="20ms"), 10, 20), (Delay(mean="10ms"), 0, 200), (Delay(mean="10ms", stddev="2ms"), 0, 30)],
    ids=["uniform", "exponential", "normal"],
)
def test_delay_is_drawn_from_its_distribution(delay: Delay, low: float, high: float) -> None:
    random = Random(1)
    drawn = [delay.draw(random) for _ in range(2000)]
    assert low <= min(drawn)
    assert max(drawn) <= high
    assert len(set(drawn)) > 1000
    assert sum(drawn) / len(drawn) == pytest.approx(15 if delay.min else 10, rel=0.1)


# -- closed connections ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize(("when", "appended"), [("before", 0), ("after", 1), ("mid-response", 1)])
def test_connection_is_closed_at_the_specified_moment(
    broker: VirtualBroker, when: str, appended: int, how: str
) -> None:
    add(broker, Rule(Close(when=when, how=how), api="Produce"))  # type: ignore[arg-type]  # valid literals
    client = broker.client()
    sent = bytearray()
    client.on_bytes = sent.extend
    client.send_together((HeartbeatRequest(), 3), (produce(9), 9), (produce(9), 9))
    assert not client.is_open
    assert client.transport.aborted == (how == "rst")
    assert log_end_offsets(broker)[0] == appended
    heartbeat = 4 + int.from_bytes(sent[:4])
    rest = bytes(sent[heartbeat:])
    assert bool(rest) == (when == "mid-response")
    if rest:
        assert len(rest) < 4 + int.from_bytes(rest[:4]), "the frame is incomplete"


# -- matching ----------------------------------------------------------------------------------------------------------


def hit(rule: dict[str, object], count: int = 6, client: Callable[[VirtualBroker], Client] | None = None) -> str:
    """Return which of `count` produce requests, 10 ms apart, fail."""
    broker = started()
    broker.cluster_server.faults.add({"action": {"kind": "error", "code": 6}, "api": "Produce"} | rule)
    producer = broker.client() if client is None else client(broker)
    pattern = ""
    for _ in range(count):
        pattern += "x" if code_of(producer) else "."
        broker.advance(10)
    return pattern


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, "xxxxxx"),
        ({"times": 2}, "xx...."),
        ({"on": [1, 4]}, "x..x.."),
        ({"schedule": "2 fail, 1 pass, repeat"}, "xx.xx."),
        ({"during": 25}, "xxx..."),
        ({"after": 20}, "..xxxx"),
        ({"until": 20}, "xx...."),
        ({"after": "10ms", "until": "0.03s"}, ".xx..."),
        ({"request": 3}, "..x..."),
        ({"connection_older_than": 15}, "..xxxx"),
        ({"connection_younger_than": 15}, "xx...."),
        ({"client_id": "cl*"}, "xxxxxx"),
        ({"client_id": "cli?nt"}, "xxxxxx"),
        ({"client_id": "cl"}, "......"),
        ({"version": "10-"}, "......"),
        ({"version": "-9"}, "xxxxxx"),
        ({"version": 9}, "xxxxxx"),
        ({"listener": "PLAINTEXT"}, "xxxxxx"),
        ({"listener": "SSL"}, "......"),
        ({"topic": "t"}, "xxxxxx"),
        ({"topic": "u*"}, "......"),
        ({"topic": "t", "partition": [1, 2]}, "......"),
        ({"partition": 0, "request": 2}, ".x...."),
        ({"transactional_id": "*"}, "......"),
        ({"api": ["Fetch", "Produce"]}, "xxxxxx"),
        ({"api": "Fetch"}, "......"),
        ({"software_name": "test"}, "......"),
        ({"principal": "User:ANONYMOUS"}, "xxxxxx"),
    ],
    ids=str,
)
def test_rule_hits_the_expected_requests(rule: dict[str, object], expected: str) -> None:
    assert hit(rule) == expected


def test_nth_request_is_counted_per_connection(broker: VirtualBroker) -> None:
    add(broker, Rule(Error(6), api="Produce", request=2))
    first, second = broker.client(), broker.client()
    assert [code_of(client) for client in (first, second, first, second, first)] == [0, 0, 6, 6, 0]


def test_rule_matches_the_client_software() -> None:
    def client(broker: VirtualBroker) -> Client:
        found = broker.client()
        code_of(found)
        found.call(ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.6.0"), 3)
        return found

    assert hit({"software_name": "librdkafka", "software_version": "2.*", "times": 3}, 4, client) == "xxx."


def test_probability_is_per_rule_and_reproducible_by_seed() -> None:
    patterns = [hit({"probability": 0.5, "seed": seed}, 40) for seed in (1, 1, 2)]
    assert patterns[0] == patterns[1] != patterns[2]
    assert 8 < patterns[0].count("x") < 32
    assert hit({"probability": 0.5}, 40) == hit({"probability": 0.5}, 40)
    assert hit({"probability": 0.5}, 40) != hit({"probability": 0.5, "id": "another"}, 40)


def test_rule_applies_to_the_named_brokers() -> None:
    broker = started("sluice.brokers=3")
    add(broker, Rule(Error(5), api="Metadata", broker=[2, 3]))
    assert [metadata_codes(broker.client(node_id=node_id)) for node_id in (1, 2, 3)] == [[0], [5], [5]]


def test_restarted_broker_applies_the_rules() -> None:
    broker = started("sluice.brokers=2")
    add(broker, Rule(Error(5), api="Metadata", broker=2))
    broker.cluster_server.stop_broker(2)
    broker.run(broker.cluster_server.start_broker(2))
    assert metadata_codes(broker.client(node_id=2)) == [5]


def test_route_without_rules_keeps_its_handler(client: Client, broker: VirtualBroker) -> None:
    client.call(produce(9), 9)
    (route,) = broker.server.exchange.routes
    handler = route.handle
    faults = broker.cluster_server.faults
    faults.add(Rule(Error(70), api="Fetch"))
    assert route.handle == handler
    fault = faults.add(Rule(Error(6), api="Produce", times=1))
    assert route.handle != handler
    assert code_of(client) == NOT_LEADER
    assert fault.is_over
    assert route.handle == handler, "an ended rule must restore the handler"


# -- counters and journal ----------------------------------------------------------------------------------------------


def test_hits_are_counted_and_in_the_journal(client: Client, broker: VirtualBroker) -> None:
    fault = add(broker, Rule(Error(6), id="moved", api="Produce", schedule="1 fail, 1 pass, repeat"))
    assert [code_of(client) for _ in range(3)] == [6, 0, 6]
    assert (fault.matched, fault.hits) == (3, 2)
    requests = broker.journal.requests()
    assert [(each.rule_id, each.error_codes) for each in requests] == [("moved", [6]), ("", []), ("moved", [6])]
    fault_events = [each for each in broker.journal.events() if isinstance(each, FaultEvent)]
    assert [(each.rule_id, each.action, each.api) for each in fault_events] == [("moved", "error", "Produce")] * 2


def test_failing_rule_is_disabled_and_the_request_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Error, course: FaultExecution, hit: RuleHit) -> None:
        raise KeyError("internal error")

    monkeypatch.setattr(Error, "before", wrong)
    broker = started()
    faults = broker.cluster_server.faults
    fault = faults.add(Rule(Error(6), api="Produce"))
    client = broker.client()
    assert [code_of(client), code_of(client)] == [0, 0]
    assert (fault.enabled, fault.hits, fault.problem) == (False, 1, "KeyError: 'internal error'")
    assert faults.list() == [fault]
    assert faults.disabled == 1


# -- other classes of actions ------------------------------------------------------------------------------------------


def test_broker_is_isolated_while_its_rule_lasts() -> None:
    broker = started("sluice.brokers=3")
    faults = broker.cluster_server.faults
    fault = faults.add(Rule("isolate", broker=2, after="1s", during="5s"))
    isolated = broker.cluster.brokers[2]
    states = []
    for _ in range(3):
        states.append(isolated.is_isolated)
        broker.advance(3_000)
    assert states == [False, True, False]
    assert fault.hits == 1


def test_removing_a_rule_reverts_its_broker_state() -> None:
    broker = started("sluice.brokers=3")
    fault = add(broker, Rule("isolate", broker=2))
    assert broker.cluster.brokers[2].is_isolated
    fault.remove()
    assert not broker.cluster.brokers[2].is_isolated


def test_invalid_broker_state_is_rejected_or_later_disables_the_rule() -> None:
    broker = started("sluice.brokers=3")
    faults = broker.cluster_server.faults
    broker.cluster_server.stop_broker(2)
    with pytest.raises(FaultError, match=r"^fault\.action: .*2"):
        faults.add(Rule("isolate", broker=2))
    fault = faults.add(Rule("isolate", broker=2, after="1s"))
    broker.advance(1_000)
    assert not fault.enabled
    assert "2" in fault.problem


def test_cached_misses_are_dropped_when_the_rules_change(broker: VirtualBroker) -> None:
    broker.topic("u")
    faults = broker.cluster_server.faults
    faults.add(Rule(Error(6), api="Produce", topic="u"))
    client = broker.client()
    assert [code_of(client), code_of(client)] == [0, 0]
    assert code_of(client, topic="u") == NOT_LEADER
    faults.add(Rule(Error(5), api="Produce", topic="t", partition=[0, 1]))
    assert code_of(client) == 5
    assert code_of(client, partition=2) == 0
    assert codes(client.call(to_all(), 9)) == [5, 5, 0]
