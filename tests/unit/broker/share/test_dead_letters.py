"""Dead-letter queues of share groups (KIP-1191): which records they get, and what happens without a valid topic."""

import pytest

from sluice.protocol.records.record import Record, iter_records
from tests.support import share_consumers as sharing
from tests.support.virtual_broker import VirtualBroker

QUEUE = "dlq.t"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable=true"


def member_with_queue(*overrides: str, **configs: str) -> sharing.ShareConsumer:
    """Return a member that has acquired records 0 and 1 of a group with a dead-letter queue."""
    broker = VirtualBroker(*sharing.ONE_PARTITION, *overrides)
    own = {name.replace("_", "."): value for name, value in configs.items()}
    own = {"errors.deadletterqueue.topic.name": QUEUE, "share.delivery.count.limit": "2"} | own
    broker.broker.cluster.group_configs.configure("group", own)
    topic = broker.topic("t")
    sharing.initialize(broker, topic)
    sharing.produce_values(broker, b"a", b"b")
    member = sharing.ShareConsumer(broker, topic)
    assert member.acquire() == [(0, 1, 1)]
    return member


def letters(member: sharing.ShareConsumer) -> list[Record]:
    member.broker.broker.actions.complete()
    topic = member.broker.broker.cluster.topics.get(QUEUE)
    if topic is None:
        return []
    log = topic.partitions[0].log
    found = log.read(0, 2**20, log.log_end_offset, min_one_batch=True)
    return [record for part in found.parts for record in iter_records(bytes(part))]


def in_flight(member: sharing.ShareConsumer) -> int:
    ((_, share),) = member.broker.broker.share_partitions
    return share.in_flight


@pytest.mark.parametrize(("copies", "value"), [("true", b"b"), ("false", None)])
def test_rejected_records_are_dead_letters(copies: str, value: bytes | None) -> None:
    configs = {"errors_deadletterqueue_copy_record_enable": copies}
    member = member_with_queue(AUTO_CREATE, **configs)
    member.acknowledge((0, 1, [sharing.ACCEPT, sharing.REJECT]))
    (letter,) = letters(member)
    assert letter.value == value
    assert dict(letter.headers) == {
        "__dlq.errors.topic": b"t",
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"1",
        "__dlq.errors.group": b"group",
        "__dlq.errors.delivery.count": b"1",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert in_flight(member) == 0


@pytest.mark.parametrize("how", ["released", "timed out"])
def test_records_delivered_too_often_are_dead_letters(how: str) -> None:
    member = member_with_queue(AUTO_CREATE)
    member.acknowledge((0, 1, [sharing.RELEASE]))
    assert member.acquire() == [(0, 1, 2)]
    if how == "released":
        member.acknowledge((0, 1, [sharing.RELEASE]))
    else:
        member.broker.advance(30_000)
    assert [dict(one.headers)["__dlq.errors.offset"] for one in letters(member)] == [b"0", b"1"]
    assert dict(letters(member)[0].headers)["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."
    assert in_flight(member) == 0


WITHOUT_A_QUEUE = {
    "no topic": ((), {}),
    "another prefix": ((AUTO_CREATE,), {"errors_deadletterqueue_topic_name": "other"}),
    "no queue": ((AUTO_CREATE,), {"errors_deadletterqueue_topic_name": ""}),
}


@pytest.mark.parametrize(("overrides", "configs"), WITHOUT_A_QUEUE.values(), ids=WITHOUT_A_QUEUE)
def test_records_are_archived_without_a_queue(overrides: tuple[str, ...], configs: dict[str, str]) -> None:
    member = member_with_queue(*overrides, **configs)
    member.acknowledge((0, 1, [sharing.REJECT]))
    assert letters(member) == []
    assert in_flight(member) == 0
    assert member.acquire() == []


def test_a_topic_must_be_enabled_as_a_queue() -> None:
    member = member_with_queue()
    member.broker.topic(QUEUE)
    member.acknowledge((0, 0, [sharing.REJECT]))
    assert letters(member) == []
    queue = member.broker.broker.cluster.topics[QUEUE]
    member.broker.broker.cluster.configure(queue, {"errors.deadletterqueue.group.enable": "true"})
    member.acknowledge((1, 1, [sharing.REJECT]))
    assert len(letters(member)) == 1


def test_a_new_leader_writes_what_the_old_one_did_not() -> None:
    member = member_with_queue()
    topic = member.broker.topic(QUEUE, errors_deadletterqueue_group_enable="true")
    queue, leader = topic.partitions[0], topic.partitions[0].leader
    queue.leader = -1
    member.acknowledge((0, 1, [sharing.REJECT]))
    assert in_flight(member) == 2
    shares = member.broker.broker.share_partitions
    shares.drop_partition(member.topic.partitions[0])
    queue.leader = leader
    again = sharing.ShareConsumer(member.broker, member.topic, "another")
    assert again.acquire() == []
    member.broker.settle()
    assert len(letters(member)) == 2
    assert in_flight(again) == 0
