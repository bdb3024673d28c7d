"""AlterReplicaLogDirs: the broker has one log directory with every replica."""

from pathlib import Path

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import alter_replica_log_dirs as api
from sluice.protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

ErrorCodes = dict[tuple[str, int], int]


def altered(broker: VirtualBroker, *entries: tuple[str, str, int]) -> ErrorCodes:
    """Return the error codes of a request with (path, topic, partition) entries."""
    dirs = [
        api.AlterReplicaLogDir(path=path, topics=[api.AlterReplicaLogDirTopic(name=topic, partitions=[index])])
        for path, topic, index in entries
    ]
    response = broker.client().call(api.AlterReplicaLogDirsRequest(dirs=dirs), 2)
    return {
        (topic.topic_name, partition.partition_index): partition.error_code
        for topic in response.results
        for partition in topic.partitions
    }


def log_dir(broker: VirtualBroker) -> str:
    """Return the log directory that DescribeLogDirs reports."""
    (result,) = broker.client().call(DescribeLogDirsRequest(topics=None), 5).results
    return str(result.log_dir)


PARTITIONS = {
    "existing replica": ("t", 0, ErrorCode.NONE),
    "unknown partition": ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown topic": ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "topic name above the length limit": ("n" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "topic name at the length limit": ("n" * 213, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
}


@pytest.mark.parametrize(("topic", "index", "code"), PARTITIONS.values(), ids=PARTITIONS)
def test_moving_a_replica_to_the_log_directory_validates_the_partition(topic: str, index: int, code: ErrorCode) -> None:
    broker = broker_with_topic()
    assert altered(broker, (log_dir(broker), topic, index)) == {(topic, index): code}


def test_directory_on_disk_is_accepted(tmp_path: Path) -> None:
    broker = broker_with_topic(f"log.dirs={tmp_path}")
    assert log_dir(broker) == str(tmp_path)
    assert altered(broker, (str(tmp_path), "t", 0)) == {("t", 0): ErrorCode.NONE}
    assert altered(broker, ("memory", "t", 0)) == {("t", 0): ErrorCode.LOG_DIR_NOT_FOUND}


def test_unknown_directory_returns_log_dir_not_found(broker: VirtualBroker) -> None:
    broker.topic("t", partitions=2)
    codes = altered(broker, ("/elsewhere", "t", 0), (log_dir(broker), "t", 1))
    assert codes == {("t", 0): ErrorCode.LOG_DIR_NOT_FOUND, ("t", 1): 0}


def test_last_directory_of_a_replica_counts(topic: Topic, broker: VirtualBroker) -> None:
    assert altered(broker, ("/elsewhere", "t", 0), (log_dir(broker), "t", 0)) == {("t", 0): 0}


def test_missing_replica_returns_replica_not_available(topic: Topic, broker: VirtualBroker) -> None:
    broker.partition().replicas = (broker.broker.node_id + 1,)
    assert altered(broker, (log_dir(broker), "t", 0)) == {("t", 0): ErrorCode.REPLICA_NOT_AVAILABLE}
