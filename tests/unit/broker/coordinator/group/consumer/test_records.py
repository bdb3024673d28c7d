"""The records that a consumer group writes to __consumer_offsets: order and bytes."""

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup, regex_record
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata, MemberState, ResolvedRegex
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownMember
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import Record, iter_records
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.group_members import joined
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

T = bytes(range(16))
RECORD_TYPES = {
    3: "group",
    4: "partition metadata",
    5: "member",
    6: "target epoch",
    7: "target",
    8: "current",
    16: "expression",
}


def as_hex(record: KeyValue) -> tuple[str, str | None]:
    key, value = record
    return key.hex(), None if value is None else value.hex()


def test_group_epoch_and_target_assignment_records() -> None:
    group = ConsumerGroup("g")
    group.group_epoch, group.metadata_hash = 3, 5
    assert as_hex(group.group_record()) == ("0003000167", "0000000000030100080000000000000005")
    group.metadata_hash = 0
    assert as_hex(group.group_record())[1] == "00000000000300"
    group.group_epoch = 2
    assert as_hex(group.set_assignment_epoch(7)) == ("0006000167", "0000000000020100080000000000000007")
    assert as_hex(group.target_record("m", {T: {1, 0}})) == (
        "000700016700016d",
        "000002" + T.hex() + "0300000000000000010000",
    )


def test_member_metadata_record() -> None:
    member = KnownMember(
        "m",
        instance_id="i",
        client_id="c",
        client_host="/h",
        subscribed_topic_names=frozenset({"b", "a"}),
        rebalance_timeout_ms=9,
    )
    plain = "00000269000263032f680302610262010000000900"
    assert as_hex(ConsumerGroup("g").member_record(member)) == ("000500016700016d", plain + "00")
    classic = member._replace(classic=ClassicMetadata(4, (("range", b"\1\2"),)))
    tagged = "0100110100000004020672616e67650301020000"
    assert as_hex(ConsumerGroup("g").member_record(classic))[1] == plain + tagged


def test_current_assignment_record() -> None:
    member = KnownMember(
        "m", 3, 2, MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 1}}, pending_revocation={T: {1: 2}}
    )
    one = "02" + T.hex() + "02000000000100050200000001"
    two = "02" + T.hex() + "02000000010100050200000002"
    key, value = as_hex(ConsumerGroup("g").current_record(member))
    assert (key, value) == ("000800016700016d", "0000000000030000000201" + one + two + "00")


def test_resolved_regex_record() -> None:
    resolved = ResolvedRegex(frozenset({"b", "a"}), 1, 2)
    assert as_hex(regex_record("g", "x.", resolved)) == (
        "00100001670002782e",
        "000003026102620000000000000001000000000000000200",
    )


class WrittenRecords:
    """The records of the group "group"."""

    def __init__(self, broker: VirtualBroker) -> None:
        self._log = broker.broker.groups.log.partition_of("group").log
        self._read_to = 0

    def types(self) -> list[str]:
        """Return the types of the records since the last call; tombstones start with "x "."""
        end = self._log.log_end_offset
        parts = self._log.read(self._read_to, 1 << 20, end, min_one_batch=True).parts if end > self._read_to else []
        batches = [part[at : at + header.size_in_bytes] for part in parts for at, header in iter_batches(part)]
        records = [record for batch in batches for record in iter_records(batch)]
        self._read_to = end
        return [("" if record.value is not None else "x ") + type_of(record) for record in records]


def type_of(record: Record) -> str:
    assert record.key is not None
    return RECORD_TYPES[int.from_bytes(record.key[:2])]


def test_each_change_writes_its_records() -> None:
    broker = broker_with_topic(AT_ONCE, partitions=2)
    written = WrittenRecords(broker)
    one, two = joined(ConsumerMember(broker, "one", instance_id="i")), ConsumerMember(broker, "two", regex="t")
    assert written.types() == ["member", "group", "target", "target epoch", "current"]
    one.heartbeat()
    assert written.types() == []
    two.join()
    assert written.types() == ["member", "current", "expression", "group"]
    two.heartbeat()
    assert written.types() == ["target", "target", "target epoch", "current"]
    one.leave(-2)
    assert written.types() == ["current"]
    again = joined(ConsumerMember(broker, "again", instance_id="i"))
    replaced = ["x current", "x target", "x member", "member", "target", "current"]
    assert written.types() == [*replaced, "current"]
    two.leave()
    assert written.types() == ["x current", "x target", "x member", "x expression", "group"]
    again.leave()
    assert written.types() == ["x current", "x target", "x member", "group", "target epoch"]
    broker.client().call(DeleteGroupsRequest(groups_names=["group"]), 2)
    assert written.types() == ["x target epoch", "x partition metadata", "x group"]
