"""AlterReplicaLogDirs: there is one directory, and every replica is in it."""

from pathlib import Path

import pytest

from sluice.protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sluice.protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

Answers = dict[tuple[str, int], int]


def altered(broker: VirtualBroker, *wanted: tuple[str, str, int]) -> Answers:
    """Asks for replicas of topics to be in directories, each (path, topic, partition)."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])
        for path, topic, index in wanted
    ]
    answer = broker.client().ask(AlterReplicaLogDirsRequest(dirs=dirs), 2)
    return {
        (one.topic_name, item.partition_index): item.error_code for one in answer.results for item in one.partitions
    }


def directory(broker: VirtualBroker) -> str:
    """The one that DescribeLogDirs tells of."""
    (only,) = broker.client().ask(DescribeLogDirsRequest(topics=None), 5).results
    return str(only.log_dir)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        pytest.param("t", 0, ErrorCode.NONE, id="a replica that is there"),
        pytest.param("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a partition that is not"),
        pytest.param("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a topic that is not"),
        pytest.param("n" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION, id="a topic whose name leaves no room"),
        pytest.param("n" * 213, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="one whose name just does"),
    ],
)
def test_into_the_directory_goes(topic: str, index: int, code: ErrorCode) -> None:
    broker = VirtualBroker()
    broker.topic()
    assert altered(broker, (directory(broker), topic, index)) == {(topic, index): code}


def test_a_directory_on_disk_is_accepted(tmp_path: Path) -> None:
    broker = VirtualBroker(f"log.dirs={tmp_path}")
    broker.topic()
    assert directory(broker) == str(tmp_path)
    assert altered(broker, (str(tmp_path), "t", 0)) == {("t", 0): ErrorCode.NONE}
    assert altered(broker, ("memory", "t", 0)) == {("t", 0): ErrorCode.LOG_DIR_NOT_FOUND}


def test_other_directories_are_not_there() -> None:
    broker = VirtualBroker()
    broker.topic("t", partitions=2)
    here = directory(broker)
    assert altered(broker, ("/elsewhere", "t", 0), (here, "t", 1)) == {
        ("t", 0): ErrorCode.LOG_DIR_NOT_FOUND,
        ("t", 1): 0,
    }


def test_of_two_directories_for_a_replica_the_last_counts() -> None:
    broker = VirtualBroker()
    broker.topic()
    here = directory(broker)
    assert altered(broker, ("/elsewhere", "t", 0), (here, "t", 0)) == {("t", 0): 0}


def test_a_broker_without_the_replica_says_so() -> None:
    broker = VirtualBroker()
    broker.topic()
    broker.partition().replicas = (broker.broker.node_id + 1,)
    assert altered(broker, (directory(broker), "t", 0)) == {("t", 0): ErrorCode.REPLICA_NOT_AVAILABLE}
