"""What is written to __consumer_offsets about a consumer group, in which order, and in which bytes."""

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.consumer import records as records
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata, MemberState
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownMember
from sluice.broker.coordinator.group.consumer.topic_regex import ResolvedRegex
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import Record, iter_records
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.virtual_broker import VirtualBroker

T = bytes(range(16))
KINDS = {
    3: "group",
    4: "partition metadata",
    5: "member",
    6: "target epoch",
    7: "target",
    8: "current",
    16: "expression",
}


def hexed(record: KeyValue) -> tuple[str, str | None]:
    key, value = record
    return key.hex(), None if value is None else value.hex()


def test_a_groups_epoch_and_its_targets() -> None:
    group = ConsumerGroup("g")
    group.group_epoch, group.metadata_hash = 3, 5
    assert hexed(records.group_epoch(group)) == ("0003000167", "0000000000030100080000000000000005")
    group.metadata_hash = 0
    assert hexed(records.group_epoch(group))[1] == "00000000000300"
    group.assignment_epoch, group.assignment_timestamp_ms = 2, 7
    assert hexed(records.target_epoch(group)) == (
        "0006000167",
        "0000000000020100080000000000000007",
    )
    assert hexed(records.target_assignment("g", "m", {T: {1, 0}})) == (
        "000700016700016d",
        "000002" + T.hex() + "0300000000000000010000",
    )


def test_a_member() -> None:
    member = KnownMember(
        "m",
        instance_id="i",
        client_id="c",
        client_host="/h",
        subscribed_topic_names=frozenset({"b", "a"}),
        rebalance_timeout_ms=9,
    )
    plain = "00000269000263032f680302610262010000000900"
    assert hexed(records.member_metadata("g", member)) == ("000500016700016d", plain + "00")
    classic = member._replace(classic=ClassicMetadata(4, (("range", b"\1\2"),)))
    tagged = "0100110100000004020672616e67650301020000"
    assert hexed(records.member_metadata("g", classic))[1] == plain + tagged


def test_what_a_member_has_and_since_when() -> None:
    member = KnownMember(
        "m", 3, 2, MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 1}}, pending_revocation={T: {1: 2}}
    )
    one = "02" + T.hex() + "02000000000100050200000001"
    two = "02" + T.hex() + "02000000010100050200000002"
    assert hexed(records.current_assignment("g", member)) == (
        "000800016700016d",
        "0000000000030000000201" + one + two + "00",
    )


def test_a_regular_expression() -> None:
    resolved = ResolvedRegex(frozenset({"b", "a"}), 1, 2)
    assert hexed(records.regular_expression("g", "x.", resolved)) == (
        "00100001670002782e",
        "000003026102620000000000000001000000000000000200",
    )


class Written:
    """The records of the group "group", as they are written."""

    def __init__(self, broker: VirtualBroker) -> None:
        self._log = broker.broker.groups.log.partition_of("group").log
        self._seen = 0

    def kinds(self) -> list[str]:
        """Those since the last look; an x for those that say that something is no more."""
        end = self._log.log_end_offset
        parts = self._log.read(self._seen, 1 << 20, end, min_one_batch=True).parts if end > self._seen else []
        batches = [part[at : at + header.size_in_bytes] for part in parts for at, header in iter_batches(part)]
        records = [record for batch in batches for record in iter_records(batch)]
        self._seen = end
        return [("" if record.value is not None else "x ") + kind_of(record) for record in records]


def kind_of(record: Record) -> str:
    assert record.key is not None
    return KINDS[int.from_bytes(record.key[:2])]


def test_what_is_written_when() -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic("t", 2)
    written = Written(broker)
    one, two = ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "two", regex="t")
    one.join()
    assert written.kinds() == ["member", "group", "target", "target epoch", "current"]
    one.heartbeat()
    assert written.kinds() == []
    two.join()
    assert written.kinds() == ["member", "current", "expression", "group"]
    two.heartbeat()
    assert written.kinds() == ["target", "target", "target epoch", "current"]
    one.leave(-2)
    assert written.kinds() == ["current"]
    again = ConsumerMember(broker, "again", instance_id="i")
    again.join()
    replaced = ["x current", "x target", "x member", "member", "target", "current"]
    assert written.kinds() == [*replaced, "current"]
    two.leave()
    assert written.kinds() == ["x current", "x target", "x member", "x expression", "group"]
    again.leave()
    assert written.kinds() == ["x current", "x target", "x member", "group"]
    broker.client().ask(DeleteGroupsRequest(groups_names=["group"]), 2)
    assert written.kinds() == ["x target epoch", "x partition metadata", "x group"]
