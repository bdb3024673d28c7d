"""Evaluation of a group's topic regular expressions."""

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerState
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.coordinators import reload_groups
from tests.support.group_members import converge, joined, settled
from tests.support.held_worker import HeldWorker
from tests.support.virtual_broker import VirtualBroker

REFRESH_MS = 600_000


@pytest.fixture
def broker() -> VirtualBroker:
    broker = VirtualBroker(AT_ONCE)
    for name in ("t1", "t2", "other"):
        broker.topic(name, 2)
    return broker


def test_matching_topics_are_assigned_with_the_second_heartbeat(broker: VirtualBroker) -> None:
    member = ConsumerMember(broker, "m", regex="t.")
    assert (member.join().member_epoch, member.partitions) == (1, {})
    assert consumer_group(broker).state is ConsumerState.ASSIGNING
    member.heartbeat()
    assert (member.epoch, member.partitions) == (2, {"t1": {0, 1}, "t2": {0, 1}})


def test_member_may_subscribe_by_name_and_by_regex(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m", topics=["other"], regex="t1"))
    assert member.partitions == {"other": {0, 1}}
    member.heartbeat()
    assert member.partitions == {"other": {0, 1}, "t1": {0, 1}}


def test_created_topic_matches_only_after_ten_seconds(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m", regex="t."))
    member.heartbeat()
    broker.topic("t3", 1)
    broker.advance(10_000)
    converge(member)
    assert "t3" not in member.partitions
    broker.advance(1)
    converge(member)
    assert member.partitions["t3"] == {0}


def test_deleted_topic_is_revoked_immediately(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m", regex="t."))
    member.heartbeat()
    broker.broker.delete_topic(broker.partition("t1").topic)
    converge(member)
    assert member.owned == {broker.partition("t2").topic.topic_id: {0, 1}}
    assert consumer_group(broker).regexes["t."].topics == {"t1", "t2"}, "the regex is not evaluated again"


def test_regexes_are_evaluated_again_after_the_refresh_interval(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m", regex="t."))
    evaluated_ms = consumer_group(broker).regexes["t."].timestamp_ms
    for _ in range(REFRESH_MS // 40_000):
        broker.advance(40_000)
        member.heartbeat()
    assert consumer_group(broker).regexes["t."].timestamp_ms == evaluated_ms
    broker.advance(1)
    member.heartbeat()
    assert consumer_group(broker).regexes["t."].timestamp_ms == evaluated_ms + REFRESH_MS + 1


def test_new_regex_waits_for_the_evaluation_interval_and_a_resolved_one_does_not(broker: VirtualBroker) -> None:
    regexes = {"1": "t1", "2": "t2", "3": "t1"}
    one, two, three = settled(*(ConsumerMember(broker, name, regex=regex) for name, regex in regexes.items()))
    assert two.partitions == {}, "the last evaluation is less than ten seconds old"
    assert {*one.partitions.get("t1", ()), *three.partitions.get("t1", ())} == {0, 1}
    broker.advance(10_001)
    converge(one, two, three)
    assert two.partitions == {"t2": {0, 1}}


def test_unused_regex_is_removed(broker: VirtualBroker) -> None:
    one, two = settled(ConsumerMember(broker, "one", regex="t1"), ConsumerMember(broker, "two", regex="t1"))
    one.heartbeat(subscribed_topic_regex="", subscribed_topic_names=["other"])
    assert set(consumer_group(broker).regexes) == {"t1"}
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"other": {0, 1}}, {"t1": {0, 1}})
    two.leave()
    assert consumer_group(broker).regexes == {}
    assert one.heartbeat(subscribed_topic_regex="t2").error_code == 0
    converge(one)
    one.heartbeat(subscribed_topic_regex="")
    assert consumer_group(broker).regexes == {}


def test_resolved_regex_increments_the_group_epoch_immediately(broker: VirtualBroker) -> None:
    _, two = settled(ConsumerMember(broker, "one", regex="t1"), ConsumerMember(broker, "two", topics=["t2"]))
    epoch = consumer_group(broker).group_epoch
    two.heartbeat(subscribed_topic_regex="t1")
    assert consumer_group(broker).group_epoch == epoch + 1
    two.heartbeat(subscribed_topic_regex="")
    assert consumer_group(broker).group_epoch == epoch + 2


def test_regexes_are_resolved_in_the_worker(broker: VirtualBroker) -> None:
    """Ten thousand topics and a complex expression would hold the event loop for seconds."""
    worker = broker.cluster.runtime.worker = HeldWorker()
    member = joined(ConsumerMember(broker, "m", regex="t."))
    member.heartbeat()
    assert (len(worker), consumer_group(broker).regexes) == (1, {})
    worker.work()
    member.heartbeat()
    assert member.partitions == {"t1": {0, 1}, "t2": {0, 1}}


def test_regex_without_a_subscriber_when_it_is_resolved_is_ignored(broker: VirtualBroker) -> None:
    worker = broker.cluster.runtime.worker = HeldWorker()
    member = joined(ConsumerMember(broker, "m", regex="t1"))
    member.heartbeat(subscribed_topic_regex="t2")
    worker.work()
    member.heartbeat()
    worker.work()
    member.heartbeat()
    assert [*consumer_group(broker).regexes] == ["t2"]
    assert member.partitions == {"t2": {0, 1}}


def test_resolved_regexes_of_a_group_that_is_gone_are_ignored(broker: VirtualBroker) -> None:
    worker = broker.cluster.runtime.worker = HeldWorker()
    ConsumerMember(broker, "m", regex="t1").join()
    reload_groups(broker)
    worker.work()
    assert consumer_group(broker).regexes == {}
