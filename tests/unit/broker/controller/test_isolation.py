"""What a broker that nobody reaches has for itself: a log that branches off, and a cluster as it was."""

import pytest

from sluice.broker.controller.isolation import IsolatedLog, IsolatedMetadata
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.server.cluster_server import ClusterServer
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, produce
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker
from tests.support.wire import error_codes


def branched(committed: int) -> IsolatedLog:
    """A log that branched off another with `committed` records, each a batch and a second after the one before."""
    broker = VirtualBroker()
    log = broker.topic().partitions[0].log
    for number in range(committed):
        data = batch(b"%d" % number, timestamp=WALL_START_MS + 1000 * number)
        log.append(memoryview(bytearray(data)), WALL_START_MS, 0)
    return IsolatedLog(log)


def test_it_goes_on_where_the_other_ended_and_nobody_reads_that() -> None:
    log = branched(3)
    result = log.append(memoryview(bytearray(batch(b"mine"))), WALL_START_MS, 0)
    assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 3)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 3, 3)
    assert log.read(3, 1 << 20, log.high_watermark, min_one_batch=True).size == 0


def test_what_was_committed_is_read() -> None:
    log = branched(3)
    one = len(batch(b"0"))
    found = log.read(1, 1 << 20, log.high_watermark, min_one_batch=True)
    assert (found.size, found.next_offset) == (2 * one, 3)
    assert log.size_available(1, 1 << 20, log.high_watermark, min_one_batch=True) == 2 * one
    assert log.bytes_between(0, log.high_watermark, 1 << 20) == 3 * one
    assert log.bytes_between(3, 4, 1 << 20) == 0


@pytest.mark.parametrize("offset", [-1, 5])
def test_an_offset_outside_is_refused(offset: int) -> None:
    found = branched(3).read(offset, 1 << 20, 3, min_one_batch=True)
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_are_found_by_time_and_by_leader() -> None:
    log = branched(3)
    by_time, newest = log.offset_for_timestamp(WALL_START_MS + 1000), log.max_timestamp_offset()
    assert by_time is not None
    assert newest is not None
    assert (by_time.offset, newest.offset, log.leader_epoch_at(1)) == (1, 2, 0)


def test_it_knows_the_epochs_that_were_and_not_those_of_others_to_come() -> None:
    committed = branched(3)._committed
    log = IsolatedLog(committed)
    committed.begin_epoch(1)
    committed.append(memoryview(bytearray(batch(b"theirs"))), WALL_START_MS, 1)
    log.append(memoryview(bytearray(batch(b"mine"))), WALL_START_MS, 0)
    assert (log.end_offset_for_epoch(0), log.leader_epoch_at(3)) == ((0, 4), 0)
    assert committed.end_offset_for_epoch(0) == (0, 3)


def isolated() -> tuple[VirtualBroker, ClusterServer]:
    """Three brokers of which the first, that leads t-0 and follows u-0, is cut off."""
    cluster = VirtualBroker("sluice.brokers=3")
    for name, replicas in (("t", (1, 2)), ("u", (2, 1))):
        cluster.cluster.create(NewTopic(name, assignments={0: replicas}))
    cluster.cluster_server.isolate_broker(1)
    return cluster, cluster.cluster_server


def test_what_it_leads_is_the_cluster_s_until_another_leads_it() -> None:
    cluster, server = isolated()
    mine = cluster.broker.metadata
    assert isinstance(mine, IsolatedMetadata)
    assert mine.partition("t", 0) is cluster.partition("t")
    assert mine.partition("u", 0) is not cluster.partition("u")
    server.move_leader("t", 0, 2)
    kept = mine.partition("t", 0)
    assert kept is not None
    assert kept is not cluster.partition("t")
    assert (kept.leader, kept.leader_epoch, type(kept.log)) == (1, 0, IsolatedLog)
    server.rejoin_broker(1)
    assert not isinstance(cluster.broker.metadata, IsolatedMetadata)
    assert kept.leader == -1, "whoever waits for it is sent away"


def test_a_topic_that_is_asked_for_is_not_created() -> None:
    cluster, _ = isolated()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    assert error_codes(cluster.client(node_id=1).ask(request, 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert "new" not in cluster.cluster.topics


def test_followers_of_what_others_lead_know_who_led() -> None:
    cluster, _ = isolated()
    answer = cluster.client(node_id=1).ask(produce(10, topic="u"), 10)
    (told,) = answer.responses[0].partition_responses
    assert (told.error_code, told.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
