"""Coordinators of a broker that restarts with its data directory."""

from pathlib import Path

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.transaction.metadata import PREPARE_ABORT, PREPARE_COMMIT, TransactionState
from sluice.broker.coordinator.transaction.records import key_bytes, value_bytes
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.coordinators import ONE_PARTITION, pictured
from tests.support.group_members import joined, settled
from tests.support.groups import Member, fetch_request, fetched, settled_group
from tests.support.share_groups import ShareMember
from tests.support.transactions import begun
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker


def start(directory: Path) -> VirtualBroker:
    return VirtualBroker(f"log.dirs={directory}", AT_ONCE, *ONE_PARTITION)


def stop(broker: VirtualBroker) -> None:
    for node in broker.cluster_server.brokers.values():
        node.close()
    broker.cluster.close()


def test_groups_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    broker = start(tmp_path)
    broker.topic("t", partitions=4)
    members = settled_group(broker, 2)
    members[0].commit(5)
    settled(*(ConsumerMember(broker, name, group_id="modern") for name in ("a", "b")))
    sharing = joined(ShareMember(broker, group_id="share"))
    broker.advance(1_000)
    sharing.heartbeat()
    assert sharing.partitions == {"t": [0, 1, 2, 3]}
    producer = begun(broker)
    assert producer.add_offsets("group") == producer.commit_offset("group", 9) == ErrorCode.NONE
    before = pictured(broker)
    stop(broker)

    broker = start(tmp_path)
    assert pictured(broker) == before
    for known in members:
        member = Member(broker)
        member.member_id, member.generation_id = known.member_id, known.generation_id
        assert member.heartbeat() == ErrorCode.NONE
    client = sharing.client = broker.client()
    assert sharing.heartbeat().member_epoch == sharing.epoch
    assert fetched(client.call(fetch_request(), 9))["t", 0] == (5, ErrorCode.NONE)
    producer.client = client
    assert producer.send(b"w") == producer.end() == ErrorCode.NONE
    assert fetched(client.call(fetch_request(), 9))["t", 0] == (9, ErrorCode.NONE)
    stop(broker)


PREPARED = {"commit": (PREPARE_COMMIT, "CompleteCommit"), "abort": (PREPARE_ABORT, "CompleteAbort")}


@pytest.mark.parametrize(("state", "final_state"), PREPARED.values(), ids=PREPARED)
def test_restart_completes_a_prepared_transaction_without_a_request(
    tmp_path: Path, state: TransactionState, final_state: str
) -> None:
    broker = start(tmp_path)
    broker.topic()
    begun(broker)
    [current] = broker.broker.transactions
    prepared = type(current)(
        "tx", current.producer_id, 60_000, WALL_START_MS, state, current.producer_epoch, partitions=current.partitions
    )
    log = CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC)
    assert log.append("tx", [(key_bytes("tx"), value_bytes(prepared, 2))], WALL_START_MS) == ErrorCode.NONE
    stop(broker)

    broker = start(tmp_path)
    t = broker.partition("t").log
    assert (t.log_end_offset, t.last_stable_offset) == (1, 0)
    broker.advance(1_000)
    assert (t.log_end_offset, t.last_stable_offset) == (2, 2)
    assert [transaction.state.label for transaction in broker.broker.transactions] == [final_state]
    stop(broker)


def test_open_transaction_times_out_after_a_restart_without_a_request(tmp_path: Path) -> None:
    broker = start(tmp_path)
    broker.topic()
    begun(broker, timeout_ms=20_000)
    stop(broker)

    broker = start(tmp_path)
    broker.advance(40_000)
    t = broker.partition("t").log
    assert t.last_stable_offset == t.log_end_offset == 2
    stop(broker)
